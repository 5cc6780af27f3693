"""What a provider charges for prompts with a cached prefix: a dearer write, cheap reads, a minimum, a time to live."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError


def prompt_cache_cost(
    prefix: int,
    suffix: int,
    requests: int,
    price_per_million: float,
    write_multiplier: float = 1.25,
    read_multiplier: float = 0.1,
    *,
    minimum: int = 0,
) -> tuple[float, float]:
    """Input cost of requests that share a prefix, without and with a prompt cache.

    uncached = n·(P + U)·price; cached = (P·(w + (n - 1)·r) + n·U)·price.

    Parameters
    ----------
    prefix, suffix : P shared tokens, U new ones in each request
    requests : n, each soon enough after the last to find the prefix
    price_per_million : of input tokens [$]
    write_multiplier, read_multiplier : w and r, of that price
    minimum : a shorter prefix is not cached, without a word

    Returns
    -------
    (uncached, cached) [$]

    Examples
    --------
    >>> [round(cost, 4) for cost in prompt_cache_cost(10_000, 500, 100, 3.0)]
    [3.15, 0.4845]
    """
    for name, value in (("prefix", prefix), ("suffix", suffix), ("minimum", minimum)):
        whole(name, value, 0)
    whole("requests", requests, 1)
    _prices(price_per_million, write_multiplier, read_multiplier)
    uncached = requests * (prefix + suffix)
    first, later = (write_multiplier, read_multiplier) if prefix >= minimum else (1, 1)
    cached = prefix * (first + (requests - 1) * later) + requests * suffix
    return uncached * price_per_million / 1e6, cached * price_per_million / 1e6


@dataclass(frozen=True)
class Call:
    """A request: when [s], the tokens that its caller marks for caching, and the rest."""

    time: float
    prefix: Sequence[int]
    suffix: Sequence[int] = ()


@dataclass(frozen=True)
class Bill:
    """Input tokens by what they cost.

    Attributes
    ----------
    read, written, plain : tokens read from the cache, written to it, and neither
    cost : of all of them [$]
    """

    read: int
    written: int
    plain: int
    cost: float


def prompt_cache_bill(
    calls: Iterable[Call],
    price_per_million: float,
    write_multiplier: float = 1.25,
    read_multiplier: float = 0.1,
    *,
    minimum: int = 0,
    ttl: float = inf,
) -> Bill:
    """Input cost of calls one by one: the longest living cached prefix is read, what is marked beyond it is written.

    Parameters
    ----------
    calls : in order of time
    price_per_million : of input tokens [$]
    write_multiplier, read_multiplier : of that price
    minimum : a shorter prefix is not cached
    ttl : a prefix lives so long after it was last used [s]

    Raises
    ------
    CostModelError
        for negative prices, or time that goes backwards

    Examples
    --------
    >>> system, hour = list(range(2000)), 3600
    >>> calls = [Call(hour * i, system, [i]) for i in range(3)]
    >>> prompt_cache_bill(calls, 3.0).read, prompt_cache_bill(calls, 3.0, ttl=300).read
    (4000, 0)
    """
    _prices(price_per_million, write_multiplier, read_multiplier)
    kept: dict[tuple[int, ...], float] = {}  # prefix -> when it expires
    now, read, written, plain = -inf, 0, 0, 0
    for call in calls:
        if not call.time >= now:
            raise CostModelError(f"time must not go backwards, got {call.time} after {now}")
        now = call.time
        kept = {prefix: end for prefix, end in kept.items() if end >= now}
        marked = tuple(call.prefix)
        found = max((p for p in kept if marked[: len(p)] == p), key=len, default=())
        plain += len(call.suffix)
        if len(marked) < minimum:
            plain += len(marked)
            continue
        read += len(found)
        written += len(marked) - len(found)
        if found:
            kept[found] = now + ttl
        if marked:
            kept[marked] = now + ttl
    tokens = write_multiplier * written + read_multiplier * read + plain
    return Bill(read, written, plain, tokens * price_per_million / 1e6)


def _prices(*prices: float) -> None:
    for name, price in zip(("price_per_million", "write_multiplier", "read_multiplier"), prices, strict=True):
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < inf:
            raise CostModelError(f"{name} must be a number of at least 0, got {price!r}")
