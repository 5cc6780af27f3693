"""Deployments side by side, and those of them that no other beats."""

from collections.abc import Sequence
from dataclasses import dataclass

from costmodel.common.checks import amount, whole
from costmodel.common.errors import CostModelError
from costmodel.sizing.deployment import Deployment
from costmodel.sizing.levers import Use, metric
from costmodel.sizing.money import checked_utilisation
from costmodel.sizing.words import several, titled
from costmodel.tables import Table, rate, with_prefix

FITS = ("fits", "does not fit")


@dataclass(frozen=True)
class Point:
    """One deployment at one batch.

    Attributes
    ----------
    deployment, batch : what runs, and B [sequence]
    latency : time per output token [s]
    throughput : output of the batch [token/s]
    memory : weights and caches, on the fullest device [byte]
    fits : whether the device holds that
    dollars_per_million : cost of a million output tokens [$]; None without a price

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> found = point(Deployment(load("llama-3-8b"), accelerator("h100-sxm")), batch=60, context=8192)
    >>> found.fits, found.memory == 16060522496 + 60 * 8192 * 131072
    (False, True)
    """

    deployment: Deployment
    batch: int
    latency: float
    throughput: float
    memory: float
    fits: bool
    dollars_per_million: float | None = None


def point(
    deployment: Deployment, batch: int, context: int, price: float | None = None, utilisation: float = 1
) -> Point:
    """The deployment at this batch and context."""
    step = deployment.decode(batch, context)
    money = None
    if price is not None:
        use = Use(batch, context, price=price, utilisation=utilisation)
        money = float(metric("dollars_per_million").formula(deployment, use))
    fits = deployment.fits(batch, context)
    return Point(deployment, batch, step.seconds_per_token, step.tokens_per_s, step.memory_bytes, fits, money)


def _priced(
    deployments: Sequence[Deployment], prices: Sequence[float] | None, utilisation: float
) -> list[tuple[Deployment, float | None]]:
    """Each deployment with its price; None where none are given."""
    amount("utilisation", checked_utilisation(utilisation), 0, 1)
    if prices is None:
        return [(d, None) for d in deployments]
    asked = [amount("a price", price, 0) for price in several("prices", prices)]
    if len(asked) != len(deployments):
        raise CostModelError(f"{len(asked)} prices for {len(deployments)} deployments: give one for each")
    return list(zip(deployments, asked, strict=True))


def compare(
    deployments: Sequence[Deployment], *, batch: int = 1, context: int = 1024,
    prices: Sequence[float] | None = None, utilisation: float = 1,
) -> Table:  # fmt: skip
    """One row for each deployment: latency, throughput, memory, room, and dollars where prices are given.

    Parameters
    ----------
    deployments : what to set side by side
    batch, context : the same for all [sequence], [token]
    prices : of one device for one hour, one for each deployment [$]
    utilisation : share of the paid time spent on such work

    Returns
    -------
    Table: deployment, time per token [ms], throughput [token/s], memory [byte], the largest batch at this context
    [sequence], whether it fits, and the cost of a million output tokens [$]

    Raises
    ------
    CostModelError
        when there are not as many prices as deployments, or one is no number of at least 0; for a batch or context that
        is no whole number of at least 1, and a utilisation outside (0, 1]

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> cards = [Deployment(load("llama-3-8b"), accelerator(name)) for name in ("h100-sxm", "l40s")]
    >>> [row[4:] for row in compare(cards, batch=32, context=8192).rows]  # 59 and 29 sequences fit
    [[59, 'fits'], [29, 'does not fit']]
    """
    batch, context = whole("batch", batch, 1), whole("context", context, 1)
    header = ["deployment", "ms per token", "tokens/s", "memory", "largest batch", ""]
    rows = []
    for d, price in _priced(deployments, prices, utilisation):
        p = point(d, batch, context, price, utilisation)
        most = d.largest_batch(context)
        row: list[object] = [titled(d), f"{1e3 * p.latency:.4g}", rate(p.throughput), with_prefix(p.memory, "B")]
        row += ["unbounded" if most is None else most, FITS[not p.fits]]
        rows.append(row if price is None else [*row, f"{p.dollars_per_million:.4g}"])
    return Table(header if prices is None else [*header, "$ per million out"], rows)


def pareto(
    deployments: Sequence[Deployment], *, batch: Sequence[int], context: int = 1024,
    against: str = "throughput", prices: Sequence[float] | None = None, utilisation: float = 1,
) -> list[Point]:  # fmt: skip
    """The points that fit and that no other beats in latency and in throughput (or dollars) at once, fastest first.

    Parameters
    ----------
    deployments : what to choose from
    batch, context : batches to try for each deployment [sequence], and tokens each sequence attends to [token]
    against : "throughput" [token/s] or "dollars_per_million" [$], which needs prices
    prices : of one device for one hour, one for each deployment [$]
    utilisation : share of the paid time spent on such work

    Returns
    -------
    [Point, …]

    Raises
    ------
    CostModelError
        when nothing fits, for another `against`, dollars without prices, not as many prices as deployments, or
        batches or a context that are no whole numbers of at least 1

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> cards = [Deployment(load("llama-3-8b"), accelerator(name)) for name in ("h100-sxm", "l40s")]
    >>> [(p.deployment.accelerator.name, p.batch) for p in pareto(cards, batch=[1, 64, 4096])]
    [('h100-sxm', 1), ('h100-sxm', 64)]
    """
    if against not in ("throughput", "dollars_per_million"):
        raise CostModelError(f"against must be 'throughput' or 'dollars_per_million', got {against!r}")
    if against == "dollars_per_million" and prices is None:
        raise CostModelError("dollars need prices=[…], one for each deployment, in $ per device and hour")
    batches = [whole("batch", one, 1) for one in several("batch", batch)]
    context = whole("context", context, 1)
    tried = [
        point(d, b, context, price, utilisation)
        for d, price in _priced(deployments, prices, utilisation)
        for b in batches
        if d.fits(b, context)
    ]
    if not tried:
        raise CostModelError(
            f"nothing fits: none of {len(deployments)} deployments holds any batch at {context:,} tokens"
        )
    loss = lambda p: -p.throughput if against == "throughput" else p.dollars_per_million  # noqa: E731
    front: list[Point] = []
    for one in sorted(tried, key=lambda p: (p.latency, loss(p))):
        if not front or loss(one) < loss(front[-1]):
            front.append(one)
    return front
