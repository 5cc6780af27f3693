"""Operations and the ledger: the cost of a tensor contraction follows from its axes.

FLOPs are 2 x (product of the distinct axes): one multiply and one add per combination. Bytes are the elements of each
operand that crosses the memory boundary, times the size of an element of its role. An operand kept on chip costs none.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from sympy import Expr, expand

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain
from costmodel.operation import ROLES, SIXTEEN_BIT, SYMBOLIC, Op, Tensor, Widths, axis_sizes, intensity, substitute
from costmodel.symbols import bindings
from costmodel.tables import Formula, Table


def _axes(pattern: str, operand: str) -> list[str]:
    axes = operand.split()
    if not axes or len(set(axes)) < len(axes):
        problem = "is empty" if not axes else "repeats an axis"
        raise CostModelError(f"operand {operand!r} of {pattern!r} {problem}; write letters like 'B T D', each once")
    return axes


def contract(
    pattern: str,
    *,
    sizes: Mapping[str, Number] | None = None,
    roles: Sequence[str] | None = None,
    on_chip: Collection[int] = (),
    visible: Number | None = None,
    widths: Widths = SIXTEEN_BIT,
) -> Op:
    """Price a contraction written like einsum, one letter per axis.

    FLOPs = 2·(product of the distinct axes); bytes = the sum of elements x width over operands not on chip.

    Parameters
    ----------
    pattern : inputs, an arrow and the output, as in "B T D, D F -> B T F"
    sizes : size of each axis, for letters that are not to stay symbols
    roles : "weight", "cache" or "activation" for each input and then the output; by default an input without the
        batch axis B is a weight and everything else an activation
    on_chip : positions (0, 1, …; -1 is the output) of operands that never reach memory
    visible : (query, key) pairs that are computed, in place of the product of the axes T and S (a causal mask)
    widths : bytes per element by role [byte]

    Returns
    -------
    Op with flops [FLOP], bytes [byte] and intensity [FLOP/byte]

    Raises
    ------
    CostModelError
        quoting the pattern, when an axis is unknown, repeated, or only in the output

    Examples
    --------
    >>> op = contract("B D, D F -> B F")
    >>> op.flops, op.bytes
    (2*B*D*F, 2*B*D + 2*B*F + 2*D*F)
    >>> contract("B D, D F -> B F", sizes={"B": 1, "D": 4, "F": 8}).flops
    64
    """
    left, arrow, output = pattern.partition("->")
    if not arrow:
        raise CostModelError(f"{pattern!r} has no arrow; write it like 'B T D, D F -> B T F'")
    operands = [_axes(pattern, operand) for operand in left.split(",")] + [_axes(pattern, output)]
    distinct = list(dict.fromkeys(axis for axes in operands[:-1] for axis in axes))
    known = axis_sizes(sizes)
    for axis in (*distinct, *operands[-1]):
        if axis not in known:
            raise CostModelError(
                f"unknown axis {axis!r} in {pattern!r}; give sizes={{{axis!r}: …}} or use a letter of the notation"
            )
        if is_plain(known[axis]) and not known[axis] > 0:
            raise CostModelError(f"axis {axis} of {pattern!r} must be positive, got {known[axis]}")
    if extra := [axis for axis in operands[-1] if axis not in distinct]:
        raise CostModelError(f"axis {extra[0]!r} of {pattern!r} is in the output but in no input")
    if roles is None:
        roles = ["activation" if "B" in axes else "weight" for axes in operands[:-1]] + ["activation"]
    if len(roles) != len(operands) or (unknown := set(roles) - set(ROLES)):
        problem = (
            f"{len(roles)} for {len(operands)} operands" if len(roles) != len(operands) else f"{sorted(unknown)[0]!r}"
        )
        raise CostModelError(f"roles of {pattern!r}: got {problem}; give one of {', '.join(ROLES)} for each")
    kept = {position % len(operands) for position in on_chip}
    tensors = [
        Tensor(" ".join(axes), prod(known[a] for a in axes), role, place in kept, tuple(known[a] for a in axes))
        for place, (axes, role) in enumerate(zip(operands, roles, strict=True))
    ]
    worked = [known[a] for a in distinct if visible is None or a not in ("T", "S")]
    flops = 2 * prod(worked) * (1 if visible is None else visible)
    return Op(flops, tuple(tensors[:-1]), (tensors[-1],), widths)


def elementwise(
    axes: str,
    per_element: Number = 0,
    *,
    sizes: Mapping[str, Number] | None = None,
    gain: str | None = None,
    on_chip: bool = False,
) -> Op:
    """Price a step that touches each element of one activation: reads it, writes it, `per_element` FLOPs on each.

    Examples
    --------
    >>> elementwise("B T D", gain="D").bytes
    4*B*D*T + 2*D
    """
    known = axis_sizes(sizes)
    count = prod(known[a] for a in axes.split())
    x = Tensor(axes, count, "activation", on_chip)
    weights = () if gain is None else (Tensor(gain, prod(known[a] for a in gain.split()), "weight"),)
    return Op(per_element * count, (x, *weights), (x,))


@dataclass(frozen=True)
class Row:
    """A named line of a ledger: an op that happens `count` times."""

    name: str
    op: Op
    count: Number = 1

    @property
    def flops(self) -> Number:
        """Count x the op's FLOPs [FLOP]."""
        return self.count * self.op.flops

    @property
    def bytes(self) -> Number:
        """Count x the op's bytes [byte]."""
        return self.count * self.op.bytes

    @property
    def sent(self) -> Number:
        """Count x the bytes the op sends to other devices [byte]."""
        return self.count * self.op.sent

    @property
    def messages(self) -> Number:
        """Count x the sends of the op that follow each other."""
        return self.count * self.op.messages


@dataclass(frozen=True, repr=False)
class Ledger:
    """Named rows whose sums are the totals; it shows itself as a table in a notebook and as text elsewhere.

    Examples
    --------
    >>> gate = contract("B T D, D F -> B T F", on_chip=[0])
    >>> ledger = Ledger([Row("up", contract("B T D, D F -> B T F")), Row("gate", gate)])
    >>> ledger.flops, ledger["gate"].bytes
    (4*B*D*F*T, 2*B*F*T + 2*D*F)
    """

    rows: Iterable[Row] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))

    @property
    def flops(self) -> Number:
        """Sum of the rows' FLOPs [FLOP]."""
        return sum(row.flops for row in self.rows)

    @property
    def bytes(self) -> Number:
        """Sum of the rows' bytes [byte]."""
        return sum(row.bytes for row in self.rows)

    @property
    def sent(self) -> Number:
        """Sum of what the rows send to other devices [byte]."""
        return sum(row.sent for row in self.rows)

    @property
    def messages(self) -> Number:
        """Sum of the rows' sends that follow each other."""
        return sum(row.messages for row in self.rows)

    @property
    def intensity(self) -> Number:
        """FLOPs per byte over the whole ledger [FLOP/byte]."""
        return intensity(self.flops, self.bytes)

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"no row called {name!r}; the ledger has {', '.join(row.name for row in self.rows)}")

    def __add__(self, other: "Ledger") -> "Ledger":
        return Ledger((*self.rows, *other.rows))

    def times(self, count: Number) -> "Ledger":
        """The same rows, each happening `count` times as often."""
        return self if count == 1 else Ledger(replace(row, count=row.count * count) for row in self.rows)

    def sized(self, widths: Widths = SYMBOLIC) -> "Ledger":
        """The same rows with other element sizes; b_w, b_kv, b_a unless numbers are given."""
        return Ledger(replace(row, op=row.op.sized(widths)) for row in self.rows)

    def subs(self, values: Mapping[Any, Any]) -> "Ledger":
        """Every row with symbols replaced: `{T: 1}` or `{"T": 1}`."""
        bound = bindings(values)
        return Ledger(Row(row.name, row.op.subs(bound), substitute(row.count, bound)) for row in self.rows)

    def at(self, **values: Number) -> "Ledger":
        """`subs` with letters as keywords: `ledger.at(T=1)`."""
        return self.subs(values)

    def elements(self, role: str) -> Number:
        """Elements of one role that cross the memory boundary, over all rows."""
        return sum(
            row.count * t.elements
            for row in self.rows
            for t in (*row.op.reads, *row.op.writes)
            if t.role == role and not t.on_chip
        )

    def table(self) -> Table:
        """The rows and their total; a column of what is sent to other devices where anything is."""
        named = {"FLOPs": "flops", "bytes": "bytes", **({"sent": "sent"} if self.sent != 0 else {})}
        costs = lambda of: [getattr(of, name) for name in named.values()]  # noqa: E731
        lines = [[r.name, r.count, *r.op.operands, *map(Formula, costs(r))] for r in self.rows]
        totals = [Formula(expand(x) if isinstance(x, Expr) else x) for x in costs(self)]
        return Table(["step", "times", "reads", "writes", *named], [*lines, ["total", "", "", "", *totals]])

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
