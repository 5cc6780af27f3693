"""The gradient of a decoder's loss in every weight, without an autodiff library.

A gradient has the layout of the weights, one block of memory: `gradient.memory` lines up with `weights.memory`.
"""

from collections.abc import Callable

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.blocks import rotary_turns
from costmodel.lab.losses import Loss, cross_entropy
from costmodel.lab.pieces import Back, Piece, attention, chain, gated, linear, norm, relu, residual
from costmodel.lab.shape import DecoderShape
from costmodel.lab.transformer import Decoder
from costmodel.lab.weights import DecoderWeights, allocate

Watch = Callable[[str, int, np.ndarray], None]
"""Told (name, layer, rows) of what a part of the decoder reads."""


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


def batch_logits(decoder: Decoder, tokens: np.ndarray, watch: Watch | None = None) -> np.ndarray:
    """Logits (batch, T, V) of equally long sequences (batch, T), all in the same products; uncounted.

    Parameters
    ----------
    decoder : of any shape
    tokens : (batch, T) ids
    watch : told (name, layer, rows) of what each layer's "stream" and each matrix reads: "qkv", "output", "up", "down",
        and after the L layers once more "stream" and "head"

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> np.allclose(batch_logits(tiny, np.array([[1, 2, 3]]))[0], tiny.forward_full([1, 2, 3]), rtol=0, atol=1e-10)
    True
    """
    return _forward(decoder, np.asarray(tokens), allocate(decoder.shape), watch)[0]


def _forward(
    decoder: Decoder, ids: np.ndarray, gradient: DecoderWeights, watch: Watch | None = None
) -> tuple[np.ndarray, Back]:
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

    def seen(name: str, layer: int) -> Piece:
        def piece(x: np.ndarray) -> tuple[np.ndarray, Back]:
            if watch is not None:
                watch(name, layer, x)
            return x, lambda d: d

        return piece

    pieces = []
    for i, (layer, d) in enumerate(zip(weights.layers, gradient.layers, strict=True)):
        attend = chain(
            norm(layer.attention_gain, d.attention_gain, shape.norm_eps),
            chain(seen("qkv", i), linear(layer.qkv, d.qkv)),
            attention(shape, turns, T),
            chain(seen("output", i), linear(layer.output, d.output)),
        )
        mlp = chain(
            norm(layer.mlp_gain, d.mlp_gain, shape.norm_eps),
            chain(seen("up", i), linear(layer.up, d.up)),
            gated if shape.gated else relu,
            chain(seen("down", i), linear(layer.down, d.down)),
        )
        pieces += [seen("stream", i), residual(attend), residual(mlp)]
    L = shape.n_layers
    final = norm(weights.final_gain, gradient.final_gain, shape.norm_eps)
    head = chain(seen("head", L), linear(weights.head, gradient.head))
    logits, way_back = chain(*pieces, seen("stream", L), final, head)(x)

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
