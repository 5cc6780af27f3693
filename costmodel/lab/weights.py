"""The weights of a decoder: one block of memory, in the order that decoding reads it."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from costmodel.lab.matrix import Matrix
from costmodel.lab.shape import DecoderShape


@dataclass(frozen=True)
class LayerWeights:
    """One layer: the norms' gains (D,) or None, and its matrices (inputs × outputs)."""

    attention_gain: np.ndarray | None
    qkv: Matrix
    output: Matrix
    mlp_gain: np.ndarray | None
    up: Matrix
    down: Matrix


@dataclass(frozen=True)
class DecoderWeights:
    """All layers, the final norm's gain, the head (D × V), and what tokens and learned positions look up.

    Attributes
    ----------
    memory : (params,) every number once; all else are views of it
    embedding : (V, D), a view of the head when they are tied
    positions : (max_len, D), or None with rotary positions
    """

    memory: np.ndarray
    layers: list[LayerWeights]
    final_gain: np.ndarray | None
    head: Matrix
    embedding: np.ndarray
    positions: np.ndarray | None

    @property
    def params(self) -> int:
        """How many numbers the model has."""
        return self.memory.size


def allocate(shape: DecoderShape) -> DecoderWeights:
    """Uninitialised weights of a shape, in one allocation (large ones get huge pages, which a stream of reads needs).

    params = L·(D·(N + 2K)·H + N·H·D + m·D·F + 2D) + V·D·(1 or 2) + D + max_len·D, with m = 3 gated and 2 plain, gains
    and positions where there are any.

    Examples
    --------
    >>> shape = DecoderShape(vocab=16, d_model=16, n_layers=2, max_len=64, n_heads=2, n_kv_heads=2, head_dim=8, d_ff=64)
    >>> allocate(shape).params
    7424
    """
    V, D, F, H, N, K = shape.vocab, shape.d_model, shape.d_ff, shape.head_dim, shape.n_heads, shape.n_kv_heads
    gain = D if shape.norm_gain else 0
    qkv = {"query": N * H, "key": K * H, "value": K * H}
    up = {"up": F, "gate": F} if shape.gated else {"up": F}
    layer = [gain, D * sum(qkv.values()), N * H * D, gain, D * sum(up.values()), F * D]
    once = [gain, D * V, 0 if shape.tied else V * D, shape.max_len * D if shape.rope_theta is None else 0]
    ends = np.cumsum([0, *layer * shape.n_layers, *once]).tolist()
    memory = np.empty(ends[-1], shape.dtype)
    views = iter([memory[start:end] for start, end in pairwise(ends)])

    def gain_or_none() -> np.ndarray | None:
        view = next(views)
        return view if shape.norm_gain else None

    layers = [
        LayerWeights(
            attention_gain=gain_or_none(),
            qkv=Matrix(next(views), D, qkv),
            output=Matrix(next(views), N * H, {"output": D}),
            mlp_gain=gain_or_none(),
            up=Matrix(next(views), D, up),
            down=Matrix(next(views), F, {"down": D}),
        )
        for _ in range(shape.n_layers)
    ]
    final_gain, head = gain_or_none(), Matrix(next(views), D, {"unembedding": V})
    table, positions = next(views), next(views)
    return DecoderWeights(
        memory=memory,
        layers=layers,
        final_gain=final_gain,
        head=head,
        embedding=head.values.T if shape.tied else table.reshape(V, D),
        positions=positions.reshape(-1, D) if positions.size else None,
    )


def random_weights(shape: DecoderShape, seed: int) -> DecoderWeights:
    """Seeded normal weights: matrices with variance 1/inputs, embeddings 1/D, positions 1, gains near 1."""
    rng = np.random.default_rng(seed)
    weights = allocate(shape)

    def fill(array: np.ndarray, deviation: float, mean: float = 0.0) -> None:
        array[...] = rng.normal(mean, deviation, array.shape)

    for layer in weights.layers:
        for matrix in (layer.qkv, layer.output, layer.up, layer.down):
            fill(matrix.values, matrix.values.shape[0] ** -0.5)
    fill(weights.embedding, shape.d_model**-0.5)
    if not shape.tied:
        fill(weights.head.values, shape.d_model**-0.5)
    if weights.positions is not None:
        fill(weights.positions, 1.0)
    for gain in [weights.final_gain, *(g for layer in weights.layers for g in (layer.attention_gain, layer.mlp_gain))]:
        if gain is not None:
            fill(gain, 0.1, mean=1.0)
    return weights
