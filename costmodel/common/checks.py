"""Checks of plain numbers, each refusing by name."""

from math import inf
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar

from costmodel.common.errors import CostModelError

Value = TypeVar("Value")


def is_real(value: object) -> TypeGuard[float]:
    """Whether it is an ordinary real number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object, least: float, most: float = inf) -> TypeGuard[int]:
    """Whether it is an integer of any type from `least` to `most`; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def whole(name: str, value: object, least: int) -> int:
    """The value as an int, or a refusal that names it.

    Examples
    --------
    >>> whole("slots", 8, 1)
    8
    """
    if is_whole(value, least):
        return int(value)
    raise CostModelError(f"{name} must be an integer of at least {least}, got {value!r}")


def amount(name: str, value: object, least: float, most: float = inf) -> Any:
    """The value, where it is a real number from `least` to `most`, or a refusal that names it.

    Examples
    --------
    >>> amount("price", 2.5, 0)
    2.5
    """
    if is_real(value) and least <= value <= most:
        return value
    raise CostModelError(f"{name} must be a number from {least:g} to {most:g}, got {value!r}")


def number(name: str, value: object, least: float, *, infinite: bool = False) -> Any:
    """The value, where it is a real number of at least `least` (infinity only where that has a meaning), or a refusal.

    Examples
    --------
    >>> number("price", 2.5, 0), number("lifetime", inf, 0, infinite=True)
    (2.5, inf)
    """
    if is_real(value) and least <= value and (infinite or value < inf):
        return value
    kind = "number" if infinite else "finite number"
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
