"""What a provider charges for prompts with a cached prefix: a dearer write, cheap reads, a minimum, a time to live."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from costmodel.common.checks import number, whole
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
    prefix, suffix : P shared and U new in each request [token]
    requests : n, at least 1, each soon enough after the last to find the prefix
    price_per_million : of 10⁶ plain input tokens, 10⁶·price [$]
    write_multiplier, read_multiplier : w and r, factors on that price
    minimum : a shorter prefix is not cached, without a word, and the two costs are equal [token]

    Returns
    -------
    uncached, cached : cost of all requests [$]

    Raises
    ------
    CostModelError
        for tokens that are not integers of at least 0, no requests, or a price or factor that is negative or infinite

    Examples
    --------
    >>> [round(cost, 4) for cost in prompt_cache_cost(10_000, 500, 100, 3.0)]
    [3.15, 0.4845]
    >>> [round(cost, 4) for cost in prompt_cache_cost(10_000, 500, 1, 3.0)]  # one request only pays the surcharge
    [0.0315, 0.039]

    References
    ----------
    Anthropic's published terms for a five-minute cache: w = 1.25, r = 0.1
    (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
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
    """A request: when it comes, the tokens that its caller marks for caching, and the rest.

    Attributes
    ----------
    time : after any fixed start [s]
    prefix : ids up to the mark; read from the cache or written to it
    suffix : ids behind it; always plain

    Examples
    --------
    >>> prompt_cache_bill([Call(time=0, prefix=[1, 2], suffix=[3])], price_per_million=1e6)  # 1.25·2 + 1
    Bill(read=0, written=2, plain=1, cost=3.5)
    """

    time: float
    prefix: Sequence[int]
    suffix: Sequence[int] = ()


@dataclass(frozen=True)
class Bill:
    """Input tokens by what they cost.

    Attributes
    ----------
    read, written, plain : read from the cache, written to it, and neither [token]
    cost : of all of them, (w·written + r·read + plain)·price [$]

    Examples
    --------
    >>> prompt_cache_bill([Call(0, [1, 2]), Call(1, [1, 2, 3, 4])], price_per_million=1e6)  # 1.25·(2 + 2) + 0.1·2
    Bill(read=2, written=4, plain=0, cost=5.2)
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

    cost = (w·written + r·read + plain)·price.

    Parameters
    ----------
    calls : in order of time
    price_per_million : of 10⁶ plain input tokens, 10⁶·price [$]
    write_multiplier, read_multiplier : w and r, factors on that price
    minimum : a shorter prefix is neither read nor written, and costs the plain price [token]
    ttl : a prefix lives so long after it was last used, that moment included [s]; infinite unless given

    Returns
    -------
    Bill: tokens read, written and plain, and what they cost [$]

    Raises
    ------
    CostModelError
        for a price or factor that is negative or infinite, a minimum that is not an integer of at least 0, a ttl that
        is not a number of at least 0, or time that goes backwards

    Examples
    --------
    >>> system, hour = list(range(2000)), 3600
    >>> calls = [Call(hour * i, system, [i]) for i in range(3)]
    >>> prompt_cache_bill(calls, 3.0)  # (1.25·2000 + 0.1·4000 + 3)·3/10⁶
    Bill(read=4000, written=2000, plain=3, cost=0.008709)
    >>> prompt_cache_bill(calls, 3.0, ttl=300).read  # an hour is too long
    0

    References
    ----------
    Anthropic's published terms for a five-minute cache: w = 1.25, r = 0.1, ttl = 300
    (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
    """
    _prices(price_per_million, write_multiplier, read_multiplier)
    whole("minimum", minimum, 0)
    number("ttl", ttl, 0, infinite=True)
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
        number(name, price, 0)
