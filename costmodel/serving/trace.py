"""Requests to serve: when each arrives, the tokens of its prompt and of its answer, and what its prompt shares."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from costmodel.common.errors import CostModelError


def _column(values: object, name: str, count: int, at_least: int) -> np.ndarray:
    found = np.asarray(values)
    if found.shape != (count,) or found.dtype.kind not in "iu":
        raise CostModelError(f"{name} must be {count} whole numbers, got {found.dtype} of shape {found.shape}")
    if count and found.min() < at_least:
        place = int(np.argmax(found < at_least))
        raise CostModelError(f"{name} of request {place} must be at least {at_least}, got {found[place]}")
    if count and found.max() >= 2**31:
        raise CostModelError(f"{name} must be below 2^31, got {found.max()}")
    return found.astype(np.int64)


@dataclass(frozen=True)
class Trace:
    """Requests in order of arrival, as columns.

    Attributes
    ----------
    arrival : when each arrives, (requests,), never decreasing [s]
    prompt, output : tokens of its prompt and of its answer, (requests,), at least 1 [token]
    priority : (requests,), smaller is served first; None: all alike
    blocks : the ids of each prompt's blocks, equal where the text up to there is equal; None: not known
    block_tokens : tokens of a block [token]

    Raises
    ------
    CostModelError
        naming the column, for no requests, times that go backwards, or counts that are not whole numbers in range

    Examples
    --------
    >>> trace = Trace([0.0, 1.5], [100, 200], [10, 20])
    >>> len(trace), trace.rate, trace.scaled(2).arrival.tolist()
    (2, 0.6666666666666666, [0.0, 0.75])
    """

    arrival: np.ndarray
    prompt: np.ndarray
    output: np.ndarray
    priority: np.ndarray | None = None
    blocks: Sequence[Sequence[int]] | None = None
    block_tokens: int = 512

    def __post_init__(self) -> None:
        arrival = np.asarray(self.arrival, dtype=np.float64)
        if arrival.ndim != 1 or not len(arrival):
            raise CostModelError("a trace needs at least one request")
        if not np.isfinite(arrival).all() or arrival[0] < 0 or (np.diff(arrival) < 0).any():
            raise CostModelError("arrivals must be finite, at least 0 and never decreasing")
        object.__setattr__(self, "arrival", arrival)
        for name in ("prompt", "output"):
            object.__setattr__(self, name, _column(getattr(self, name), name, len(arrival), 1))
        if self.priority is not None:
            object.__setattr__(self, "priority", _column(self.priority, "priority", len(arrival), -(2**31)))
        if self.blocks is not None and len(self.blocks) != len(arrival):
            raise CostModelError(f"blocks must be given for each of {len(arrival)} requests, got {len(self.blocks)}")

    def __len__(self) -> int:
        return len(self.arrival)

    @property
    def rate(self) -> float:
        """(requests − 1)/(last arrival − first) [request/s]; infinite when all arrive at once, as one does."""
        span = float(self.arrival[-1] - self.arrival[0])
        return (len(self) - 1) / span if span else float("inf")

    def part(self, places: slice) -> "Trace":
        """Some of its requests."""
        cut = lambda column: None if column is None else column[places]  # noqa: E731
        return replace(
            self, arrival=self.arrival[places], prompt=self.prompt[places], output=self.output[places],
            priority=cut(self.priority), blocks=cut(self.blocks),
        )  # fmt: skip

    def scaled(self, factor: float) -> "Trace":
        """The same requests arriving `factor` times as fast."""
        if not factor > 0:
            raise CostModelError(f"a load factor must be above 0, got {factor}")
        return replace(self, arrival=self.arrival / factor)


def block_hit_ratio(trace: Trace) -> float:
    """Blocks whose prefix was seen before/all blocks, with a cache that never forgets.

    Parameters
    ----------
    trace : requests that know the blocks of their prompts

    Returns
    -------
    a share of all blocks, from 0 to 1

    Raises
    ------
    CostModelError
        for a trace without blocks

    Examples
    --------
    >>> block_hit_ratio(Trace([0.0, 1.0], [1024, 1024], [1, 1], blocks=[[0, 1], [0, 2]]))  # 0 again, of 0, 1, 0, 2
    0.25
    """
    if trace.blocks is None:
        raise CostModelError("this trace does not say which blocks its prompts share")
    seen: set[int] = set()
    hits = total = 0
    for ids in trace.blocks:
        hits += next((place for place, name in enumerate(ids) if name not in seen), len(ids))
        total += len(ids)
        seen.update(ids)
    return hits / total if total else 0.0
