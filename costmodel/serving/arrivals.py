"""Requests made up by chance, repeatably: arrivals at a rate or in bursts, and lengths like published traces'."""

from dataclasses import dataclass

import numpy as np

from costmodel.common.errors import CostModelError, unknown_name
from costmodel.exact import whole
from costmodel.serving.trace import Trace


def _rate(rate: float) -> float:
    if isinstance(rate, bool) or not 0 < rate < float("inf"):
        raise CostModelError(f"a rate must be above 0 requests/s, got {rate!r}")
    return float(rate)


def poisson_arrivals(rate: float, requests: int, seed: int = 0) -> np.ndarray:
    """Arrival times whose gaps are independent and exponential with mean 1/rate; the first at 0 [s].

    Parameters
    ----------
    rate : mean arrivals per second [request/s]
    requests : how many
    seed : of the chance; the same seed gives the same times

    Returns
    -------
    (requests,), never decreasing [s]

    Raises
    ------
    CostModelError
        for a rate that is not above 0 and finite, fewer than one request, or a negative seed

    Examples
    --------
    >>> times = poisson_arrivals(2.0, 100_001, seed=1)
    >>> float(times[0]), round(float(times[-1]) / 100_000, 2)  # 100,000 gaps of half a second on average
    (0.0, 0.5)
    """
    count: int = whole(requests, "requests", limit=10**8)
    rng = np.random.default_rng(whole(seed, "seed", at_least=0))
    gaps = rng.exponential(1 / _rate(rate), count)
    return np.cumsum(gaps) - gaps[0]


def burst_arrivals(rate: float, requests: int, burst: int, seed: int = 0) -> np.ndarray:
    """Bursts of `burst` requests at once, Poisson in time, at `rate` requests/s in all; the first at 0 [s].

    Parameters
    ----------
    rate : mean arrivals per second, over all bursts [request/s]
    requests : how many; the last burst may be smaller
    burst : requests that arrive at once
    seed : of the chance; the same seed gives the same times

    Returns
    -------
    (requests,), never decreasing [s]

    Raises
    ------
    CostModelError
        for a rate that is not above 0 and finite, a burst or requests below 1, or a negative seed

    Examples
    --------
    >>> times = burst_arrivals(2.0, 5, burst=2, seed=1)
    >>> np.unique(times, return_counts=True)[1].tolist()
    [2, 2, 1]
    """
    burst, requests = whole(burst, "burst", limit=10**8), whole(requests, "requests", limit=10**8)
    return np.repeat(poisson_arrivals(_rate(rate) / burst, -(-requests // burst), seed), burst)[:requests]


@dataclass(frozen=True)
class Shape:
    """What is known of a published trace.

    Attributes
    ----------
    rate : requests/s
    percents, prompt, output : tokens at these percentiles; lengths in between follow log-linearly
    shared : chance that a prompt goes on from an earlier one, where the trace knows its blocks
    """

    rate: float
    percents: tuple[float, ...]
    prompt: tuple[int, ...]
    output: tuple[int, ...]
    shared: float = 0.0


COMMON = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)
TRACES = {
    "azure-conversation": Shape(
        5.5301, COMMON, (2, 29, 181, 207, 396, 1020, 1189, 2734, 4083, 4142, 6179, 14050),
        (7, 16, 41, 54, 85, 129, 395, 424, 451, 601, 954, 1000),
    ),
    "azure-code": Shape(
        2.5664, (0, 1, 5, 10, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.9, 100),
        (3, 17, 75, 147, 578, 1469, 2744, 5187, 7303, 7399, 7436, 7437, 7437, 7437),
        (6, 6, 6, 7, 9, 13, 24, 55, 90, 170, 251, 359, 825, 1899),
    ),
    "mooncake-conversation": Shape(
        3.4012, COMMON, (891, 894, 901, 964, 2306, 6909, 15367, 27367, 39550, 85400, 121300, 126195),
        (1, 3, 10, 24, 156, 350, 472, 597, 698, 1118, 2000, 2000), shared=0.81,
    ),
}  # fmt: skip
BLOCK = 512


def _lengths(draws: np.ndarray, percents: tuple[float, ...], at: tuple[int, ...]) -> np.ndarray:
    return np.floor(np.exp(np.interp(100 * draws, percents, np.log(at)))).astype(np.int64)


def _shared_blocks(prompt: np.ndarray, chance: float, rng: np.random.Generator) -> list[list[int]]:
    """Block ids: a prompt goes on from an earlier one, as far as both reach, or begins anew after one common block."""
    ids: list[list[int]] = []
    fresh = 1
    for place, count in enumerate(-(-prompt // BLOCK)):
        kept = [0]
        if place and rng.random() < chance:
            earlier = ids[int(rng.integers(place))]
            kept = earlier[: int(count)]
        new = int(count) - len(kept)
        ids.append([*kept, *range(fresh, fresh + new)])
        fresh += new
    return ids


def synthetic_trace(
    like: str = "azure-conversation", requests: int = 1000, *, rate: float | None = None, burst: int = 1, seed: int = 0
) -> Trace:
    """Requests with the rate and the lengths of a published trace, drawn from its percentiles.

    Prompt and answer are drawn independently of each other, arrivals are Poisson.

    Parameters
    ----------
    like : "azure-conversation", "azure-code" or "mooncake-conversation", which also shares blocks
    requests : how many
    rate : mean arrivals per second [request/s]; the published one unless given
    burst : requests that arrive at once
    seed : of the chance; the same seed gives the same trace

    Returns
    -------
    Trace

    Raises
    ------
    UnknownNameError
        for a trace of another name
    CostModelError
        for a rate that is not above 0 and finite, a burst or requests below 1, or a negative seed

    Examples
    --------
    >>> trace = synthetic_trace(requests=20_000)
    >>> round(trace.rate, 1), round(float(trace.prompt.mean()), -1), round(float(trace.output.mean()), -1)
    (5.6, 1170.0, 210.0)

    References
    ----------
    Patel et al., Splitwise, ISCA 2024 (Azure LLM inference trace 2023); Qin et al., Mooncake, FAST 2025.
    """
    if like not in TRACES:
        raise unknown_name("trace", like, TRACES)
    shape = TRACES[like]
    arrival = burst_arrivals(shape.rate if rate is None else rate, requests, burst, seed)
    rng = np.random.default_rng([whole(seed, "seed", at_least=0), 1])
    prompt, output = (_lengths(rng.random(requests), shape.percents, at) for at in (shape.prompt, shape.output))
    blocks = _shared_blocks(prompt, shape.shared, rng) if shape.shared else None
    return Trace(arrival, prompt, output, blocks=blocks, block_tokens=BLOCK)
