"""Checks of plain numbers, each refusing by name."""

from costmodel.common.errors import CostModelError


def whole(name: str, value: object, least: int) -> int:
    """The value as an int, or a refusal that names it.

    Examples
    --------
    >>> whole("slots", 8, 1)
    8
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise CostModelError(f"{name} must be an integer of at least {least}, got {value!r}")
    return value.__index__()
