"""Checks of plain numbers, each refusing by name."""

from math import inf
from numbers import Real
from operator import index
from typing import Any, TypeVar

from costmodel.common.errors import CostModelError

Value = TypeVar("Value")


def whole(name: str, value: Any, least: int) -> int:
    """The value as an int, or a refusal that names it.

    Examples
    --------
    >>> whole("slots", 8, 1)
    8
    """
    try:
        found = None if isinstance(value, bool) else index(value)
    except TypeError:  # floats and texts, but also arrays of many numbers
        found = None
    if found is None or found < least:
        raise CostModelError(f"{name} must be an integer of at least {least}, got {value!r}")
    return found


def number(name: str, value: Any, least: float, *, infinite: bool = False) -> None:
    """Refuse by name what is no real number of at least `least`, infinity too unless it is said to have a meaning.

    Examples
    --------
    >>> number("price", 2.5, 0)
    >>> number("lifetime", inf, 0, infinite=True)
    """
    kind = "number" if infinite else "finite number"
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not least <= value or (value == inf and not infinite):
        raise CostModelError(f"{name} must be a {kind} of at least {least}, got {value!r}")


def present(name: str, value: Value | None) -> Value:
    """The value, or a refusal that names what is missing.

    Examples
    --------
    >>> present("batch", 8)
    8
    """
    if value is None:
        raise CostModelError(f"{name} is not stated, and is needed here")
    return value
