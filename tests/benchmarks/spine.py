"""Speeds of the spine: a million points, import, one answer, reading a configuration, a cold ledger."""

from collections.abc import Iterator

import numpy as np

from costmodel import Deployment, accelerator, load, model_from_config, preset_config, transformer
from costmodel.symbols import B, S
from tests.benchmarks.side_by_side import Result, at_most, faster, no_slower, process

POINTS = 1_000_000


def hand_written(batch: np.ndarray, context: np.ndarray) -> tuple[np.ndarray, ...]:
    """Decode latency, throughput and memory of Llama-3-8B on an H100 as one would write them down."""
    V, D, F, N, K, H, L, peak, bandwidth = 128256, 4096, 14336, 32, 8, 128, 32, 989e12, 3.35e12
    layer = 2 * D * N * H + 2 * D * K * H + 3 * D * F
    weights = 2 * (2 * V * D + L * (layer + 2 * D) + D)
    cache = 2 * 2 * batch * context * L * K * H
    activations = batch * (L * (16 * D + 4 * K * H + 8 * N * H + 4 * F) + 10 * D + 2 * V)
    flops = 2 * batch * (L * layer + V * D) + 4 * batch * context * L * N * H
    moved = weights - 2 * V * D + cache + activations
    latency = np.maximum(flops / peak, moved / bandwidth)
    return latency, batch / latency, weights + cache


def collected() -> object:
    """The best a person does by hand: coefficients worked out beforehand, shared products computed once."""
    d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    ledger = d.model.decode(B, S)
    flops, moved = ledger.flops.as_poly(B, S), ledger.bytes.as_poly(B, S)
    f1, f2 = (float(flops.coeff_monomial(m) / d.accelerator.peak()) for m in (B, B * S))
    m0, m1, m2 = (float(moved.coeff_monomial(m) / d.accelerator.bandwidth) for m in (1, B, B * S))
    w, c = float(d.weight_bytes), float(d.cache_bytes(1))

    def run(batch: np.ndarray, context: np.ndarray) -> tuple[np.ndarray, ...]:
        both = batch * context
        latency = np.maximum(f1 * batch + f2 * both, m0 + m1 * batch + m2 * both)
        return latency, batch / latency, w + c * both

    return run


def million_points() -> Iterator[Result]:
    """A million (batch, context) points, against two functions written by hand."""
    rng = np.random.default_rng(0)
    batch, context = (rng.integers(1, high, POINTS).astype(float) for high in (512, 131_072))
    deployment, polynomial = Deployment(load("llama-3-8b"), accelerator("h100-sxm")), collected()
    ours = lambda: deployment.grid(batch, context)  # noqa: E731
    for alternative in (hand_written(batch, context), polynomial(batch, context)):
        for mine, theirs in zip(ours().values(), alternative, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    plain = lambda: hand_written(batch, context)  # noqa: E731
    best = lambda: polynomial(batch, context)  # noqa: E731
    yield faster("10^6 points: latency, throughput, memory", ours, plain, "NumPy by hand", times=1.5)
    yield faster("10^6 points: latency, throughput, memory", ours, best, "hand-collected polynomial", times=1.0)
    few = [{B: int(b), S: int(s)} for b, s in zip(batch[:50], context[:50], strict=True)]
    formula = deployment.formulas["seconds_per_token"]
    substituted = lambda: [float(formula.subs(point)) for point in few]  # noqa: E731
    compiled = lambda: deployment.grid(batch[:50], context[:50])  # noqa: E731
    yield faster("50 points", compiled, substituted, "SymPy .subs per point", times=10)


def processes() -> Iterator[Result]:
    """Whole processes."""
    bare = process("-c", "import sympy, numpy")
    yield no_slower("import costmodel", process("-c", "import costmodel"), bare, "import sympy, numpy", times=1.2)
    size = process("-m", "costmodel", "size", "llama-3-8b", "--on", "h100-sxm")
    yield no_slower("costmodel size, whole process", size, bare, "import sympy, numpy", times=1.3)


def reading_and_counting() -> Iterator[Result]:
    """A configuration to a Model, and the ledger of a deep model."""
    config = preset_config("llama-3.1-405b")
    yield at_most("config to Model", lambda: model_from_config(config, "config").params, seconds=5e-3)
    yield at_most("symbolic decode ledger, 61 layers, cold", cold_ledger, seconds=0.150)


def cold_ledger() -> object:
    """Every size a symbol but the number of layers, SymPy's cache emptied first."""
    from sympy.core.cache import clear_cache

    clear_cache()
    ledger = transformer(L=61).decode()
    return ledger.flops, ledger.bytes


def results() -> Iterator[Result]:
    """Every comparison of this file."""
    yield from million_points()
    yield from processes()
    yield from reading_and_counting()
