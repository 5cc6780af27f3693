"""Two ways to do one thing, timed in turn in one run, so that a busy machine slows both."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One comparison: what must hold of ours against the alternative."""

    what: str
    ours: float  # seconds, median
    other: float
    alternative: str
    ratio: float  # what the floor is about
    floor: str
    holds: bool


def faster(what: str, ours: Callable, other: Callable, alternative: str, *, times: float, rounds: int = 15) -> Result:
    """Ours must be at least `times` as fast; the ratio is the median over pairs."""
    pairs = paired(ours, other, rounds)
    ratio = statistics.median(b / a for a, b in pairs)
    a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Result(what, a, b, alternative, ratio, f"≥ {times}x as fast", ratio >= times)


def no_slower(
    what: str, ours: Callable, other: Callable, alternative: str, *, times: float, rounds: int = 15
) -> Result:
    """Ours may take at most `times` as long; the ratio is the median over pairs."""
    pairs = paired(ours, other, rounds)
    ratio = statistics.median(a / b for a, b in pairs)
    a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Result(what, a, b, alternative, ratio, f"≤ {times}x as long", ratio <= times)


def at_most(what: str, ours: Callable, *, seconds: float, rounds: int = 9) -> Result:
    """Ours must take at most so many seconds."""
    ours()
    median = statistics.median(timed(ours) for _ in range(rounds))
    return Result(what, median, seconds, "the limit", median / seconds, f"≤ {1e3 * seconds:g} ms", median <= seconds)


def paired(ours: Callable, other: Callable, rounds: int) -> list[tuple[float, float]]:
    """(ours, other) in turn after a warm-up of each; the order alternates."""
    ours(), other()
    pairs = []
    for i in range(rounds):
        if i % 2:
            second = timed(other)
            pairs.append((timed(ours), second))
        else:
            pairs.append((timed(ours), timed(other)))
    return pairs


def timed(run: Callable) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def process(*arguments: str) -> Callable:
    """A call that runs a whole Python process."""
    return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
