"""Deployments side by side, and those of them that no other beats."""

from collections.abc import Sequence
from dataclasses import dataclass

from costmodel.common.errors import CostModelError
from costmodel.sizing.deployment import Deployment
from costmodel.sizing.levers import Use, metric
from costmodel.sizing.words import titled
from costmodel.tables import Table, rate, with_prefix

FITS = ("fits", "does not fit")


@dataclass(frozen=True)
class Point:
    """One deployment at one batch: seconds per token, tokens/s, bytes, whether it fits, $ per million if priced."""

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


def compare(
    deployments: Sequence[Deployment], *, batch: int = 1, context: int = 1024,
    prices: Sequence[float] | None = None, utilisation: float = 1,
) -> Table:  # fmt: skip
    """One row for each deployment: latency, throughput, memory, room, and dollars where prices are given.

    Parameters
    ----------
    batch, context : the same for all
    prices : of one device for one hour, one for each deployment [$]

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> cards = [Deployment(load("llama-3-8b"), accelerator(name)) for name in ("h100-sxm", "h200-sxm")]
    >>> print(compare(cards, batch=16, context=8192))  # doctest: +ELLIPSIS
    deployment ...
    """
    asked: Sequence[float | None] = [None] * len(deployments) if prices is None else prices
    if len(asked) != len(deployments):
        raise CostModelError(f"{len(asked)} prices for {len(deployments)} deployments: give one for each")
    header = ["deployment", "ms per token", "tokens/s", "memory", "largest batch", ""]
    rows = []
    for d, price in zip(deployments, asked, strict=True):
        p = point(d, batch, context, price, utilisation)
        most = d.largest_batch(context)
        row: list[object] = [titled(d), f"{1e3 * p.latency:.4g}", rate(p.throughput), with_prefix(p.memory, "B")]
        row += ["unbounded" if most is None else most, FITS[not p.fits]]
        rows.append(row if price is None else [*row, f"{p.dollars_per_million:.4g}"])
    return Table(header if asked[0] is None else [*header, "$ per million out"], rows)


def pareto(
    deployments: Sequence[Deployment], *, batch: Sequence[int], context: int = 1024,
    against: str = "throughput", prices: Sequence[float] | None = None, utilisation: float = 1,
) -> list[Point]:  # fmt: skip
    """The points that fit and that no other beats in latency and in throughput (or dollars) at once, fastest first.

    Parameters
    ----------
    batch : the batches to try for each deployment
    against : "throughput" [token/s] or "dollars_per_million" [$], which needs prices
    prices : of one device for one hour, one for each deployment [$]

    Raises
    ------
    CostModelError
        when nothing fits
    """
    if against not in ("throughput", "dollars_per_million"):
        raise CostModelError(f"against must be 'throughput' or 'dollars_per_million', got {against!r}")
    if against == "dollars_per_million" and prices is None:
        raise CostModelError("dollars need prices=[…], one for each deployment, in $ per device and hour")
    asked: Sequence[float | None] = [None] * len(deployments) if prices is None else prices
    tried = [
        point(d, b, context, price, utilisation)
        for d, price in zip(deployments, asked, strict=True)
        for b in batch
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
