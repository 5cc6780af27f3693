"""The decoder's mathematics, written again from the formulas with plain loops over single numbers."""

from cmath import exp as turn
from math import exp, sqrt

import numpy as np
import pytest

from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.gradients import batch_logits
from costmodel.lab.transformer import Decoder

Vector = list[float]


def times(x: Vector, matrix: np.ndarray) -> Vector:
    """x·W, W (inputs × outputs)."""
    return [sum(x[i] * float(matrix[i, j]) for i in range(len(x))) for j in range(matrix.shape[1])]


def normed(x: Vector, gain: np.ndarray | None, eps: float) -> Vector:
    """x/√(mean(x²) + ε)·gain."""
    size = sqrt(sum(a * a for a in x) / len(x) + eps)
    return [a / size * (1.0 if gain is None else float(gain[i])) for i, a in enumerate(x)]


def turned(x: Vector, position: int, theta: float | None) -> Vector:
    """RoPE: the pair (x₂ⱼ, x₂ⱼ₊₁) turns by position·θ^(-2j/H)."""
    if theta is None:
        return x
    pairs = [complex(*x[j : j + 2]) * turn(1j * position * theta ** (-j / len(x))) for j in range(0, len(x), 2)]
    return [part for pair in pairs for part in (pair.real, pair.imag)]


def plain_logits(decoder: Decoder, tokens: list[int]) -> list[Vector]:
    """Logits of every position: softmax(q·kᵀ/√H)·v over the tokens so far, SwiGLU or ReLU, residuals, the head."""
    shape, weights = decoder.shape, decoder.weights
    N, K, H, eps = shape.n_heads, shape.n_kv_heads, shape.head_dim, shape.norm_eps
    rows = [weights.embedding[token].tolist() for token in tokens]
    if weights.positions is not None:
        rows = [[a + float(weights.positions[t, i]) for i, a in enumerate(row)] for t, row in enumerate(rows)]
    for layer in weights.layers:
        inputs = [normed(row, layer.attention_gain, eps) for row in rows]
        q, k, v = ([times(x, layer.qkv.part(step)) for x in inputs] for step in ("query", "key", "value"))
        head = lambda x, n: x[n * H : (n + 1) * H]  # noqa: E731
        for t, row in enumerate(rows):
            mixed = []
            for n in range(N):
                shared = n // (N // K)
                asked = turned(head(q[t], n), t, shape.rope_theta)
                keys = [turned(head(k[s], shared), s, shape.rope_theta) for s in range(t + 1)]
                shares = [exp(sum(a * b for a, b in zip(asked, key, strict=True)) / sqrt(H)) for key in keys]
                mixed += [sum(p * v[s][shared * H + h] for s, p in enumerate(shares)) / sum(shares) for h in range(H)]
            row = [a + b for a, b in zip(row, times(mixed, layer.output.values), strict=True)]
            x = normed(row, layer.mlp_gain, eps)
            up = times(x, layer.up.part("up"))
            if shape.gated:
                gate = times(x, layer.up.part("gate"))
                hidden = [u * g / (1 + exp(-g)) for u, g in zip(up, gate, strict=True)]
            else:
                hidden = [max(u, 0.0) for u in up]
            rows[t] = [a + b for a, b in zip(row, times(hidden, layer.down.values), strict=True)]
    head_matrix = weights.embedding.T if shape.tied else weights.head.values
    return [times(normed(row, weights.final_gain, eps), head_matrix) for row in rows]


@pytest.mark.parametrize(
    "decoder",
    [
        TinyDecoder(vocab=7, d_model=6, n_heads=4, n_kv_heads=2, head_dim=4, d_ff=5, rope_theta=50.0, gated=True,
                    norm_gain=True, norm_eps=0.01),
        TinyDecoder(vocab=7, d_model=6, n_heads=3, n_kv_heads=1, n_layers=1, d_ff=5, tied=False),
    ],
    ids=["as Llama", "as the textbook"],
)  # fmt: skip
def test_logits_are_those_of_the_formulas(decoder: TinyDecoder) -> None:
    tokens = [3, 1, 6, 6, 0]
    expected = plain_logits(decoder, tokens)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(decoder.forward_full(tokens), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(batch_logits(decoder, np.array([tokens]))[0], expected, rtol=0, atol=1e-12)
