"""One harness for every target: an input is made from a seed, tried, and must end as an answer or as a refusal by name.

Anything else — another exception, an answer that cannot be right, a try past the time limit — is a fault, raised with
the target, the seed, the number of the input and the input itself.
"""

import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

LONGEST = 10  # seconds that one input may take before it counts as a hang
SETTLED = 0.5  # share of the inputs after which caches are warm: memory is compared from there


@dataclass(frozen=True)
class Target:
    """What is fuzzed.

    Attributes
    ----------
    name : of the target
    made : an input from a random generator; its repr reproduces it
    tried : one input tried; a word for how it ended
    """

    name: str
    made: Callable[[Random], object]
    tried: Callable[[object], str]


@dataclass(frozen=True)
class Outcome:
    """What came of a run: how inputs ended, the slowest [s], memory after half of the inputs and at the end [byte]."""

    target: str
    ends: Counter
    slowest: float
    settled: int
    peak: int

    @property
    def inputs(self) -> int:
        """How many were tried."""
        return self.ends.total()

    def __str__(self) -> str:
        ends = ", ".join(f"{count:,} {end}" for end, count in self.ends.most_common())
        memory = f"peak {self.peak / 2**20:.0f} MiB ({(self.peak - self.settled) / 2**20:+.0f} in the second half)"
        return f"{self.target}: {self.inputs:,} inputs: {ends}; slowest {1e3 * self.slowest:.0f} ms; {memory}"


def peak_memory() -> int:
    """The most memory that this process, and not its parent, has had [byte]."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """TimeoutError inside when it takes longer."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def numbered(target: Target, seed: int, number: int) -> object:
    """The input of that number: every one can be made again without the others."""
    return target.made(Random(f"{target.name} {seed} {number}"))


def run(target: Target, count: int, seed: int = 0) -> Outcome:
    """Try many inputs.

    Raises
    ------
    AssertionError
        at the first fault, with what reproduces it
    """
    ends, slowest, settled = Counter(), 0.0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(count):
            given = numbered(target, seed, number)
            start = time.perf_counter()
            try:
                with time_limit(LONGEST):
                    ends[target.tried(given)] += 1
            except Exception as fault:
                what = f"{target.name}, seed {seed}, input {number}: {type(fault).__name__}: {fault}"
                raise AssertionError(f"{what}\ninput: {given!r}") from fault
            slowest = max(slowest, time.perf_counter() - start)
            if number == int(SETTLED * count):
                settled = peak_memory()
    return Outcome(target.name, ends, slowest, settled, peak_memory())
