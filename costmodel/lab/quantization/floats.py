"""Rounding to small floats, plain and with a scale for each block (OCP Microscaling 1.0; NVIDIA's NVFP4).

Ties go to the even mantissa. What lies beyond the largest number becomes the largest (a saturating conversion).
"""

from collections.abc import Callable

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.common.float_formats import FloatFormat, float_format
from costmodel.lab.quantization.groups import from_groups, in_groups
from costmodel.lab.quantization.rounding import checked_bits, checked_weights


def round_to_float(x: np.ndarray, name: str = "fp8-e4m3fn") -> np.ndarray:
    """The nearest number that the format holds.

    Parameters
    ----------
    x : (…, n) finite numbers
    name : of `costmodel.common.float_formats.FLOATS`

    Returns
    -------
    (…, n) in x's precision, float32 or float64; beyond the format's largest number, that one

    Raises
    ------
    CostModelError
        for NaN, ±inf, an x without numbers, or a name that is not on record

    Examples
    --------
    >>> round_to_float([0.3, 17.0, 1000.0]).tolist(), round_to_float([1000.0], "fp8-e4m3").tolist()
    ([0.3125, 16.0, 448.0], [240.0])

    References
    ----------
    Micikevicius et al., FP8 formats for deep learning, 2209.05433.
    """
    x = checked_weights(x, "x")
    if not np.isfinite(x).all():
        raise CostModelError("x has a value that is NaN or infinite; every number must be finite")
    return _nearest(x, float_format(name))


def _nearest(x: np.ndarray, form: FloatFormat) -> np.ndarray:
    exponent = np.maximum(np.frexp(x)[1] - 1, 1 - form.bias)  # below the smallest normal number steps stay equal
    step = np.ldexp(np.ones_like(x), exponent - form.mantissa)
    return np.clip(np.rint(x / step) * step, -form.largest, form.largest).astype(x.dtype)


def mxfp4(W: np.ndarray) -> np.ndarray:
    """W through mxfp4: e2m1 numbers, 32 of a row under one scale 2^k, k = ⌊log2 max⌋ - 2, so 4 + 8/32 bits per weight.

    A block's largest may lie beyond 6·2^k and is then cut to it.

    Parameters
    ----------
    W : (…, columns) finite numbers; the last block of a row may be shorter

    Returns
    -------
    (…, columns), the numbers that the codes stand for, in W's precision

    Raises
    ------
    CostModelError
        for NaN, ±inf or a W without numbers

    Examples
    --------
    >>> mxfp4([[1.0, 3.3, 8.0, 0.1]]).tolist()  # scale 2^(3 - 2) = 2: 3.3/2 = 1.65 becomes 1.5
    [[1.0, 3.0, 8.0, 0.0]]

    References
    ----------
    Open Compute Project, Microscaling Formats (MX) 1.0, 2023, section 6.3.
    """
    return _in_blocks(W, 32, lambda largest: np.ldexp(1.0, np.clip(np.frexp(largest)[1] - 3, -127, 127)))


def nvfp4(W: np.ndarray) -> np.ndarray:
    """W through nvfp4: e2m1 numbers, 16 of a row under one e4m3 scale, those under one fp32 scale for the whole matrix.

    The matrix's scale is max/(448·6), so that the largest block's scale is the largest e4m3 number. 4 + 8/16 bits per
    weight.

    Parameters
    ----------
    W : (…, columns) finite numbers; the last block of a row may be shorter

    Returns
    -------
    (…, columns), the numbers that the codes stand for, in W's precision

    Raises
    ------
    CostModelError
        for NaN, ±inf or a W without numbers

    Examples
    --------
    >>> nvfp4([[1.0, 3.3, 8.0, 0.1]]).round(3).tolist()  # the block's scale is 8/6: 3.3/(8/6) = 2.475 becomes 2
    [[1.333, 2.667, 8.0, 0.0]]

    References
    ----------
    NVIDIA, Pretraining large language models with NVFP4, 2509.25149.
    """
    W = checked_weights(W)
    largest = np.abs(W).max()
    whole = np.float64(largest) / (448 * 6) if largest > 0 else 1.0
    return _in_blocks(W, 16, lambda block: _nearest(block / 6 / whole, float_format("fp8-e4m3fn")) * whole)


def _in_blocks(W: np.ndarray, size: int, scale_of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    W = checked_weights(W)
    if not np.isfinite(W).all():
        raise CostModelError("W has a value that is NaN or infinite; every weight must be finite")
    rows = W.reshape(-1, W.shape[-1])
    parts = in_groups(rows, size).astype(np.float64)
    scale = scale_of(np.abs(parts).max(axis=-1, keepdims=True))
    scale = np.where(scale > 0, scale, 1.0)
    rounded = _nearest(parts / scale, float_format("fp4-e2m1")) * scale
    return from_groups(rounded, rows.shape).reshape(W.shape).astype(W.dtype)


def scale_and_minimum(W: np.ndarray, bits: int = 4, group: int = 32) -> np.ndarray:
    """W through d·q + m, 0 ≤ q < 2^bits, with d = (max - min)/(2^bits - 1) and m = min of a group in fp16.

    4 bits in groups of 32 are llama.cpp's Q4_1: 4 + (16 + 16)/32 = 5 bits per weight. What is on such a grid already
    comes back exactly.

    Parameters
    ----------
    W : (rows, columns), columns a multiple of the group, values within fp16's range
    bits : of a code q, 1 to 8 [bit]
    group : neighbours in a row that share d and m, at least 1

    Returns
    -------
    (rows, columns), the numbers that the codes stand for, in W's precision

    Raises
    ------
    CostModelError
        for a W without numbers, a group that is ragged or no positive integer, bits out of range, or values that fp16
        cannot hold

    Examples
    --------
    >>> scale_and_minimum([[0.0, 1.0, 2.5, 15.0]], group=4).tolist()  # d = 15/15, and the tie 2.5 goes to the even 2
    [[0.0, 1.0, 2.0, 15.0]]

    References
    ----------
    llama.cpp, block_q4_1, https://github.com/ggml-org/llama.cpp
    """
    W, steps = checked_weights(W), 2 ** checked_bits(bits) - 1
    if W.shape[-1] % whole("group", group, 1):
        raise CostModelError(f"columns must be a multiple of the group, {group}, got {W.shape[-1]}")
    parts = W.reshape(-1, group)
    low = parts.min(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        d, m = (a.astype(np.float16).astype(W.dtype) for a in ((parts.max(axis=1, keepdims=True) - low) / steps, low))
    if not (np.isfinite(d).all() and np.isfinite(m).all()):
        raise CostModelError("W has a value that is NaN, infinite or beyond fp16's 65,504")
    codes = np.clip(np.rint((parts - m) / np.where(d > 0, d, 1)), 0, steps)
    return (codes * d + m).reshape(W.shape)
