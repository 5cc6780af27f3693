"""Symmetric rounding to integers: the row's largest magnitude gets the largest code.

Ties go to the even code, as IEEE 754 rounds and as NumPy and PyTorch do (llama.cpp rounds them away from zero).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

import numpy as np

from costmodel.common.errors import CostModelError

CHUNK = 1 << 18  # numbers worked on at a time: they stay in the cache from one step to the next
PARALLEL = 1 << 22  # numbers from which a second thread pays


def checked_weights(W: np.ndarray, name: str = "W") -> np.ndarray:
    """W as float32 or float64, when it has rows of numbers; whether they are finite is seen where first read."""
    W = np.asarray(W)
    W = W if W.dtype in (np.float32, np.float64) else W.astype(np.float64)
    if W.ndim == 0 or W.size == 0:
        raise CostModelError(f"{name} must have at least one axis and one number, got shape {W.shape}")
    return W


def checked_bits(bits: int) -> int:
    """A code's width, when a byte holds it."""
    if isinstance(bits, bool) or not isinstance(bits, int | np.integer) or not 1 <= bits <= 8:
        raise CostModelError(f"bits must be a whole number from 1 to 8, got {bits!r}")
    return int(bits)


def largest_code(bits: int) -> int:
    """2^(bits-1) - 1, so that the range is symmetric (-128 and -8 stay unused); 1 for a single bit, whose codes are ±1.

    Examples
    --------
    >>> largest_code(8), largest_code(4), largest_code(2), largest_code(1)
    (127, 7, 1, 1)
    """
    return max(1, 2 ** (checked_bits(bits) - 1) - 1)


def settled_scale(span: np.ndarray, steps: int) -> np.ndarray:
    """span/steps, nudged by at most a rounding error so that (steps·scale)/steps gives the scale back, to the last bit.

    1 where the span is 0. Never below the smallest normal number, whose multiples are exact.

    Raises
    ------
    CostModelError
        when a span is not finite
    """
    if not np.isfinite(span).all():
        raise CostModelError(
            "W has a value that is NaN or infinite, or a range that overflows; every weight must be finite"
        )
    limits, n = np.finfo(span.dtype), span.dtype.type(steps)
    scale = np.maximum(span / n, limits.tiny)
    with np.errstate(over="ignore"):
        scale = np.where(np.isinf(n * scale), np.nextafter(scale, 0, dtype=scale.dtype), scale)
    return np.where(span > 0, n * scale / n, 1).astype(span.dtype, copy=False)


def quantize(W: np.ndarray, bits: int = 8, per_channel: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Codes q = round(W/s) with s = max|W|/(2^(bits-1) - 1), one scale for each row or one for all.

    The error is at most half a step, |W - s·q| ≤ s/2. An all-zero row has codes 0 and scale 1. With one bit the codes
    are the signs and s = mean|W|; all-zero rows then have scale 0.

    Parameters
    ----------
    W : (…, columns) finite numbers
    bits : 1 to 8
    per_channel : a scale for each row, or for the whole of W

    Returns
    -------
    codes (…, columns) int8, and scales of W's precision: (…, 1), or one for all

    Raises
    ------
    CostModelError
        for NaN, ±inf, a W without numbers, or bits out of range

    Examples
    --------
    >>> codes, scales = quantize([0.5, -1.27, 0.02])
    >>> codes.tolist(), scales.round(4).tolist()
    ([50, -127, 2], [0.01])
    >>> codes, scales = quantize([0.5, -1.27, 0.02], bits=4)
    >>> codes.tolist(), scales.round(4).tolist()
    ([3, -7, 0], [0.1814])

    References
    ----------
    Dettmers et al., LLM.int8(), 2208.07339, section 2 (absmax); one bit: Rastegari et al., XNOR-Net, 1603.05279.
    """
    W, top = checked_weights(W), largest_code(bits)
    rows = W.reshape(-1, W.shape[-1])
    whole = None if per_channel else settled_scale(np.max(np.abs([rows.max(), rows.min()]), keepdims=True), top)
    if bits == 1:
        codes, scales = _signs(rows if per_channel else rows.reshape(1, -1))
        return codes.reshape(W.shape), scales.reshape(*W.shape[:-1], 1) if per_channel else scales[0, 0]
    codes, scales = np.empty(rows.shape, np.int8), np.empty((len(rows), 1), W.dtype)

    def work(start: int, stop: int) -> None:
        step = max(1, CHUNK // rows.shape[1])
        room = np.empty((step, rows.shape[1]), W.dtype)
        for at in range(start, stop, step):
            here = slice(at, min(at + step, stop))
            part = room[: here.stop - at]
            if whole is None:
                np.abs(rows[here], out=part)
                scales[here] = settled_scale(part.max(axis=1, keepdims=True), top)
            np.divide(rows[here], scales[here] if whole is None else whole, out=part)
            np.rint(part, out=part)
            np.copyto(codes[here], part, casting="unsafe")

    in_parallel(work, rows.shape)
    return codes.reshape(W.shape), scales.reshape(*W.shape[:-1], 1) if whole is None else whole[0]


def in_parallel(work: Callable[[int, int], object], shape: tuple[int, int]) -> None:
    """work(start, stop) over all rows; large arrays are split among threads (NumPy lets go of the interpreter)."""
    rows, columns = shape
    threads = min(cpu_count() or 1, 4) if rows * columns >= PARALLEL else 1
    ends = np.linspace(0, rows, threads + 1).astype(int).tolist()
    if threads == 1:
        work(0, rows)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends[:-1], ends[1:]))


def _signs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.abs(rows)
    largest = sizes.max(axis=1, keepdims=True)
    settled_scale(largest, 1)  # refuses what is not finite
    alike = sizes.min(axis=1, keepdims=True) == largest  # their mean would be rounded
    scales = np.where(alike, largest, (sizes / rows.shape[1]).sum(axis=1, keepdims=True))
    return np.where(rows < 0, -1, 1).astype(np.int8), scales.astype(rows.dtype, copy=False)


def dequantize(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """s·q, in the precision of the scales.

    Parameters
    ----------
    codes : q, (…, columns)
    scales : s, (…, 1), or one for all

    Returns
    -------
    (…, columns)

    Raises
    ------
    CostModelError
        for scales of another shape

    Examples
    --------
    >>> dequantize(np.array([[3, -7, 0]], np.int8), np.array([[1.27 / 7]])).round(3) + 0
    array([[ 0.544, -1.27 ,  0.   ]])
    """
    codes, scales = np.asarray(codes), np.asarray(scales)
    if scales.size != 1 and scales.shape != (*codes.shape[:-1], 1):
        raise CostModelError(f"scales must be {(*codes.shape[:-1], 1)} or one for all, got shape {scales.shape}")
    return codes * scales


def relative_error(W: np.ndarray, approximation: np.ndarray) -> float:
    """√Σ(W - Ŵ)²/√ΣW², 0 where both are all zeros.

    Parameters
    ----------
    W, approximation : W and Ŵ, of the same shape

    Returns
    -------
    ratio of the two norms, at least 0; inf where only W is all zeros

    Raises
    ------
    CostModelError
        for two shapes

    Examples
    --------
    >>> relative_error([3.0, 4.0], [3.0, 3.0])  # off by 1, of a length of 5
    0.2
    """
    if np.shape(W) != np.shape(approximation):
        raise CostModelError(f"W and Ŵ must have one shape, got {np.shape(W)} and {np.shape(approximation)}")
    size, lost = np.linalg.norm(W), np.linalg.norm(np.subtract(W, approximation))
    return float(lost / size) if size else (0.0 if lost == 0 else np.inf)


def quantization_error(W: np.ndarray, bits: int = 8, per_channel: bool = True) -> float:
    """√Σ(W - s·q)²/√ΣW², the relative error of `quantize`.

    Parameters
    ----------
    W : (…, columns) finite numbers
    bits, per_channel : as in `quantize`

    Returns
    -------
    ratio of the two norms, at least 0

    Raises
    ------
    CostModelError
        as `quantize`

    Examples
    --------
    >>> round(quantization_error([[0.5, -1.27, 0.02]], bits=4), 3)
    0.036
    """
    W = checked_weights(W)
    return relative_error(W, dequantize(*quantize(W, bits, per_channel)))
