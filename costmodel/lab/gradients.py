"""The gradient of a decoder's loss, written out: each piece gives its output and the way back through it.

A gradient has the layout of the weights, one block of memory: `gradient.memory` lines up with `weights.memory`.
"""

from collections.abc import Callable

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.blocks import rotary_turns, rotate, silu, softmax_in_place
from costmodel.lab.losses import Loss, cross_entropy
from costmodel.lab.matrix import Matrix
from costmodel.lab.shape import DecoderShape
from costmodel.lab.transformer import Decoder
from costmodel.lab.weights import DecoderWeights, allocate

Back = Callable[[np.ndarray], np.ndarray]
"""∂loss/∂output -> ∂loss/∂input of a piece; on the way it adds to the gradient of the piece's weights."""
Piece = Callable[[np.ndarray], tuple[np.ndarray, Back]]
"""Input (rows, …) -> output (rows, …) and the way back."""


def loss_and_gradient(decoder: Decoder, tokens: np.ndarray, loss: Loss | None = None) -> tuple[float, DecoderWeights]:
    """The loss on windows of tokens, each token predicting the next, and its gradient in every weight.

    Nothing is counted in the decoder's work; a pass back takes twice the products of the pass forward.

    Parameters
    ----------
    decoder : of any shape
    tokens : (batch, T + 1) ids
    loss : of logits (batch, T, V) and targets (batch, T); the mean cross-entropy unless given

    Returns
    -------
    the loss [nat per token], and ∂loss/∂weights as weights of the same shape

    Raises
    ------
    CostModelError
        for tokens that are not windows, ids outside the vocabulary, or T beyond max_len

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny, windows = TinyDecoder(), np.array([[1, 2, 3], [4, 5, 6]])
    >>> loss, gradient = loss_and_gradient(tiny, windows)
    >>> tiny.weights.memory[:] -= 0.1 * gradient.memory
    >>> loss_and_gradient(tiny, windows)[0] < loss
    True
    """
    windows = np.asarray(tokens)
    if windows.ndim != 2 or windows.shape[1] < 2:
        raise CostModelError(f"tokens must be windows (batch, T + 1) of at least 2, got shape {windows.shape}")
    gradient = allocate(decoder.shape)
    gradient.memory[:] = 0
    logits, back = _forward(decoder, windows[:, :-1], gradient)
    value, d_logits = (loss or cross_entropy)(logits, windows[:, 1:])
    back(d_logits)
    return value, gradient


def batch_logits(decoder: Decoder, tokens: np.ndarray) -> np.ndarray:
    """Logits (batch, T, V) of equally long sequences (batch, T), all in the same products; uncounted.

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> np.allclose(batch_logits(tiny, np.array([[1, 2, 3]]))[0], tiny.forward_full([1, 2, 3]), rtol=0, atol=1e-10)
    True
    """
    return _forward(decoder, np.asarray(tokens), allocate(decoder.shape))[0]


def _forward(decoder: Decoder, ids: np.ndarray, gradient: DecoderWeights) -> tuple[np.ndarray, Back]:
    shape, weights = decoder.shape, decoder.weights
    _check(shape, ids)
    batch, T = ids.shape
    rows, positions = ids.ravel(), np.tile(np.arange(T), batch)
    x = weights.embedding[rows]
    if weights.positions is not None:
        x = x + weights.positions[positions]
    turns = None
    if shape.rope_theta is not None:
        turns = rotary_turns(positions, shape.head_dim, shape.rope_theta, x.dtype)
    pieces = []
    for layer, d in zip(weights.layers, gradient.layers, strict=True):
        pieces += [
            residual(
                chain(
                    norm(layer.attention_gain, d.attention_gain, shape.norm_eps),
                    linear(layer.qkv, d.qkv),
                    attention(shape, turns, T),
                    linear(layer.output, d.output),
                )
            ),
            residual(
                chain(
                    norm(layer.mlp_gain, d.mlp_gain, shape.norm_eps),
                    linear(layer.up, d.up),
                    gated if shape.gated else relu,
                    linear(layer.down, d.down),
                )
            ),
        ]
    final = norm(weights.final_gain, gradient.final_gain, shape.norm_eps)
    logits, way_back = chain(*pieces, final, linear(weights.head, gradient.head))(x)

    def back(d_logits: np.ndarray) -> np.ndarray:
        d_x = way_back(d_logits.reshape(logits.shape))
        one_hot = (np.arange(shape.vocab)[:, np.newaxis] == rows).astype(d_x.dtype)
        gradient.embedding[...] += one_hot @ d_x
        if gradient.positions is not None:
            gradient.positions[:T] += d_x.reshape(batch, T, -1).sum(axis=0)
        return d_x

    return logits.reshape(batch, T, shape.vocab), back


def _check(shape: DecoderShape, ids: np.ndarray) -> None:
    if ids.ndim != 2 or not ids.size or not np.issubdtype(ids.dtype, np.integer):
        raise CostModelError(f"tokens must be integers (batch, T), got {ids.dtype} of shape {ids.shape}")
    if ids.min() < 0 or ids.max() >= shape.vocab:
        raise CostModelError(f"token ids must be 0 to {shape.vocab - 1}, got {ids.min()} to {ids.max()}")
    if ids.shape[1] > shape.max_len:
        raise CostModelError(f"sequences of {ids.shape[1]} tokens are longer than max_len, {shape.max_len}")


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
                gradient[...] += (d * u).sum(axis=0)
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
