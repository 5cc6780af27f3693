"""Max, Min, floor and ceiling taken apart: calculus and algebra work on one smooth branch at a time."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from sympy import Expr, Max, Min, Symbol, ceiling, floor

from costmodel.exact import Number

TIE = 1e-12  # relative difference below which two branches are taken to be equal


def without_steps(formula: Expr, x: Symbol, at: Number | None = None) -> Expr:
    """Every ⌈x/n⌉ as x/n; given a point, as that multiple of x which has the same value there.

    Examples
    --------
    >>> from costmodel.symbols import B, S
    >>> without_steps(S + ceiling(B / 8), B), without_steps(S + ceiling(B / 8), B, at=4)
    (B/8 + S, B/4 + S)
    """
    steps = [step for step in formula.atoms(ceiling) if step.has(x)]
    return formula.xreplace({step: step.args[0] if at is None else x * step.subs(x, at) / at for step in steps})


def branches(formula: Expr, x: Symbol) -> Iterator[Expr]:
    """Every way to choose one argument of each Max and Min in which x occurs."""
    if not formula.has(x) or not formula.has(Max, Min):
        yield formula
    elif isinstance(formula, Max | Min):
        for argument in formula.args:
            yield from branches(argument, x)
    else:
        for chosen in product(*(list(branches(argument, x)) for argument in formula.args)):
            yield formula.func(*chosen)


def binding_branch(formula: Expr, at: Mapping[Any, Any], *, last: bool = False) -> tuple[Expr, bool]:
    """The smooth formula that holds at a point, and whether another holds there as well.

    Parameters
    ----------
    formula : with Max, Min, floor or ceiling
    at : a value for every symbol
    last : at a tie, take the last of those that hold instead of the first

    Examples
    --------
    >>> from costmodel.symbols import B, S
    >>> binding_branch(Max(2 * B, S) + 1, {B: 3, S: 4})
    (2*B + 1, False)
    >>> binding_branch(Max(2 * B, S), {B: 2, S: 4})[1]
    True
    """
    if not formula.args or not formula.has(Max, Min, floor, ceiling):
        return formula, False
    if isinstance(formula, floor | ceiling):  # constant between its steps
        return formula.subs(at), False
    parts = [binding_branch(argument, at, last=last) for argument in formula.args]
    if not isinstance(formula, Max | Min):
        return formula.func(*(part for part, _ in parts)), any(tie for _, tie in parts)
    values = [float(part.subs(at)) for part, _ in parts]
    best = max(values) if isinstance(formula, Max) else min(values)
    holding = [i for i, value in enumerate(values) if abs(value - best) <= TIE * abs(best)]
    holding.sort(key=lambda i: parts[i][0].is_number == isinstance(formula, Max))  # the first holds on as symbols grow
    chosen, tie = parts[holding[-1 if last else 0]]
    return chosen, tie or len(holding) > 1
