"""The pieces of a decoder layer, each a function of arrays; shapes are in the letters of the book."""

from collections.abc import Iterable

import numpy as np

from costmodel.lab.matrix import Matrix
from costmodel.lab.work import Work


def rms_norm(x: np.ndarray, gain: np.ndarray | None, eps: float) -> np.ndarray:
    """x/√(mean(x²) + eps), times the gain if there is one (Zhang and Sennrich, 1910.07467).

    Parameters
    ----------
    x : (rows, D)
    gain : (D,) or None

    Examples
    --------
    >>> rms_norm(np.array([[3.0, 4.0]]), None, 0.0).round(4)
    array([[0.8485, 1.1314]])
    """
    scale = 1 / np.sqrt(np.vecdot(x, x) / x.dtype.type(x.shape[-1]) + x.dtype.type(eps))
    normed = x * scale[:, np.newaxis]
    return normed if gain is None else normed * gain


def rotary_turns(positions: np.ndarray, head_dim: int, theta: float, dtype: np.dtype) -> np.ndarray:
    """e^(i·m·theta^(-2j/H)) for positions m and pairs j < H/2 (Su et al., 2104.09864).

    Returns
    -------
    (rows, H/2), complex, of twice the dtype's width
    """
    rates = theta ** (-np.arange(0, head_dim, 2) / head_dim)
    return np.exp(1j * np.outer(positions, rates)).astype(np.result_type(dtype, np.complex64))


def rotate(x: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Rotary positions: neighbouring pairs (x₂ⱼ, x₂ⱼ₊₁) are complex numbers, multiplied by their turn.

    Parameters
    ----------
    x : (rows, heads, H)
    turns : (rows, H/2), of `rotary_turns`

    Examples
    --------
    >>> rotate(np.array([[[1.0, 0.0]]]), np.array([[1j]]))
    array([[[0., 1.]]])
    """
    return (x.view(turns.dtype) * turns[:, np.newaxis]).view(x.dtype)


def softmax_in_place(scores: np.ndarray) -> None:
    """exp(s)/Σ exp(s) over the last axis, overwriting the scores; -inf becomes 0."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)


def attend(q: np.ndarray, chunks: Iterable[tuple[np.ndarray, np.ndarray]], past: int, work: Work) -> np.ndarray:
    """Causal attention of one sequence: softmax(q·kᵀ/√H)·v, over whole score matrices (masking saves no work).

    FLOPs = 4·N·T·S·H.

    Parameters
    ----------
    q : (T, N, H), the queries of the tokens in this pass
    chunks : keys and values (K, tokens, H) of all S tokens, in order
    past : S - T, tokens before this pass
    work : where the FLOPs are added

    Returns
    -------
    (T, N·H)
    """
    T, N, H = q.shape
    S = past + T
    chunks = list(chunks)
    K = chunks[0][0].shape[0]
    G = N // K
    q = (q * q.dtype.type(H**-0.5)).reshape(T, K, G, H).transpose(1, 2, 0, 3).reshape(K, G * T, H)
    scores = np.empty((K, G * T, S), q.dtype)
    start = 0
    for keys, _ in chunks:
        np.matmul(q, keys.swapaxes(1, 2), out=scores[:, :, start : start + keys.shape[1]])
        work.count("scores", rows=N * T, inner=H, columns=keys.shape[1])
        start += keys.shape[1]
    if T > 1:
        scores.reshape(K, G, T, S)[:, :, np.arange(S) > past + np.arange(T)[:, np.newaxis]] = -np.inf
    softmax_in_place(scores)
    mixed, start = np.zeros((K, G * T, H), q.dtype), 0
    for _, values in chunks:
        mixed += scores[:, :, start : start + values.shape[1]] @ values
        work.count("values", rows=N * T, inner=values.shape[1], columns=H)
        start += values.shape[1]
    return mixed.reshape(K, G, T, H).transpose(2, 0, 1, 3).reshape(T, N * H)


def feed_forward(x: np.ndarray, up: Matrix, down: Matrix, work: Work) -> np.ndarray:
    """The MLP: ReLU(x·U)·W, or gated (x·U ⊙ SiLU(x·G))·W (Shazeer, 2002.05202).

    Parameters
    ----------
    x : (rows, D)
    up : U (D × F), with G beside it when gated
    down : W (F × D)
    """
    hidden = up.multiply(x, work)
    if "gate" in up.outputs:
        width = up.outputs["up"]
        hidden = hidden[:, :width] * silu(hidden[:, width:])
    else:
        hidden = np.maximum(hidden, 0)
    return down.multiply(hidden, work)


def silu(x: np.ndarray) -> np.ndarray:
    """x/(1 + e^(-x)), written with tanh so that nothing overflows.

    Examples
    --------
    >>> silu(np.array([-1e9, 0.0, 1.0])).round(4) + 0
    array([0.    , 0.    , 0.7311])
    """
    half = x * x.dtype.type(0.5)
    return half + half * np.tanh(half)
