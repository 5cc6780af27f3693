"""Tables and quantities for people: text in a terminal, HTML with mathematics in a notebook."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import copysign

from sympy import Basic, Expr, Integer, Max, Min, collect, expand, floor, latex

from costmodel.symbols import LATEX_NAMES, NOTATION, L, used_in

PREFIXES = (
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
)


def latex_of(expression: object) -> str:
    """LaTeX of a formula, in the notation's own spelling."""
    return latex(expression, symbol_names=LATEX_NAMES) if isinstance(expression, Basic) else plain(expression)


def display_form(formula: object) -> object:
    """The formula as people write it: multiplied out, with what every layer shares gathered behind L.

    Parameters
    ----------
    formula : SymPy expression; anything else comes back as it is

    Returns
    -------
    an equal expression, inside Max, Min and floor as well

    Examples
    --------
    >>> from costmodel.symbols import B, D, F
    >>> display_form(2 * B * (D * L + F * L + D))
    2*B*D + L*(2*B*D + 2*B*F)
    """
    if not isinstance(formula, Expr):
        return formula
    if isinstance(formula, Max | Min | floor):
        return formula.func(*map(display_form, formula.args))
    numerator, denominator = formula.as_numer_denom()
    return collect(expand(numerator), L) / denominator


def plain(value: object) -> str:
    """A number as people write it: integers grouped in threes, other numbers to six digits, the rest as text.

    Examples
    --------
    >>> plain(16060522496), plain(0.0123456789), plain("memory")
    ('16,060,522,496', '0.0123457', 'memory')
    """
    if isinstance(value, int | Integer) and not isinstance(value, bool):
        return f"{int(value):,}"
    return f"{float(value):.6g}" if isinstance(value, float | Fraction) else str(value)


def with_prefix(value: float, unit: str, digits: int = 4) -> str:
    """A quantity with a decimal prefix: GB is 10^9 bytes, never 2^30.

    Parameters
    ----------
    value : the quantity in `unit` [its unit]
    unit : written after the prefix, such as "B" or "s"
    digits : number of significant digits

    Returns
    -------
    text such as "16.06 GB"; prefixes go from n (1e-9) to P (1e15), what is smaller or larger is written without one

    Examples
    --------
    >>> with_prefix(16060522496, "B"), with_prefix(0.00477, "s"), with_prefix(0, "B")
    ('16.06 GB', '4.77 ms', '0 B')
    """
    value = float(value)
    size = abs(float(f"{value:.{digits}g}"))  # rounded first: 0.9996 s to three digits is 1 s, not 1e+03 ms
    scale, prefix = next(((s, p) for s, p in PREFIXES if size >= s * (1 - 1e-9)), (1.0, ""))
    shown = copysign(scale, value) if abs(value) < scale <= size else value
    return f"{shown / scale:.{digits}g} {prefix}{unit}"


def rate(value: float) -> str:
    """A rate for reading: whole from a hundred up, four digits below.

    Examples
    --------
    >>> rate(14583.4), rate(124.675), rate(3.14159)
    ('14,583', '125', '3.142')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.4g}"


@dataclass(frozen=True, repr=False)
class Formula:
    """A cell that is mathematics: text in a terminal, LaTeX in a notebook.

    Attributes
    ----------
    value : SymPy expression or number

    Examples
    --------
    >>> from costmodel.symbols import B, D, F
    >>> Formula(2 * B * D * F), Formula(2 * B * D * F).html()
    (2*B*D*F, '$2 B D F$')
    """

    value: object

    def __str__(self) -> str:
        return plain(self.value)

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {latex_of(self.value)}$"

    def html(self) -> str:
        """The cell as inline LaTeX, a number as plain digits."""
        return f"${latex_of(self.value)}$" if isinstance(self.value, Basic) else plain(self.value)


@dataclass(frozen=True, repr=False)
class Table:
    """Rows under a header: text in a terminal, HTML with mathematics in a notebook.

    Attributes
    ----------
    header : names of the columns
    rows : cells of each row, as many as there are names: text, numbers or Formula

    Examples
    --------
    >>> print(Table(["model", "params"], [["llama-2-13b", 13015864320]]))
    model                params
    -----------  --------------
    llama-2-13b  13,015,864,320
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]

    def __str__(self) -> str:
        """An aligned table for a terminal."""
        from tabulate import tabulate  # only when a table is printed: a single answer starts faster without it

        cells = [[plain(cell) for cell in row] for row in self.rows]
        align = ["right" if self._numeric(column) else "left" for column in zip(*self.rows, strict=True)]
        return tabulate(cells, headers=self.header, disable_numparse=True, colalign=align or None)

    __repr__ = __str__

    @staticmethod
    def _numeric(column: Iterable[object]) -> bool:
        values = (cell.value if isinstance(cell, Formula) else cell for cell in column)
        return all(isinstance(value, int | float | Fraction | Integer) or value == "" for value in values)

    def _repr_html_(self) -> str:
        """A table that notebooks show, formulas as LaTeX between dollar signs."""

        from html import escape  # only where HTML is shown

        def cell(value: object, tag: str = "td") -> str:
            inner = value.html() if isinstance(value, Formula) else escape(plain(value))
            return f'<{tag} style="text-align:left">{inner}</{tag}>'

        lines = ["".join(cell(name, "th") for name in self.header), *("".join(map(cell, row)) for row in self.rows)]
        head, *body = (f"<tr>{line}</tr>" for line in lines)
        return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def notation(*formulas: object) -> Table:
    """The symbols that the formulas use, each with its meaning and unit; all of them if no formula is given.

    Parameters
    ----------
    formulas : SymPy expressions, or numbers, which use none

    Returns
    -------
    Table: symbol, meaning, and unit where any has one

    Examples
    --------
    >>> from costmodel.symbols import D, F
    >>> print(notation(2 * D * F))
    symbol    meaning
    --------  ------------------
    D         model width
    F         feed-forward width
    """
    lines = used_in(*formulas) if formulas else list(NOTATION.values())
    columns = 3 if any(line.unit for line in lines) else 2
    rows = [[Formula(line.symbol), line.meaning, line.unit][:columns] for line in lines]
    return Table(["symbol", "meaning", "unit"][:columns], rows)
