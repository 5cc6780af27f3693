"""A calculator in the style of today's tools: plain Python that walks the layers anew for every point of a grid.

It is kept as quick as such code gets (no units, no parsing, no logging), and right: its numbers equal ours.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from costmodel import Deployment, accelerator, load
from tests.benchmarks.side_by_side import Result, faster

POINTS = 10_000


@dataclass
class Config:
    """What such a tool reads from a config.json and a table of accelerators."""

    vocab: int = 128_256
    hidden: int = 4096
    intermediate: int = 14_336
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    layers: int = 32
    peak: float = 989e12
    bandwidth: float = 3.35e12


class Calculator:
    """Decode latency, throughput and memory of one point at a time."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def attention(self, batch: int, context: int) -> tuple[int, int, int, int]:
        """FLOPs, weights, cache read, activations of one attention layer."""
        c = self.config
        wide, narrow = c.heads * c.head_dim, c.kv_heads * c.head_dim
        weights = c.hidden * (2 * wide + 2 * narrow) + c.hidden
        flops = 2 * batch * c.hidden * (2 * wide + 2 * narrow) + 4 * batch * context * wide
        cache = 2 * batch * context * narrow
        return flops, weights, cache, batch * (4 * c.hidden + 4 * wide + 2 * narrow)

    def mlp(self, batch: int) -> tuple[int, int, int]:
        """FLOPs, weights, activations of one feed-forward layer."""
        c = self.config
        weights = 3 * c.hidden * c.intermediate + c.hidden
        return 6 * batch * c.hidden * c.intermediate, weights, batch * (4 * c.hidden + 2 * c.intermediate)

    def decode(self, batch: int, context: int) -> dict[str, float]:
        """The sums over all layers, and the roofline."""
        c = self.config
        flops = 2 * batch * c.hidden * c.vocab
        weights, cache = 2 * c.vocab * c.hidden + c.hidden, 0
        moved = c.vocab * c.hidden + c.hidden + batch * (5 * c.hidden + c.vocab)
        for _ in range(c.layers):
            worked, stored, kept, carried = self.attention(batch, context)
            more, also, as_well = self.mlp(batch)
            flops += worked + more
            weights += stored + also
            cache += kept
            moved += stored + also + kept + carried + as_well
        latency = max(flops / c.peak, 2 * moved / c.bandwidth)
        return {"latency": latency, "throughput": batch / latency, "memory": 2 * weights + 2 * cache}


def results() -> Iterator[Result]:
    """The same points, one after another and as a grid."""
    rng = np.random.default_rng(0)
    batch, context = (rng.integers(1, high, POINTS) for high in (512, 131_072))
    points = list(zip(batch.tolist(), context.tolist(), strict=True))
    calculator, deployment = Calculator(Config()), Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    ours = lambda: deployment.grid(batch, context)  # noqa: E731
    theirs = lambda: [calculator.decode(b, s) for b, s in points]  # noqa: E731
    for mine, name in zip(ours().values(), ("latency", "throughput", "memory"), strict=True):
        np.testing.assert_allclose(mine, [point[name] for point in theirs()], rtol=1e-12)
    yield faster(f"{POINTS:,} points", ours, theirs, "a per-point calculator", times=500, rounds=5)
