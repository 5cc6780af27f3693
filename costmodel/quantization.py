"""What fewer bits buy: bytes per weight with scales, and by how much a step gets faster, never more than its bytes."""

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, amount, quotient, whole
from costmodel.ops import Ledger
from costmodel.symbols import bits, group, scale_bits


def effective_bits(bits: Number = bits, group: Number = group, scale_bits: Number = scale_bits) -> Number:
    """bits + scale_bits/group: what a weight takes when every group of them shares a scale.

    Parameters
    ----------
    bits : of a code [bit]
    group : number of weights that share a scale
    scale_bits : of the scale, and of the zero point or minimum where there is one [bit]

    Returns
    -------
    size of a weight [bit]: an int, a Fraction, or a formula

    Raises
    ------
    CostModelError
        for a group that is neither a symbol nor a whole number of at least 1, bits that are not above 0, or scale_bits
        below 0

    Examples
    --------
    >>> effective_bits()
    bits + scale_bits/group
    >>> effective_bits(4, 128, 16), effective_bits(4, 32, 32)  # AWQ's usual group; Q4_1 with a scale and a minimum
    (Fraction(33, 8), 5)

    References
    ----------
    Lin et al., AWQ, 2306.00978; Dettmers and Zettlemoyer, The case for 4-bit precision, 2212.09720.
    """
    whole(group, "group")
    return amount(bits, "bits") + quotient(amount(scale_bits, "scale_bits", at_least=0), group)


def weight_width(bits: Number = bits, group: Number = group, scale_bits: Number = scale_bits) -> Number:
    """`effective_bits`/8, bytes per weight, as `Deployment(weights=…)` takes them.

    Parameters
    ----------
    bits : of a code [bit]
    group : number of weights that share a scale
    scale_bits : of the scale, and of the zero point or minimum where there is one [bit]

    Returns
    -------
    size of a weight [byte]

    Raises
    ------
    CostModelError
        for a group that is neither a symbol nor a whole number of at least 1, bits that are not above 0, or scale_bits
        below 0

    Examples
    --------
    >>> weight_width(4, 128, 16)  # (4 + 16/128)/8
    Fraction(33, 64)
    """
    return quotient(effective_bits(bits, group, scale_bits), 8)


def byte_ratio(before: Ledger, after: Ledger) -> Number:
    """Bytes of a pass before/after: at any peak and bandwidth its speed-up lies between 1 and this.

    Under a roofline seconds = max(flops/peak, bytes/bandwidth); the flops are the same, so the ratio of two such maxima
    is 1 where they decide both, the ratio of the bytes where these do, and between the two elsewhere.

    Parameters
    ----------
    before, after : ledgers of the same pass, sized

    Returns
    -------
    ratio of the bytes

    Raises
    ------
    CostModelError
        when their FLOPs differ

    Examples
    --------
    >>> from costmodel import mlp
    >>> from fractions import Fraction
    >>> from costmodel.operation import Widths
    >>> wide, narrow = (mlp().at(B=1, T=1, D=8, F=32).sized(Widths(w, 2, 2)) for w in (2, Fraction(1, 2)))
    >>> round(float(byte_ratio(wide, narrow)), 2)
    3.12

    References
    ----------
    Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009.
    """
    if before.flops != after.flops:
        raise CostModelError(f"the two passes must do the same work, got {before.flops} and {after.flops} FLOPs")
    return quotient(before.bytes, after.bytes)
