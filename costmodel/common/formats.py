"""Number formats: what one stored element takes in memory."""

from dataclasses import dataclass
from fractions import Fraction

from costmodel.common.errors import unknown_name


@dataclass(frozen=True)
class Format:
    """A storage format: `bits` per element, plus `scale_bits` shared by each block of `block` elements."""

    name: str
    bits: int
    scale_bits: int = 0
    block: int = 1

    @property
    def bytes(self) -> Fraction:
        """Bytes per element, (bits + scale_bits/block)/8, exactly."""
        return (self.bits + Fraction(self.scale_bits, self.block)) / 8


# Block scales that belong to the format itself are counted (OCP MX 1.0: 8 bits per 32; NVFP4: 8 bits per 16).
# int8, int4 and int3 are bare: their scales depend on the scheme.
FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("fp32", 32),
        Format("bf16", 16),
        Format("fp16", 16),
        Format("fp8", 8),
        Format("int8", 8),
        Format("int4", 4),
        Format("int3", 3),
        Format("mxfp4", 4, scale_bits=8, block=32),
        Format("nvfp4", 4, scale_bits=8, block=16),
    )
}
ALIASES = {
    "float32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
}


def number_format(name: str) -> Format:
    """Look up a format by name.

    Raises
    ------
    UnknownNameError
        when it is not on record; the message lists those that are.

    Examples
    --------
    >>> number_format("bf16").bytes, number_format("int4").bytes, number_format("mxfp4").bytes
    (Fraction(2, 1), Fraction(1, 2), Fraction(17, 32))
    """
    slug = ALIASES.get(str(name).lower(), str(name).lower())
    if slug not in FORMATS:
        raise unknown_name("number format", name, FORMATS)
    return FORMATS[slug]
