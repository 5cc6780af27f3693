"""The pieces of a decoder for training: each gives its output and the way back through it, written out.

They work on rows (batch·T, width), all sequences of T tokens.
"""

from collections.abc import Callable

import numpy as np

from costmodel.common.checks import present
from costmodel.lab.blocks import rotate, silu, softmax_in_place
from costmodel.lab.matrix import Matrix
from costmodel.lab.shape import DecoderShape

Back = Callable[[np.ndarray], np.ndarray]
"""∂loss/∂output -> ∂loss/∂input of a piece; on the way it adds to the gradient of the piece's weights."""
Piece = Callable[[np.ndarray], tuple[np.ndarray, Back]]
"""Input (rows, …) -> output (rows, …) and the way back."""


def chain(*pieces: Piece) -> Piece:
    """One piece after the other; the way back visits them in reverse (the chain rule)."""

    def piece(x: np.ndarray) -> tuple[np.ndarray, Back]:
        ways = []
        for step in pieces:
            x, way = step(x)
            ways.append(way)

        def back(d: np.ndarray) -> np.ndarray:
            for way in reversed(ways):
                d = way(d)
            return d

        return x, back

    return piece


def residual(branch: Piece) -> Piece:
    """x + branch(x)."""

    def piece(x: np.ndarray) -> tuple[np.ndarray, Back]:
        y, way = branch(x)
        return x + y, lambda d: d + way(d)

    return piece


def linear(matrix: Matrix, gradient: Matrix) -> Piece:
    """x·W: d·Wᵀ goes back, xᵀ·d is W's gradient."""

    def piece(x: np.ndarray) -> tuple[np.ndarray, Back]:
        def back(d: np.ndarray) -> np.ndarray:
            gradient.values[...] += (d.T @ x).T
            return d @ matrix.values.T

        return x @ matrix.values, back

    return piece


def norm(gain: np.ndarray | None, gradient: np.ndarray | None, eps: float) -> Piece:
    """RMS norm u·gain with u = x·r and r = 1/√(mean(x²) + eps): r·(d - u·mean(d·u)) goes back."""

    def piece(x: np.ndarray) -> tuple[np.ndarray, Back]:
        r = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + x.dtype.type(eps))
        u = x * r

        def back(d: np.ndarray) -> np.ndarray:
            if gain is not None:
                present("gradient", gradient)[...] += (d * u).sum(axis=0)
                d = d * gain
            return r * (d - u * (d * u).mean(axis=-1, keepdims=True))

        return u if gain is None else u * gain, back

    return piece


def relu(x: np.ndarray) -> tuple[np.ndarray, Back]:
    """max(x, 0)."""
    return np.maximum(x, 0), lambda d: d * (x > 0)


def gated(x: np.ndarray) -> tuple[np.ndarray, Back]:
    """up ⊙ SiLU(gate), the halves of x: SiLU(g) = g·s with s = 1/(1 + e^(-g)), and its slope is s + SiLU(g)·(1 - s)."""
    up, gate = np.split(x, 2, axis=1)
    half = x.dtype.type(0.5)
    s = half + half * np.tanh(half * gate)
    act = silu(gate)
    return up * act, lambda d: np.concatenate([d * act, d * up * (s + act * (1 - s))], axis=1)


def attention(shape: DecoderShape, turns: np.ndarray | None, T: int) -> Piece:
    """Causal attention of sequences of T tokens, softmax(q·kᵀ/√H)·v, from the rows of q, k, v (N + 2K heads of H)."""
    N, K, H = shape.n_heads, shape.n_kv_heads, shape.head_dim
    G, scale, later = N // K, shape.dtype(H**-0.5), np.triu(np.ones((T, T), bool), 1)

    def by_sequence(x: np.ndarray) -> np.ndarray:  # (batch·T, heads, H) -> (batch, K, T or G·T, H)
        heads = x.reshape(-1, T, K, x.shape[1] // K, H).transpose(0, 2, 3, 1, 4)
        return heads.reshape(len(heads), K, -1, H)

    def by_row(x: np.ndarray) -> np.ndarray:  # and back
        heads = x.reshape(len(x), K, -1, T, H)
        return heads.transpose(0, 3, 1, 2, 4).reshape(len(x) * T, -1, H)

    def piece(x: np.ndarray) -> tuple[np.ndarray, Back]:
        heads = x.reshape(len(x), N + 2 * K, H)
        turned = heads[:, : N + K] if turns is None else rotate(heads[:, : N + K], turns)
        q, k, v = by_sequence(turned[:, :N] * scale), by_sequence(turned[:, N:]), by_sequence(heads[:, N + K :])
        p = q @ k.swapaxes(2, 3)
        p.reshape(-1, K, G, T, T)[..., later] = -np.inf
        softmax_in_place(p)

        def back(d: np.ndarray) -> np.ndarray:
            d = by_sequence(d.reshape(len(x), N, H))
            d_p = d @ v.swapaxes(2, 3)
            d_scores = p * (d_p - (p * d_p).sum(axis=-1, keepdims=True))
            d_q, d_k, d_v = d_scores @ k * scale, d_scores.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ d
            d_turned = np.concatenate([by_row(d_q), by_row(d_k)], axis=1)
            if turns is not None:
                d_turned = rotate(d_turned, turns.conj())
            return np.concatenate([d_turned, by_row(d_v)], axis=1).reshape(x.shape)

        return by_row(p @ v).reshape(len(x), N * H), back

    return piece
