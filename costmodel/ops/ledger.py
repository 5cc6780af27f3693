"""The ledger: named rows of operations, each with how often it happens; its sums are the totals."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sympy import Expr, expand

from costmodel.exact import Number
from costmodel.operation import SYMBOLIC, Widths, intensity, substitute
from costmodel.ops.row import Row
from costmodel.symbols import bindings
from costmodel.tables import Formula, Table


@dataclass(frozen=True, repr=False)
class Ledger:
    """Named rows whose sums are the totals; it shows itself as a table in a notebook and as text elsewhere.

    `ledger[name]` is the first row of that name, `a + b` the rows of both.

    Attributes
    ----------
    rows : what is done, each a Row

    Raises
    ------
    KeyError
        listing the rows, when `ledger[name]` finds none

    Examples
    --------
    >>> from costmodel.ops import contract
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
        """The same rows, each happening `count` times as often.

        Parameters
        ----------
        count : number of times, a number or a symbol

        Returns
        -------
        Ledger

        Examples
        --------
        >>> from costmodel.ops import contract
        >>> Ledger([Row("up", contract("B D, D F -> B F"))]).times(32).flops
        64*B*D*F
        """
        return self if count == 1 else Ledger(replace(row, count=row.count * count) for row in self.rows)

    def sized(self, widths: Widths = SYMBOLIC) -> "Ledger":
        """The same rows with other element sizes; b_w, b_kv, b_a unless numbers are given.

        Parameters
        ----------
        widths : size of an element by role [byte], numbers or symbols

        Returns
        -------
        Ledger of the same FLOPs and other bytes

        Examples
        --------
        >>> from costmodel.ops import contract
        >>> ledger = Ledger([Row("up", contract("B D, D F -> B F"))])
        >>> ledger.sized().bytes, ledger.sized(Widths(weight=1)).bytes
        (B*D*b_a + B*F*b_a + D*F*b_w, 2*B*D + 2*B*F + D*F)
        """
        return Ledger(replace(row, op=row.op.sized(widths)) for row in self.rows)

    def subs(self, values: Mapping[Any, Any]) -> "Ledger":
        """Every row with symbols replaced: `{T: 1}` or `{"T": 1}`.

        Parameters
        ----------
        values : {symbol of `costmodel.symbols`, or its name: number or formula}

        Returns
        -------
        Ledger

        Raises
        ------
        KeyError
            for a letter that the notation does not have, or a look-alike symbol made elsewhere

        Examples
        --------
        >>> from costmodel.ops import contract
        >>> Ledger([Row("up", contract("B D, D F -> B F"))]).subs({"B": 1, "D": 4}).flops
        8*F
        """
        bound = bindings(values)
        return Ledger(Row(row.name, row.op.subs(bound), substitute(row.count, bound)) for row in self.rows)

    def at(self, **values: Number) -> "Ledger":
        """`subs` with letters as keywords: `ledger.at(T=1)`.

        Parameters
        ----------
        values : number of each letter's things, or a formula

        Returns
        -------
        Ledger

        Raises
        ------
        KeyError
            for a letter that the notation does not have

        Examples
        --------
        >>> from costmodel.ops import contract
        >>> bound = Ledger([Row("up", contract("B D, D F -> B F"))]).at(B=1, D=4, F=8)
        >>> bound.flops, bound.bytes
        (64, 88)
        """
        return self.subs(values)

    def elements(self, role: str) -> Number:
        """Elements of one role that cross the memory boundary, over all rows.

        Parameters
        ----------
        role : "weight", "cache", "activation" or "state"

        Returns
        -------
        number of elements read and written, what stays on chip left out

        Examples
        --------
        >>> from costmodel.ops import contract
        >>> ledger = Ledger([Row("up", contract("B D, D F -> B F"))])
        >>> ledger.elements("weight"), ledger.elements("activation")
        (D*F, B*D + B*F)
        """
        return sum(
            row.count * t.elements
            for row in self.rows
            for t in (*row.op.reads, *row.op.writes)
            if t.role == role and not t.on_chip
        )

    def table(self) -> Table:
        """The rows and their total; a column of what is sent to other devices where anything is.

        Returns
        -------
        Table: step, times, reads, writes, FLOPs [FLOP], bytes [byte], and sent [byte]; brackets hold what stays on chip

        Examples
        --------
        >>> from costmodel.ops import contract
        >>> print(Ledger([Row("up", contract("B D, D F -> B F"))]).at(B=1, D=4, F=8).table())
        step    times    reads     writes      FLOPs    bytes
        ------  -------  --------  --------  -------  -------
        up      1        B D, D F  B F            64       88
        total                                     64       88
        """
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
