"""Arithmetic that serves Python integers and SymPy expressions alike, exactly.

Formulas here are written once and fed either numbers or symbols. Three operations would spoil that: `/` turns
integers into floats, and SymPy's `Min` and `Max` cost milliseconds where `min` and `max` do.
"""

from fractions import Fraction
from math import ceil
from numbers import Number as PlainNumber
from typing import TYPE_CHECKING, Any, TypeAlias

from sympy import Expr, Max, Min, Rational, floor

from costmodel.common import checks
from costmodel.common.errors import CostModelError

SMALLEST, LARGEST = 1e-15, 1e45  # every figure in SI units lies between, so that none is lost to a float's range

if TYPE_CHECKING:  # a number or a formula, which only the run tells; SymPy has no annotations that could
    Number: TypeAlias = Any
else:
    Number = int | float | Fraction | Expr


def is_plain(*values: object) -> bool:
    """Whether every value is an ordinary Python number, so that nothing symbolic is involved."""
    return all(isinstance(value, PlainNumber) and not isinstance(value, Expr) for value in values)


def is_open(value: object) -> bool:
    """Whether it is a formula whose letters still have no value."""
    return isinstance(value, Expr) and not value.is_number


def quotient(a: Number, b: Number) -> Number:
    """a/b: an int where it comes out even, a Fraction where not, an expression where either is one.

    Examples
    --------
    >>> quotient(32, 8), quotient(1, 2)
    (4, Fraction(1, 2))
    """
    if is_plain(a, b) and not isinstance(a, float) and not isinstance(b, float):
        return tidy(Fraction(a) / Fraction(b))
    return a / b


def whole_times(a: Number, b: Number) -> Number:
    """⌊a/b⌋: how many whole times b goes into a; symbolic where either is.

    Examples
    --------
    >>> whole_times(7, 3)
    2
    """
    return a // b if is_plain(a, b) else floor(a / b)


def tidy(value: Number) -> Number:
    """A Fraction that is whole becomes the int it equals; anything else stays."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def exact(value: Number) -> Number:
    """A float as the decimal that a person wrote: 0.02 is a fiftieth, not the nearest binary fraction."""
    if isinstance(value, float):
        value = Fraction(str(amount(value, "a target or condition", at_least=-LARGEST)))
    return Rational(value.numerator, value.denominator) if isinstance(value, Fraction) else value


def smallest(a: Number, b: Number) -> Number:
    """min(a, b), symbolic where either is."""
    if is_plain(a, b):
        return min(a, b)
    return a if a == b else Min(a, b)


def largest(a: Number, b: Number) -> Number:
    """max(a, b), symbolic where either is."""
    if is_plain(a, b):
        return max(a, b)
    return a if a == b else Max(a, b)


def stored_bytes(elements: Number, width: Number) -> Number:
    """Elements x width [byte]; half a byte still takes a whole one, so plain numbers round up to an int."""
    value = tidy(elements * width)
    return ceil(value) if is_plain(value) else value


def ratio(a: Number, b: Number) -> Number:
    """a/b where exactness ends: a float for plain numbers, an exact expression where either is one."""
    return float(a / b) if is_plain(a, b) else a / b


def whole(value: Number, what: str, at_least: int = 1, limit: int = 2**63) -> Number:
    """Pass on a symbol or a whole number within limits; refuse anything else by name.

    Raises
    ------
    CostModelError
        naming what it is, its value, and what would be accepted
    """
    if is_open(value):
        return value
    if checks.is_whole(value, at_least, limit):
        return int(value)
    capped = limit < 2**63 or checks.is_whole(value, at_least)
    wanted = f"a whole number from {at_least} to {limit:,}" if capped else f"a whole number, at least {at_least}"
    raise CostModelError(f"{what} must be {wanted}, got {value!r}")


def amount(value: Number, what: str, at_least: float = SMALLEST, at_most: float = LARGEST) -> Number:
    """Pass on a symbol or a real number within limits; refuse anything else by name.

    Raises
    ------
    CostModelError
        naming what it is, its value, and what would be accepted

    Examples
    --------
    >>> amount(0.5, "bytes per element", 0, 64)
    0.5
    """
    if is_open(value) or (isinstance(value, Expr) and value.is_real and at_least <= value <= at_most):
        return value
    return checks.amount(what, value, at_least, at_most)
