"""Many simulations at once: every deployment under every policy at every rate, on an engine that others keep well."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from costmodel.common.checks import amount, is_whole
from costmodel.common.errors import CostModelError
from costmodel.common.extras import needed
from costmodel.exact import LARGEST, SMALLEST
from costmodel.serving.policy import Policy, Slo
from costmodel.serving.simulate import simulate
from costmodel.serving.trace import Trace
from costmodel.sizing import Deployment


@dataclass(frozen=True)
class Point:
    """One simulation of a study: what was served how, and the summary of what came of it.

    Attributes
    ----------
    deployment, policy : the names the study gave them
    rate : mean arrivals per second [request/s]
    summary : as `ServingResult.summary` says it

    Examples
    --------
    >>> point = Point("8B on one H100", "continuous", 2.0, {"goodput": 1.5})
    >>> point.summary["goodput"] / point.rate
    0.75
    """

    deployment: str
    policy: str
    rate: float
    summary: Mapping[str, Any]


def _point(
    names: tuple[str, str], deployment: Deployment, policy: Policy, rate: float, trace: Trace, slo: Slo, replicas: int
) -> Point:
    at_rate = trace.scaled(rate / trace.rate)
    return Point(*names, rate, simulate(at_rate, deployment, policy, replicas=replicas).summary(slo))


def serving_study(
    trace: Trace,
    deployments: Mapping[str, Deployment],
    policies: Mapping[str, Policy],
    rates: Sequence[float],
    *,
    slo: Slo | None = None,
    replicas: int = 1,
    client: Any = None,
    jobs: int = 1,
) -> list[Point]:
    """Serve a trace in every combination of deployment, policy and rate, in that order.

    Parameters
    ----------
    trace : the requests, whose arrivals are sped up or slowed down to each rate
    deployments, policies : by name
    rates : mean arrivals per second [request/s]
    slo : limits for goodput
    replicas : of each deployment
    client : a dask.distributed Client to compute on; joblib on this machine unless given
    jobs : processes of joblib, −1 for one a core

    Returns
    -------
    list of Point, the same whatever computed it

    Raises
    ------
    CostModelError
        for a trace of one request or whose requests all arrive at once, a rate that is not above 0, jobs that are 0 or
        no whole number, or, without a client, where joblib is missing

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> d = {"8B": Deployment(load("llama-3-8b"), accelerator("h100-sxm"))}
    >>> trace = Trace([0.0, 1.0, 2.0], [100] * 3, [10] * 3)
    >>> [(p.policy, p.rate) for p in serving_study(trace, d, {"one": Policy(slots=1)}, [1, 2])]
    [('one', 1), ('one', 2)]
    """
    if len(trace) == 1:
        raise CostModelError("one request has no rate to change: a study needs at least two, at different times")
    if trace.rate == float("inf"):
        raise CostModelError("all requests arrive at once: such a trace has no rate to change")
    for rate in rates:
        amount("a rate", rate, SMALLEST, LARGEST)
    if not is_whole(jobs, -LARGEST) or jobs == 0:
        raise CostModelError(f"jobs must be a whole number, at least 1, or -1 for one a core, got {jobs!r}")
    tasks = [
        ((name, label), deployment, policy, rate, trace, slo or Slo(), replicas)
        for (name, deployment), (label, policy), rate in product(deployments.items(), policies.items(), rates)
    ]
    if client is not None:
        return client.gather([client.submit(_point, *task, pure=False) for task in tasks])
    joblib = needed("joblib", "a study", "studies")
    return joblib.Parallel(n_jobs=jobs)(joblib.delayed(_point)(*task) for task in tasks)
