"""The one door from SymPy to NumPy: a formula is compiled once and evaluated in float64, broadcasting its inputs.

Large grids are worked through in pieces that fit the processor's cache, which about doubles the speed.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np
from sympy import Expr, Pow, Symbol, ceiling, cse, floor, horner, lambdify, sympify
from sympy.printing.numpy import NumPyPrinter

from costmodel.common.errors import CostModelError
from costmodel.symbols import bindings

CHUNK = 16_384  # points per piece: a dozen float64 temporaries of this length stay in a 2 MB cache


class _ExactFloorPrinter(NumPyPrinter):
    """Writes floor(S/49) as floor(S/49), not floor((1/49)*S), which is wrong at exact multiples."""

    def _rounded(self, function: str, expr: Expr) -> str:
        numerator, denominator = expr.args[0].as_numer_denom()
        return f"{self._module_format('numpy.' + function)}(({self._print(numerator)})/({self._print(denominator)}))"

    def _print_Max(self, expr: Expr) -> str:
        return self._nested("maximum", expr)

    def _print_Min(self, expr: Expr) -> str:
        return self._nested("minimum", expr)

    def _nested(self, function: str, expr: Expr) -> str:
        first, *rest = (self._print(arg) for arg in expr.args)
        for other in rest:
            first = f"{self._module_format('numpy.' + function)}({first}, {other})"
        return first

    def _print_floor(self, expr: Expr) -> str:
        return self._rounded("floor", expr)

    def _print_ceiling(self, expr: Expr) -> str:
        return self._rounded("ceil", expr)


_PRINTER = _ExactFloorPrinter({"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": False})


def _nested(formula: Expr, inputs: tuple[Symbol, ...]) -> Expr:
    """Polynomial parts in Horner form, the fewest operations per point; inside floor and ceiling nothing moves."""
    if formula.is_Atom or isinstance(formula, floor | ceiling):
        return formula
    if formula.is_polynomial(*inputs):
        return horner(formula, *inputs)
    return formula.func(*(_nested(part, inputs) for part in formula.args))


def _floated(formula: Expr) -> Expr:
    """Fractions and integers past 2^53 become the nearest float, except in exponents, floor and ceiling."""
    if formula.is_Rational:
        return formula if formula.is_Integer and abs(formula) <= 2**53 else formula.evalf(17)
    if formula.is_Atom or isinstance(formula, floor | ceiling):
        return formula
    if formula.is_Pow:
        return Pow(_floated(formula.base), formula.exp)
    return formula.func(*map(_floated, formula.args))


class CompiledFormula:
    """Formulas compiled together over the same inputs; shared parts are computed once.

    Parameters
    ----------
    formulas : SymPy expressions (numbers are allowed)
    inputs : the symbols that will be given as numbers or arrays

    Raises
    ------
    CostModelError
        naming any symbol that would be left over

    Examples
    --------
    >>> from costmodel.symbols import B, S
    >>> CompiledFormula([2 * B * S, S], [B, S])(np.array([1, 2]), 10)
    [array([20., 40.]), array([10., 10.])]
    """

    def __init__(self, formulas: Sequence[Expr], inputs: Sequence[Symbol]) -> None:
        self.inputs = tuple(inputs)
        self.formulas = tuple(sympify(formula) for formula in formulas)
        left = {s.name for formula in self.formulas for s in formula.free_symbols - set(self.inputs)}
        if left:
            raise CostModelError(
                f"no value for {', '.join(sorted(left))}; given: {', '.join(s.name for s in self.inputs) or 'nothing'}"
            )
        nested = [_floated(_nested(formula, self.inputs)) for formula in self.formulas]
        self._run = lambdify(self.inputs, nested, modules="numpy", printer=_PRINTER, cse=cse)

    def __call__(self, *values: object) -> list[np.ndarray]:
        """Evaluate at numbers or arrays, which broadcast; every result has the broadcast shape, float64."""
        arrays = [np.asarray(value, dtype=np.float64) for value in values]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        results = [np.empty(shape) for _ in self.formulas]
        arrays = [a.reshape((1,) * (len(shape) - a.ndim) + a.shape) for a in arrays]
        for piece in _pieces(shape):
            parts = self._run(*(a[_within(a.shape, piece)] for a in arrays))
            for result, part in zip(results, parts, strict=True):
                result[piece] = part
        return results


def _pieces(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Index tuples that cover `shape` in blocks of at most CHUNK points, last axes whole where they fit."""
    axis = len(shape) - 1
    while axis > 0 and prod(shape[axis:]) <= CHUNK:
        axis -= 1
    if prod(shape) <= CHUNK:
        yield ()
        return
    step = max(1, CHUNK // prod(shape[axis + 1 :]))
    for outer in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*(slice(i, i + 1) for i in outer), slice(start, start + step))


def _within(shape: tuple[int, ...], piece: tuple[slice, ...]) -> tuple[slice, ...]:
    return tuple(slice(None) if length == 1 else part for length, part in zip(shape, piece, strict=False))


@lru_cache(maxsize=256)
def _compiled(formulas: tuple[Expr, ...], inputs: tuple[Symbol, ...]) -> CompiledFormula:
    return CompiledFormula(formulas, inputs)


def compile_formulas(formulas: Sequence[Expr], inputs: Sequence[Symbol]) -> CompiledFormula:
    """The compiled form of these formulas over these inputs, made once per process."""
    return _compiled(tuple(map(sympify, formulas)), tuple(inputs))


def evaluate(formula: Expr, values: Mapping[Symbol | str, object] | None = None, **letters: object) -> np.ndarray:
    """Evaluate a formula at numbers or arrays: float64, broadcasting, compiled once.

    Parameters
    ----------
    formula : SymPy expression
    values, letters : a number or an array for each symbol, as {B: …} or B=…

    Returns
    -------
    array of the broadcast shape (0-d when every value is a number)

    Raises
    ------
    CostModelError
        when a symbol of the formula has no value; the message names it

    Examples
    --------
    >>> from costmodel.symbols import B, S
    >>> evaluate(S * B / (S + B), S=[1, 3], B=1).tolist()
    [0.5, 0.75]
    """
    bound = bindings({**(values or {}), **letters})
    inputs = tuple(sorted(bound, key=lambda s: s.name))
    return compile_formulas([formula], inputs)(*(bound[s] for s in inputs))[0]
