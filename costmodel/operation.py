"""One step of a forward pass: what it reads and writes, of which role and width, and its FLOPs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sympy import Expr, cancel

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain
from costmodel.symbols import b_a, b_kv, b_w, bindings

ROLES = ("weight", "cache", "activation", "state")


@dataclass(frozen=True)
class Widths:
    """Bytes per weight, per cached key/value element, per activation and per element of a constant state.

    Attributes
    ----------
    weight, cache, activation, state : size of one element [byte], a number or a symbol

    Examples
    --------
    >>> Widths(weight=1).weight, Widths(weight=1).cache
    (1, 2)
    """

    weight: Number = 2
    cache: Number = 2
    activation: Number = 2
    state: Number = 2


SIXTEEN_BIT = Widths()
SYMBOLIC = Widths(b_w, b_kv, b_a, b_a)


@dataclass(frozen=True)
class Tensor:
    """An operand: its axes as written, its elements, its role, whether it stays on chip, and the size of each axis.

    Attributes
    ----------
    axes : letters, as in "B T D"
    elements : number of elements
    role : "weight", "cache", "activation" or "state", which says how wide an element is
    on_chip : whether it never reaches memory, and so costs no bytes
    dims : number of elements along each axis, where known

    Examples
    --------
    >>> Tensor("D F", 32, "weight").bytes(Widths()), Tensor("D F", 32, "weight", on_chip=True).bytes(Widths())
    (64, 0)
    """

    axes: str
    elements: Number
    role: str
    on_chip: bool = False
    dims: tuple[Number, ...] = ()

    def bytes(self, widths: Widths) -> Number:
        """Elements x width of the role [byte]; 0 when on chip."""
        return 0 if self.on_chip else self.elements * getattr(widths, self.role)


@dataclass(frozen=True)
class Op:
    """One step of a forward pass: what it reads, what it writes, and its FLOPs.

    Attributes
    ----------
    flops : floating-point operations of the contraction [FLOP]
    reads, writes : operands, each with its role
    widths : size of an element by role [byte]; 2 unless said otherwise
    sends : what leaves the device for another one; it is no memory traffic
    messages : number of sends that follow each other

    Examples
    --------
    >>> weights, x, y = Tensor("D F", 32, "weight"), Tensor("D", 4, "activation"), Tensor("F", 8, "activation")
    >>> op = Op(64, (weights, x), (y,))  # one vector of 4 through a 4 x 8 matrix: 2·4·8 FLOPs, 2·(32 + 4 + 8) bytes
    >>> op.bytes, op.sized(Widths(1, 2, 2, 2)).bytes
    (88, 56)
    """

    flops: Number
    reads: tuple[Tensor, ...] = ()
    writes: tuple[Tensor, ...] = ()
    widths: Widths = SIXTEEN_BIT
    sends: tuple[Tensor, ...] = ()
    messages: Number = 0

    @property
    def bytes(self) -> Number:
        """Bytes moved between memory and chip [byte]."""
        return sum(t.bytes(self.widths) for t in (*self.reads, *self.writes))

    @property
    def sent(self) -> Number:
        """Bytes that leave the device for another one [byte]."""
        return sum(t.bytes(self.widths) for t in self.sends)

    @property
    def intensity(self) -> Number:
        """Arithmetic intensity, FLOPs per byte moved [FLOP/byte]."""
        return intensity(self.flops, self.bytes)

    @property
    def operands(self) -> tuple[str, str]:
        """The axes of what is read and of what is written; brackets hold what stays on chip."""
        show = lambda ts: ", ".join(f"[{t.axes}]" if t.on_chip else t.axes for t in ts)  # noqa: E731
        return show(self.reads), show(self.writes)

    def with_flops(self, flops: Number) -> "Op":
        """The same traffic with other work."""
        return replace(self, flops=flops)

    def sized(self, widths: Widths = SYMBOLIC) -> "Op":
        """The same step with other element sizes; b_w, b_kv, b_a unless numbers are given."""
        return replace(self, widths=widths)

    def subs(self, values: Mapping[Any, Any]) -> "Op":
        """The same step with symbols replaced."""
        bound = bindings(values)
        bind = lambda t: replace(  # noqa: E731
            t, elements=substitute(t.elements, bound), dims=tuple(substitute(size, bound) for size in t.dims)
        )
        widths = Widths(*(substitute(getattr(self.widths, role), bound) for role in ROLES))
        reads, writes, sends = (tuple(map(bind, tensors)) for tensors in (self.reads, self.writes, self.sends))
        return Op(substitute(self.flops, bound), reads, writes, widths, sends, substitute(self.messages, bound))


def substitute(value: Number, bound: Mapping[Any, Any]) -> Number:
    """The value with symbols replaced; a plain number stays."""
    return value.subs(bound) if isinstance(value, Expr) else value


def intensity(flops: Number, moved: Number) -> Number:
    """flops/bytes [FLOP/byte], as one fraction where symbolic."""
    if moved == 0:
        raise CostModelError("intensity is FLOPs per byte moved; nothing is moved here")
    return flops / moved if is_plain(flops, moved) else cancel(flops / moved)
