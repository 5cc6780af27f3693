"""Checks of plain numbers, each refusing by name."""

from operator import index
from typing import SupportsIndex, TypeVar

from costmodel.common.errors import CostModelError

Value = TypeVar("Value")


def whole(name: str, value: object, least: int) -> int:
    """The value as an int, or a refusal that names it.

    Examples
    --------
    >>> whole("slots", 8, 1)
    8
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or index(value) < least:
        raise CostModelError(f"{name} must be an integer of at least {least}, got {value!r}")
    return index(value)


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
