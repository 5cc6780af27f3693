"""The slot game: requests of given lengths, so many slots, one token per slot and step. Integers only.

Yu et al., Orca (OSDI 2022), schedule by iteration: a slot is refilled as soon as its request ends.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapreplace

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError


@dataclass(frozen=True)
class ServingRun:
    """Who held which slot when.

    Attributes
    ----------
    lengths : steps that each request takes, in order of arrival
    begun : when and where each begins, as slots·step + slot: one integer for both
    slots : how many there are
    steps : until the last request ends

    Examples
    --------
    >>> run = ServingRun(lengths=(3, 1), begun=(0, 1), slots=2, steps=3)
    >>> run.starts, run.ends, round(run.utilization, 3)
    ([0, 0], [3, 1], 0.667)
    """

    lengths: tuple[int, ...]
    begun: tuple[int, ...]
    slots: int
    steps: int

    @property
    def starts(self) -> list[int]:
        """The step at which each request begins."""
        return [code // self.slots for code in self.begun]

    @property
    def held(self) -> list[int]:
        """The slot of each request."""
        return [code % self.slots for code in self.begun]

    @property
    def utilization(self) -> float:
        """Σ lengths/(steps·slots): the share of slot-steps that a request holds."""
        return sum(self.lengths) / (self.steps * self.slots)

    @property
    def ends(self) -> list[int]:
        """The step after each request's last: when its whole answer is there."""
        return [start + length for start, length in zip(self.starts, self.lengths, strict=True)]

    @property
    def timeline(self) -> list[list[int | None]]:
        """timeline[step][slot]: the number of the request, or None; made when asked for."""
        grid: list[list[int | None]] = [[None] * self.slots for _ in range(self.steps)]
        for request, (start, length, slot) in enumerate(zip(self.starts, self.lengths, self.held, strict=True)):
            for step in range(start, start + length):
                grid[step][slot] = request
        return grid


def simulate_static_batching(lengths: Iterable[int], slots: int) -> ServingRun:
    """Requests in batches of `slots`, in order; the next batch begins when the longest request of the last has ended.

    steps = Σ over batches of the longest length.

    Parameters
    ----------
    lengths : steps that each request takes, at least 1, in order of arrival; all are there from the start
    slots : requests at a time, at least 1

    Returns
    -------
    ServingRun: steps in all, who holds which slot when, and the share of slot-steps that are held

    Raises
    ------
    CostModelError
        for no requests, or a length or number of slots that is not a positive integer

    Examples
    --------
    >>> run = simulate_static_batching([4, 1, 1, 1], slots=2)
    >>> run.steps, run.utilization  # 4 + 1 steps, 7 of 10 slot-steps held
    (5, 0.7)
    >>> run.timeline
    [[0, 1], [0, None], [0, None], [0, None], [2, 3]]
    """
    checked, slots = _checked(lengths, slots)
    begun: list[int] = []
    step = 0
    for first in range(0, len(checked), slots):
        batch = checked[first : first + slots]
        begun += range(slots * step, slots * step + len(batch))
        step += max(batch)
    return ServingRun(tuple(checked), tuple(begun), slots, step)


def simulate_continuous_batching(lengths: Iterable[int], slots: int) -> ServingRun:
    """Each request, in order, takes the slot that falls free first (of several, the lowest).

    A heap of the times at which slots fall free: time grows with requests, not with steps.

    Parameters
    ----------
    lengths : steps that each request takes, at least 1, in order of arrival; all are there from the start
    slots : requests at a time, at least 1

    Returns
    -------
    ServingRun: steps in all, who holds which slot when, and the share of slot-steps that are held

    Raises
    ------
    CostModelError
        for no requests, or a length or number of slots that is not a positive integer

    Examples
    --------
    >>> run = simulate_continuous_batching([4, 1, 1, 1], slots=2)
    >>> run.steps, run.utilization  # the short ones follow each other beside the long one: 7 of 8
    (4, 0.875)
    >>> run.starts, run.held
    ([0, 0, 1, 2], [0, 1, 1, 1])

    References
    ----------
    Yu et al., Orca, OSDI 2022 (iteration-level scheduling).
    """
    checked, slots = _checked(lengths, slots)
    free = list(range(slots))  # slots·(when it falls free) + slot: ordered by time, then by slot
    begun = []
    for length in checked:
        begun.append(free[0])
        heapreplace(free, free[0] + slots * length)
    return ServingRun(tuple(checked), tuple(begun), slots, max(free) // slots)


def _checked(lengths: Iterable[int], slots: int) -> tuple[list[int], int]:
    checked = list(lengths)
    if set(map(type, checked)) != {int} or min(checked) < 1:
        checked = [whole("length", length, 1) for length in checked]
    if not checked:
        raise CostModelError("no requests: give at least one length")
    return checked, whole("slots", slots, 1)
