"""Serve a trace with a deployment under a policy, on as many replicas as given."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from costmodel.common import checks
from costmodel.common.errors import CostModelError
from costmodel.exact import whole
from costmodel.serving.costs import PassCosts
from costmodel.serving.decoding import Sequence
from costmodel.serving.disaggregated import serve_apart
from costmodel.serving.log import Log
from costmodel.serving.memory import cache_budget
from costmodel.serving.policy import Policy
from costmodel.serving.replica import Replica
from costmodel.serving.results import ServingResult
from costmodel.serving.trace import Trace
from costmodel.sizing import Deployment

PIECE = 10_000  # requests turned into Python numbers at a time
DEFAULT = Policy()


def rows(trace: Trace) -> Iterator[tuple[int, float, int, int]]:
    """(priority, arrival, prompt, output) of each request, as Python numbers."""
    priority = np.zeros(len(trace), dtype=np.int64) if trace.priority is None else trace.priority
    for start in range(0, len(trace), PIECE):
        part = slice(start, start + PIECE)
        yield from zip(
            *(column[part].tolist() for column in (priority, trace.arrival, trace.prompt, trace.output)), strict=True
        )


def _copies(name: str, count: object) -> int:
    """A number of replicas; a letter is none."""
    return whole(checks.whole(name, count, 1), name, limit=10**6)


def simulate(
    trace: Trace,
    deployment: Deployment | PassCosts,
    policy: Policy = DEFAULT,
    *,
    replicas: int = 1,
    prefill_replicas: int | None = None,
    compiled: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ServingResult:
    """Serve every request of a trace; cost grows with events, not with tokens.

    A pass takes what one roofline over it takes, nothing more. Requests go to replicas in turn. A request whose cache
    can never fit is rejected, with the reason.

    Parameters
    ----------
    trace, deployment, policy : what arrives, what serves, how it batches; a deployment that serves many traces may be
        given as its PassCosts, derived once
    replicas : copies of the deployment (those that decode, when disaggregated)
    prefill_replicas : copies that prefill, when disaggregated; as many as decode unless given
    compiled : use the compiled core (extra "fast"), which serves the continuous policy without preemption, priorities,
        shared blocks or windows
    progress : told (answers done, requests) now and then

    Returns
    -------
    ServingResult

    Raises
    ------
    CostModelError
        for replicas that are not whole and above 0, replicas that prefill under a policy without any, weights that do
        not fit, a deployment that is textbook, calibrated or spread by Parallel, or, compiled, a policy or a trace that
        the compiled core does not serve

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    >>> result = simulate(Trace([0.0, 0.001], [1000, 500], [100, 200]), d)
    >>> result.steps, result.served, round(1e3 * result.makespan_s)
    (201, 2, 922)

    References
    ----------
    Yu et al., Orca, OSDI 2022 (batches that change from pass to pass).
    """
    replicas = _copies("replicas", replicas)
    if prefill_replicas is not None and policy.kind != "disaggregated":
        raise CostModelError(
            f"prefill_replicas ({prefill_replicas!r}) are for Policy(kind='disaggregated'), got {policy.kind!r}"
        )
    costs = deployment if isinstance(deployment, PassCosts) else PassCosts(deployment)
    watch = None if progress is None else _Watch(len(trace), progress)
    spare = 0
    if compiled:
        from costmodel.serving.compiled import serve  # only where numba is asked for

        logs = [(places, serve(part, costs, policy)) for places, part in _in_turn(trace, replicas)]
    elif policy.kind == "disaggregated":
        spare = replicas if prefill_replicas is None else _copies("prefill_replicas", prefill_replicas)
        pools, requests = (spare, replicas), list(arrivals(trace, costs))
        logs = [(np.arange(len(trace)), serve_apart(requests, costs, policy, pools, **_about(trace), watch=watch))]
    else:
        logs = [
            (places, Replica(costs, policy, arrivals(part, costs), len(part), **_about(part), watch=watch).run())
            for places, part in _in_turn(trace, replicas)
        ]
    if progress is not None:
        progress(len(trace), len(trace))
    return _gathered(trace, costs, logs, replicas, spare)


def _in_turn(trace: Trace, replicas: int) -> Iterator[tuple[np.ndarray, Trace]]:
    """Each replica's share of the requests: their numbers, and the requests."""
    for i in range(min(replicas, len(trace))):
        yield np.arange(i, len(trace), replicas), trace.part(slice(i, None, replicas))


def _about(trace: Trace) -> dict[str, Any]:
    """What a replica must know of the trace beside its requests."""
    blocks = None if trace.blocks is None else (trace.blocks.__getitem__, trace.block_tokens)
    return {"blocks": blocks, "prioritised": trace.priority is not None}


class _Watch:
    """Counts answers and passes the count on, a hundred times in all."""

    def __init__(self, total: int, progress: Callable[[int, int], None]) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def __call__(self) -> None:
        self.done += 1
        if self.done < self.total and self.done % max(1, self.total // 100) == 0:
            self.progress(self.done, self.total)


def arrivals(trace: Trace, costs: PassCosts) -> Iterator[Sequence]:
    """The trace's requests as sequences, numbered in order."""
    for index, (priority, seconds, prompt, output) in enumerate(rows(trace)):
        yield Sequence((priority, costs.ticks(seconds), index), prompt, output)


def _gathered(
    trace: Trace, costs: PassCosts, logs: list[tuple[np.ndarray, Log]], replicas: int, spare: int
) -> ServingResult:
    first, last = np.full(len(trace), np.nan), np.full(len(trace), np.nan)
    rejected: dict[int, str] = {}
    per_s = costs.ticks_per_s
    for places, log in logs:
        for into, ticks in ((first, log.first), (last, log.last)):
            into[places] = [np.nan if tick is None else tick / per_s for tick in ticks]
        rejected |= {int(places[index]): reason for index, reason in log.rejected.items()}
    total = lambda name: sum(getattr(log, name) for _, log in logs)  # noqa: E731
    asked = total("asked")
    return ServingResult(
        trace, first, last, rejected,
        devices=(replicas + spare) * costs.deployment.accelerator.devices, replicas=replicas + spare,
        budget_bytes=replicas * cache_budget(costs), peak_cache_bytes=max((log.peak for _, log in logs), default=0),
        busy_s=total("busy") / costs.ticks_per_s, held_byte_s=total("held") / (costs.ticks_per_s * costs.cache_unit),
        steps=total("steps"), events=total("events"), preempted=total("preempted"),
        prefix_hit_ratio=total("hits") / asked if asked else None,
    )  # fmt: skip
