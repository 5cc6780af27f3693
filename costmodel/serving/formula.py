"""Formulas in T and S turned into plain Python that adds integers: exact, and a thousand times as fast as `.subs`."""

from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from sympy import Expr, Min, Poly, expand, floor, sympify

from costmodel.common.errors import CostModelError
from costmodel.exact import tidy
from costmodel.symbols import S, T

Exact: TypeAlias = Any  # an int or a Fraction; in ticks always an int


def as_fraction(value: Expr) -> Fraction:
    """An exact fraction; a float (the average of mixed formats) as the fraction it is."""
    if not value.is_number:
        raise CostModelError(f"serving needs numbers; {sorted(s.name for s in value.free_symbols)} have no value")
    return Fraction(int(value.p), int(value.q)) if value.is_Rational else Fraction(float(value))


class Atom:
    """min(u, v) or ⌊u/c⌋ inside a formula: its parts are linear in T and S."""

    def __init__(self, expr: Expr) -> None:
        self.is_min = isinstance(expr, Min)
        above, below = (
            (expr.args, 1) if self.is_min else ((expr.args[0].as_numer_denom()[0],), expr.args[0].as_numer_denom()[1])
        )
        self.below = int(below)
        self.parts = [(int(p.coeff(T)), int(p.coeff(S)), int(p.subs({T: 0, S: 0}))) for p in above]

    def value(self, tokens: int, context: int) -> int:
        """At T and S."""
        found = [t * tokens + s * context + one for t, s, one in self.parts]
        return min(found) if self.is_min else found[0] // self.below


class Polynomial:
    """A formula in T, S and their atoms, of degree two at most, with exact coefficients.

    Examples
    --------
    >>> Polynomial(3 * S * T + Min(S, 10)).at(2, 30)
    190
    """

    def __init__(self, expr: Expr) -> None:
        expr = expand(sympify(expr))
        found = sorted(expr.atoms(Min, floor), key=str)
        self.atoms = [Atom(atom) for atom in found]
        terms = Poly(expr, T, S, *found).terms() if expr.free_symbols else [((0, 0), expr)]
        self.terms: list[tuple[Exact, int, int]] = []
        for powers, coefficient in terms:
            factors = [place + 1 for place, power in enumerate(powers) for _ in range(power)]
            if len(factors) > 2:
                raise CostModelError(f"a pass is not quadratic in its tokens: {expr}")
            self.terms.append((tidy(as_fraction(coefficient)), *([0, 0, *factors][-2:])))

    @cached_property
    def plain(self) -> tuple[Exact, ...]:
        """Coefficients of 1, T, S, T², T·S, S²."""
        found = {(i, j): c for c, i, j in self.terms}
        return tuple(found.get(key, 0) for key in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)))

    def scaled(self, unit: Fraction) -> "Polynomial":
        """Every coefficient times `unit`."""
        copy = object.__new__(Polynomial)
        copy.atoms = self.atoms
        copy.terms = [(tidy(c * unit), i, j) for c, i, j in self.terms]
        return copy

    @property
    def denominators(self) -> list[int]:
        """Of every coefficient."""
        return [Fraction(c).denominator for c, _, _ in self.terms]

    def at(self, tokens: int, context: int) -> Exact:
        """Value at T and S."""
        if not self.atoms:
            k, t, s, tt, ts, ss = self.plain
            return k + tokens * (t + tt * tokens + ts * context) + context * (s + ss * context)
        v = [1, tokens, context, *[atom.value(tokens, context) for atom in self.atoms]]
        return sum([c * v[i] * v[j] for c, i, j in self.terms])


class Piecewise:
    """A formula in S alone that is linear between known contexts: windows end, chunks begin anew.

    Examples
    --------
    >>> line = Piecewise(Polynomial(3 * S + 2 * Min(S, 10)))
    >>> line.at(4), line.at(12), line.last(4), line.last(12)
    ((20, 5), (56, 3), 10, None)
    """

    def __init__(self, formula: Polynomial) -> None:
        self.constant: Exact = 0
        self.slope: Exact = 0
        self.windows: list[tuple[Exact, int]] = []
        self.chunks: list[tuple[Exact, int]] = []
        self.breaks = bool(formula.atoms)
        for coefficient, one, place in formula.terms:
            if one:
                raise CostModelError("a decode step is not linear in the context")
            if place == 0:
                self.constant += coefficient
            elif place == 2:
                self.slope += coefficient
            else:
                self._atom(coefficient, formula.atoms[place - 3])

    def _atom(self, coefficient: Exact, atom: Atom) -> None:
        context = next((p for p in atom.parts if p[1] == 1), None)
        if atom.is_min and context == (0, 1, 0):
            self.windows.append((coefficient, next(one for _, s, one in atom.parts if not s)))
        elif not atom.is_min and context == (0, 1, -1):
            self.chunks.append((coefficient, atom.below))
        else:
            raise CostModelError("a decode step depends on the context in a way that is not understood")

    def at(self, context: int) -> tuple[int, int]:
        """Value at S, and by how much it grows a step until the piece ends."""
        value, slope = self.constant + self.slope * context, self.slope
        if not self.breaks:
            return value, slope
        for coefficient, window in self.windows:
            if context < window:
                value, slope = value + coefficient * context, slope + coefficient
            else:
                value += coefficient * window
        for coefficient, chunk in self.chunks:
            value += coefficient * ((context - 1) // chunk)
        return value, slope

    def last(self, context: int) -> int | None:
        """The last context for which the piece at S holds; None if it never ends."""
        ends = [window for _, window in self.windows if context < window]
        ends += [chunk * ((context - 1) // chunk + 1) for _, chunk in self.chunks]
        return min(ends, default=None)
