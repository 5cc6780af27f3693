"""Which lever first? By how many percent a metric moves when a lever moves by one.

Elasticity = d ln(metric)/d ln(lever) = lever/metric · ∂metric/∂lever, taken exactly on the branch that binds. A batch
that groups or stages share as ⌈B/ways⌉ each grows without steps from where it stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any

from sympy import Expr, diff

from costmodel.common.errors import CostModelError
from costmodel.exact import exact, is_open
from costmodel.sizing.branches import TIE, binding_branch, without_steps
from costmodel.sizing.deployment import Deployment
from costmodel.sizing.levers import Lever, Metric, Use, formula, metric, turnable, used
from costmodel.symbols import B
from costmodel.tables import Table

ALIKE = "memory and compute alike"


@dataclass(frozen=True, repr=False)
class Elasticities:
    """Every lever's elasticity, the strongest first.

    Attributes
    ----------
    metric, value : what is moved, and where it stands
    bound : "memory", "compute", "communication", or "memory and compute alike"; "" where the metric is no time
    levers : {name: d ln(metric)/d ln(lever)}, ranked by size
    other : at a tie, the same on the other branch; None elsewhere
    """

    metric: Metric
    value: float
    bound: str
    levers: Mapping[str, float]
    other: Mapping[str, float] | None = None

    def __getitem__(self, name: str) -> float:
        return self.levers[name]

    @property
    def tie(self) -> bool:
        """Whether two branches hold: memory and compute alike, or a step, as where a context just fills a window."""
        return self.other is not None

    @property
    def first(self) -> str:
        """What to change first: the strongest lever."""
        return next(iter(self.levers))

    def table(self) -> Table:
        """The ranking of those that do something."""
        rows = []
        for name, elasticity in self.levers.items():
            shown = [elasticity] if self.other is None else [elasticity, self.other[name]]
            if any(shown):
                rows.append([name, *(f"{value:+.4f}" for value in shown)])
        header = ["lever", f"1 % more changes {self.metric.name} by, %", "on the other branch, %"]
        return Table(header if self.tie else header[:2], rows)

    def __str__(self) -> str:
        binds = f", bound by {self.bound}" if self.bound else ""
        step = ", at a step of its formula" if self.tie and self.bound != ALIKE else ""
        return f"{self.metric.name} {self.value:.6g} {self.metric.unit}{binds}{step}\n{self.table()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _bound(name: str, deployment: Deployment, use: Use, tie: bool) -> str:
    if name == "memory":
        return ""
    read = name in ("ttft", "dollars_per_million_input")
    step = deployment.prefill(use.prompt_tokens) if read else deployment.decode(use.batch, use.context).timing
    if tie and isclose(step.compute_seconds, step.memory_seconds, rel_tol=TIE):
        return ALIKE
    return step.bound


def elasticities(deployment: Deployment, name: str, **where: Any) -> Elasticities:
    """The elasticity of a metric to every lever that occurs in it or could; levers without effect stand at 0.

    Parameters
    ----------
    deployment : with numbers throughout
    name : a metric
    where : batch [sequence], context and prompt [token], price [$ per device and hour], utilisation (share)

    Returns
    -------
    Elasticities

    Raises
    ------
    UnknownNameError
        for a metric or a condition that is not known
    CostModelError
        for a symbol, a metric that is 0, and dollars without a price
    """
    wanted, use = metric(name), used(**where)
    levers = turnable(deployment, use)
    at = {one.symbol: exact(one.now(deployment, use)) for one in levers}
    for one in levers:
        if is_open(at[one.symbol]):
            raise CostModelError(f"{one.name} must be a number to be turned by a percent, got {at[one.symbol]}")
    value = formula(name, deployment, use, levers)
    if open_symbols := value.free_symbols - set(at):
        raise CostModelError(f"elasticities are taken at numbers, and {min(s.name for s in open_symbols)} has none")
    if value.subs(at) == 0:
        raise CostModelError(f"{name} is 0 here, of which nothing is a percent")
    smooth = without_steps(value, B, at[B])
    branch, tie = binding_branch(smooth, at)
    ranked = _ranked(branch, levers, at)
    other = None
    if tie:
        unsorted = _ranked(binding_branch(smooth, at, last=True)[0], levers, at)
        other = {one: unsorted[one] for one in ranked}
    return Elasticities(wanted, float(value.subs(at)), _bound(name, deployment, use, tie), ranked, other)


def _ranked(branch: Expr, levers: list[Lever], at: Mapping[Any, Any]) -> dict[str, float]:
    value = branch.subs(at)
    found = {one.name: float(diff(branch, one.symbol).subs(at) * at[one.symbol] / value) for one in levers}
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))
