"""Codes as they lie in memory: one after another with no bit between them, each row from a whole byte on."""

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.lab.quantization.rounding import checked_bits


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """⌈columns·bits/8⌉ bytes for each row, the first code in the lowest bits.

    Parameters
    ----------
    codes : (…, columns), int8 from -2^(bits-1) to 2^(bits-1) - 1 (±1 for one bit), or uint8 from 0 to 2^bits - 1
    bits : 1 to 8

    Returns
    -------
    (…, ⌈columns·bits/8⌉) uint8 [byte]; the bits that fill a row's last byte are 0

    Raises
    ------
    CostModelError
        when a code does not fit, or for bits out of range, codes of another dtype, or a single number

    Examples
    --------
    >>> pack(np.array([3, -7, 0], np.int8), 4).tolist()  # 3 + 8 = 11, -7 + 8 = 1: 11 + 16·1; then 0 + 8 = 8
    [27, 8]
    """
    codes = np.asarray(codes)
    low, high = _range(bits, codes.dtype)
    if not codes.ndim:
        raise CostModelError(f"codes must have at least one axis, got the number {codes}")
    if codes.size and not (low <= codes.min() and codes.max() <= high):
        raise CostModelError(f"codes of {bits} bits lie between {low} and {high}, got {codes.min()} to {codes.max()}")
    raised = (codes.astype(np.int16) - low >> (low == -1 and high == 1)).astype(np.uint8)
    spread = raised[..., np.newaxis] >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(spread.reshape(*codes.shape[:-1], codes.shape[-1] * bits), axis=-1, bitorder="little")


def unpack(data: np.ndarray, bits: int, columns: int, signed: bool = True) -> np.ndarray:
    """The codes that `pack` was given, as int8 or, unsigned, uint8.

    Parameters
    ----------
    data : (…, ⌈columns·bits/8⌉) uint8
    bits, columns : as packed
    signed : whether they were int8

    Returns
    -------
    (…, columns) codes

    Raises
    ------
    CostModelError
        when rows of data are not ⌈columns·bits/8⌉ bytes, or for bits out of range or a negative number of columns

    Examples
    --------
    >>> unpack(np.array([27, 8], np.uint8), 4, 3).tolist()  # 27 = 11 + 16·1: 11 - 8 = 3, 1 - 8 = -7; then 8 - 8 = 0
    [3, -7, 0]
    """
    low, high = _range(bits, np.dtype(np.int8 if signed else np.uint8))
    data, size = np.asarray(data, np.uint8), -(-whole("columns", columns, 0) * bits // 8)
    if data.shape[-1:] != (size,):
        raise CostModelError(f"{columns} codes of {bits} bits take {size} bytes, got shape {data.shape}")
    spread = np.unpackbits(data, axis=-1, count=columns * bits, bitorder="little")
    spread = spread.reshape(*data.shape[:-1], columns, bits)
    raised = (spread << np.arange(bits, dtype=np.uint8)).sum(axis=-1, dtype=np.int16)
    return ((raised << (low == -1 and high == 1)) + low).astype(np.int8 if signed else np.uint8)


def _range(bits: int, dtype: np.dtype) -> tuple[int, int]:
    checked_bits(bits)
    if dtype == np.uint8:
        return 0, 2**bits - 1
    if dtype != np.int8:
        raise CostModelError(f"codes must be int8 or uint8, got {dtype}")
    return (-1, 1) if bits == 1 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
