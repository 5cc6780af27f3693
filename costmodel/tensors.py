"""Operands: what a step reads and writes, how many elements, of which role, and how wide each element is."""

from collections.abc import Mapping
from dataclasses import dataclass

from costmodel.exact import Number, quotient
from costmodel.symbols import NOTATION, K, N, b_a, b_kv, b_w

ROLES = ("weight", "cache", "activation")


@dataclass(frozen=True)
class Widths:
    """Bytes per weight, per cached key/value element and per activation."""

    weight: Number = 2
    cache: Number = 2
    activation: Number = 2


SIXTEEN_BIT = Widths()
SYMBOLIC = Widths(b_w, b_kv, b_a)


@dataclass(frozen=True)
class Tensor:
    """An operand: its axes as written, how many elements it has, its role, and whether it stays on chip."""

    axes: str
    elements: Number
    role: str
    on_chip: bool = False

    def bytes(self, widths: Widths) -> Number:
        """Elements x width of the role [byte]; 0 when on chip."""
        return 0 if self.on_chip else self.elements * getattr(widths, self.role)


def axis_sizes(sizes: Mapping[str, Number] | None = None) -> dict[str, Number]:
    """Every letter's size: the symbol itself unless `sizes` binds it; G is N/K."""
    given = dict(sizes or {})
    known = {name: line.symbol for name, line in NOTATION.items()} | given
    if "G" not in given:
        known["G"] = quotient(known.get("N", N), known.get("K", K))
    return known
