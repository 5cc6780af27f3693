"""A deployment in a few words, for tables, attributes and reasons."""

from collections.abc import Iterable
from typing import Any

from costmodel.common.errors import CostModelError
from costmodel.parallel import Parallel
from costmodel.sizing.deployment import Deployment

WAYS = ("tensor", "data", "expert", "pipeline", "replicas")


def several(name: str, values: object) -> list[Any]:
    """The values of a sequence; a single one, or a text, is refused.

    Examples
    --------
    >>> several("batch", range(1, 4))
    [1, 2, 3]
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise CostModelError(f"{name} must be a sequence, such as [{values!r}], got {values!r}")
    return list(values)


def as_spread(ways: Parallel | int) -> Parallel:
    """A spread; a plain number is the devices that split every matrix.

    Examples
    --------
    >>> as_spread(4) == Parallel(tensor=4)
    True
    """
    return ways if isinstance(ways, Parallel) else Parallel(tensor=ways)


def spread_words(spread: Parallel) -> str:
    """How a model is spread.

    Examples
    --------
    >>> spread_words(Parallel(tensor=4, replicas=2)), spread_words(Parallel())
    ('tensor 4, replicas 2', 'one device')
    """
    ways = {name: getattr(spread, name) for name in WAYS}
    return ", ".join(f"{name} {n}" for name, n in ways.items() if n != 1) or "one device"


def format_words(deployment: Deployment) -> str:
    """The formats of weights and cache."""
    weights = deployment.model.stored_dtype() if deployment.weights is None else deployment.weights
    return f"weights {weights}, cache {deployment.cache}"


def titled(deployment: Deployment) -> str:
    """Model, accelerator, spread and formats.

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> titled(Deployment(load("llama-3-8b"), accelerator("h100-sxm"), weights="int4"))
    'llama-3-8b on h100-sxm, weights int4, cache bf16'
    """
    d = deployment
    spread = f" ({spread_words(d.parallel)})" if d.parallel.devices != 1 else ""
    return f"{d.model.name} on {d.accelerator.name}{spread}, {format_words(d)}"
