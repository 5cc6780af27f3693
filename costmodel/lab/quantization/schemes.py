"""Schemes: how many bits, which weights share a scale, and whether zero is in the middle."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.lab.quantization.groups import from_groups, in_groups
from costmodel.lab.quantization.packing import pack
from costmodel.lab.quantization.rounding import checked_bits, checked_weights, largest_code, quantize, settled_scale


@dataclass(frozen=True)
class Scheme:
    """A way to round weights to integers.

    Parameters
    ----------
    bits : of a code, 1 to 8
    group : neighbours in a row that share a scale; None for the whole row, 0 for the whole matrix
    symmetric : codes -(2^(bits-1) - 1) … 2^(bits-1) - 1 around 0; else 0 … 2^bits - 1 with a zero point
    scale_bits : 16 rounds scales up to bf16; None keeps them in the weights' precision

    Raises
    ------
    CostModelError
        for bits, group or scale_bits other than these

    Examples
    --------
    >>> Scheme(4, group=128, scale_bits=16).effective_bits(4096)
    Fraction(33, 8)

    References
    ----------
    Dettmers et al., LLM.int8(), 2208.07339, section 2: absmax (symmetric) and zero-point quantization.
    """

    bits: int = 8
    group: int | None = None
    symmetric: bool = True
    scale_bits: int | None = None

    def __post_init__(self) -> None:
        checked_bits(self.bits)
        group = self.group
        if group is not None and (isinstance(group, bool) or not isinstance(group, int) or group < 0):
            raise CostModelError(f"group must be at least 1, 0 for the whole matrix or None for rows, got {group!r}")
        if self.scale_bits not in (None, 16):
            raise CostModelError(f"scale_bits must be 16, or None for the weights' own, got {self.scale_bits!r}")

    def effective_bits(self, columns: int, rows: int = 1, precision: int = 32) -> Fraction:
        """Bits per weight with scales and zero points, the ragged last group of a row a group like others.

        Parameters
        ----------
        columns, rows : of the matrix
        precision : bits of a scale that is kept in the weights' precision

        Returns
        -------
        bits + groups·(bits of a scale and its zero point)/(rows·columns), exact [bit]

        Raises
        ------
        CostModelError
            for sizes that are not positive integers
        """
        for name, value in (("columns", columns), ("rows", rows), ("precision", precision)):
            whole(name, value, 1)
        groups = 1 if self.group == 0 else rows * -(-columns // (self.group or columns))
        each = (self.scale_bits or precision) + (0 if self.symmetric else self.bits)
        return self.bits + Fraction(groups * each, rows * columns)

    def quantize(self, W: np.ndarray) -> "Quantized":
        """Round a matrix. On the grid it found, rounding again changes nothing; a symmetric grid is even found again.

        Parameters
        ----------
        W : (rows, columns) finite numbers; (columns,) is one row

        Returns
        -------
        Quantized, of W's shape

        Raises
        ------
        CostModelError
            for NaN, ±inf, a W without numbers, or more than two axes
        """
        W = checked_weights(W)
        if W.ndim > 2:
            raise CostModelError(f"W must have one or two axes, got shape {W.shape}")
        rows = W.reshape(-1, W.shape[-1])
        parts = in_groups(rows, self.group)
        if self.symmetric and self.scale_bits is None and self.bits > 1:  # the zeros that fill a group change nothing
            codes, scales = quantize(parts, self.bits)
            zeros = None
        else:
            scales, zeros = self.grid(parts, in_groups(np.ones(rows.shape, W.dtype), self.group))
            codes = self.codes(parts, scales, zeros)
        codes = from_groups(codes, rows.shape).reshape(W.shape)
        return Quantized(self, codes, scales[..., 0], None if zeros is None else zeros[..., 0], W.dtype)

    def grid(self, x: np.ndarray, real: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray | None]:
        """Scales, and zero points unless symmetric, of groups that lie along the last axis.

        The range always includes 0, so that 0 has a code. A group of zeros has scale 1 (symmetric, one bit: 0).

        Parameters
        ----------
        x : (…, group)
        real : 1 for numbers of the matrix, 0 for those that fill a ragged group

        Returns
        -------
        (…, 1) scales, (…, 1) zero points or None
        """
        low, high = (f.reduce(x, axis=-1, keepdims=True) for f in (np.minimum, np.maximum))
        largest = np.maximum(high, -low)
        if not self.symmetric:
            low, high = np.minimum(low, 0), np.maximum(high, 0)
            with np.errstate(over="ignore", invalid="ignore"):
                scales = self._stored(settled_scale(high - low, 2**self.bits - 1))
            # Half up, so that both ends of the range keep a code when they lie half a step off the grid.
            return scales, np.floor(-low / scales + x.dtype.type(0.5))
        if self.bits > 1:
            return self._stored(settled_scale(largest, largest_code(self.bits)), largest_code(self.bits)), None
        settled_scale(largest, 1)  # refuses what is not finite
        real = np.ones_like(x) if real is None else real
        alike = (np.abs(x) * real == largest * real).all(axis=-1, keepdims=True)  # their mean would be rounded
        mean = (np.abs(x) / real.sum(axis=-1, keepdims=True)).sum(axis=-1, keepdims=True)
        return self._stored(np.where(alike, largest, mean).astype(x.dtype)), None

    def codes(self, x: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None) -> np.ndarray:
        """The nearest codes, int8 or uint8; numbers beyond the grid get its ends."""
        if zeros is not None:
            return np.clip(np.rint(x / scales + zeros), 0, 2**self.bits - 1).astype(np.uint8)
        if self.bits == 1:
            return np.where(x < 0, -1, 1).astype(np.int8)
        top = largest_code(self.bits)
        return np.clip(np.rint(x / scales), -top, top).astype(np.int8)

    def _stored(self, scales: np.ndarray, top: int = 0) -> np.ndarray:
        """In 8 significant bits where asked: upwards, so that nothing is clipped. By up to a part in 128, which from a
        largest code of 64 on would leave that code unused; then to the nearest, which clips by less than half a step.
        """
        if self.scale_bits is None:
            return scales
        return rounded_to_bf16(scales, np.rint if top > 63 else np.ceil)


@dataclass(frozen=True)
class Quantized:
    """A rounded matrix.

    Attributes
    ----------
    scheme : how it was rounded
    codes : (rows, columns) as W: int8 when symmetric, else uint8
    scales : (rows, groups), or (1, 1) for the whole matrix
    zeros : zero points, whole numbers, one for each scale; None when symmetric
    dtype : of the weights

    Examples
    --------
    >>> rounded = Scheme(4, symmetric=False, scale_bits=16).quantize([[0.0, 6.0, 30.0, 3.0]])  # s = 30/15, z = 0
    >>> rounded.codes.tolist(), rounded.values().tolist()
    ([[0, 3, 15, 2]], [[0.0, 6.0, 30.0, 4.0]])
    >>> rounded.nbytes  # 2 for four codes, 2 for the scale, 1 for the zero point
    5
    """

    scheme: Scheme
    codes: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | None
    dtype: np.dtype

    def values(self) -> np.ndarray:
        """s·(q - z): what the codes stand for, in the weights' dtype."""
        rows = self.codes.reshape(-1, self.codes.shape[-1])
        parts = in_groups(rows, self.scheme.group).astype(self.dtype)
        if self.zeros is not None:
            parts -= self.zeros[..., np.newaxis]
        parts *= self.scales[..., np.newaxis]
        return from_groups(parts, rows.shape).reshape(self.codes.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the packed codes, scales and packed zero points [byte]."""
        scale_bytes = self.scales.size * (self.scheme.scale_bits or 8 * self.scales.itemsize) // 8
        zeros = 0 if self.zeros is None else pack(self.zeros.astype(np.uint8).reshape(1, -1), self.scheme.bits).nbytes
        return pack(self.codes, self.scheme.bits).nbytes + scale_bytes + zeros


def rounded_to_bf16(x: np.ndarray, rounding: np.ufunc = np.ceil) -> np.ndarray:
    """A number of 8 significant bits near a positive x, by default not below it: times any code it is exact in float32.

    Examples
    --------
    >>> rounded_to_bf16(np.array([1.0, 1.001])).tolist()
    [1.0, 1.0078125]
    """
    mantissa, exponent = np.frexp(x)
    return np.ldexp(rounding(mantissa * 256) / 256, exponent).astype(x.dtype)
