"""Small floating-point formats: which numbers they can hold."""

from dataclasses import dataclass

from costmodel.common.errors import unknown_name


@dataclass(frozen=True)
class FloatFormat:
    """Sign, exponent and mantissa: ±2^(e - bias)·(1 + m/2^mantissa), and below the smallest normal number equal steps.

    Attributes
    ----------
    exponent, mantissa : bits
    bias : of the exponent
    largest : the largest finite number

    Examples
    --------
    >>> FLOATS["fp8-e4m3fn"].bits, FLOATS["fp8-e4m3fn"].largest, FLOATS["fp4-e2m1"].smallest
    (8, 448.0, 0.5)
    """

    name: str
    exponent: int
    mantissa: int
    bias: int
    largest: float

    @property
    def bits(self) -> int:
        """1 + exponent + mantissa."""
        return 1 + self.exponent + self.mantissa

    @property
    def smallest(self) -> float:
        """The smallest positive number, 2^(1 - bias - mantissa)."""
        return 2.0 ** (1 - self.bias - self.mantissa)

    @property
    def step(self) -> float:
        """The gap above 1: 2^-mantissa."""
        return 2.0**-self.mantissa


# e4m3fn has no infinities and gives their codes to numbers (Micikevicius et al., 2209.05433): H100's. e4m3 keeps them
# as IEEE 754 would, and e4m3fnuz (one zero, bias 8) ends at 240 as well. e2m1 is the element of mxfp4 and nvfp4.
FLOATS: dict[str, FloatFormat] = {
    f.name: f
    for f in (
        FloatFormat("fp32", 8, 23, 127, (2 - 2.0**-23) * 2.0**127),
        FloatFormat("bf16", 8, 7, 127, (2 - 2.0**-7) * 2.0**127),
        FloatFormat("fp16", 5, 10, 15, 65504.0),
        FloatFormat("fp8-e4m3fn", 4, 3, 7, 448.0),
        FloatFormat("fp8-e4m3", 4, 3, 7, 240.0),
        FloatFormat("fp8-e4m3fnuz", 4, 3, 8, 240.0),
        FloatFormat("fp8-e5m2", 5, 2, 15, 57344.0),
        FloatFormat("fp4-e2m1", 2, 1, 1, 6.0),
    )
}


def float_format(name: str) -> FloatFormat:
    """Look up a floating-point format by name.

    Raises
    ------
    UnknownNameError
        when it is not on record; the message lists those that are

    Examples
    --------
    >>> float_format("fp8-e5m2").largest
    57344.0
    """
    if name not in FLOATS:
        raise unknown_name("floating-point format", name, FLOATS)
    return FLOATS[name]
