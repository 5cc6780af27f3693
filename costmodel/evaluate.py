"""The one door from SymPy to NumPy: a formula is compiled once and evaluated in float64, broadcasting its inputs.

Large grids are worked through in pieces that fit the processor's cache.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from sympy import Expr, Symbol, sympify

from costmodel.common.errors import CostModelError
from costmodel.program import Program
from costmodel.symbols import bindings

CHUNK = 65_536  # points per piece: half a megabyte an array; smaller pieces pay more for each NumPy call


class CompiledFormula:
    """Formulas compiled together over the same inputs; shared parts are computed once.

    Parameters
    ----------
    formulas : SymPy expressions (numbers are allowed)
    inputs : the symbols that will be given as numbers or arrays
    constants : values of further symbols, which keep their place in the formula

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

    def __init__(
        self, formulas: Sequence[Expr], inputs: Sequence[Symbol], constants: Mapping[Symbol, float] | None = None
    ) -> None:
        constants = constants or {}
        self.inputs = tuple(inputs)
        self.formulas = tuple(sympify(formula) for formula in formulas)
        left = {s.name for formula in self.formulas for s in formula.free_symbols - {*self.inputs, *constants}}
        if left:
            given = ", ".join(s.name for s in self.inputs) or "nothing"
            raise CostModelError(f"no value for {', '.join(sorted(left))}; given: {given}")
        self._program = Program(self.formulas, self.inputs, constants)

    def __call__(self, *values: object) -> list[np.ndarray]:
        """Evaluate at numbers or arrays, which broadcast; every result has the broadcast shape, float64."""
        arrays = [np.asarray(value, dtype=np.float64) for value in values]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        results = [np.empty(shape) for _ in self.formulas]
        axes = max(1, len(shape))
        flat = [a.reshape((1,) * (axes - a.ndim) + a.shape) for a in arrays]
        into = [r.reshape(shape or (1,)) for r in results]
        for piece in _pieces(shape or (1,)):
            self._program.run([a[_within(a.shape, piece)] for a in flat], [r[piece] for r in into])
        return results


def _pieces(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Index tuples that cover `shape` in blocks of at most CHUNK points, last axes whole where they fit."""
    if prod(shape) <= CHUNK:
        yield (slice(None),) * len(shape)
        return
    axis = len(shape) - 1
    while axis > 0 and prod(shape[axis:]) <= CHUNK:
        axis -= 1
    step = max(1, CHUNK // prod(shape[axis + 1 :]))
    for outer in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*(slice(i, i + 1) for i in outer), slice(start, start + step))


def _within(shape: tuple[int, ...], piece: tuple[slice, ...]) -> tuple[slice, ...]:
    return tuple(slice(None) if length == 1 else part for length, part in zip(shape, piece, strict=False))


@lru_cache(maxsize=256)
def _compiled(
    formulas: tuple[Expr, ...], inputs: tuple[Symbol, ...], constants: tuple[tuple[Symbol, float], ...]
) -> CompiledFormula:
    return CompiledFormula(formulas, inputs, dict(constants))


def compile_formulas(
    formulas: Sequence[Expr], inputs: Sequence[Symbol], constants: Mapping[Symbol, float] | None = None
) -> CompiledFormula:
    """The compiled form of these formulas over these inputs, made once per process."""
    return _compiled(tuple(map(sympify, formulas)), tuple(inputs), tuple((constants or {}).items()))


def evaluate(formula: Expr, values: Mapping[Symbol | str, object] | None = None, **letters: Any) -> np.ndarray:
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
