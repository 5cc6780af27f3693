"""One unknown from a target: in closed form branch by branch, or by bracketing the root; or why there is none."""

from math import isclose
from typing import Any

import numpy as np
from sympy import Expr, Poly, PolynomialError, Rational, divisors, fraction, together
from sympy import solve as sympy_solve

from costmodel.common.checks import present
from costmodel.common.errors import CostModelError, unknown_name
from costmodel.common.extras import needed
from costmodel.common.formats import FORMATS
from costmodel.evaluate import compile_formulas
from costmodel.exact import LARGEST, amount, exact, is_open
from costmodel.sizing.branches import branches, without_steps
from costmodel.sizing.deployment import Deployment
from costmodel.sizing.forbidden import forbidden
from costmodel.sizing.heads import query_heads
from costmodel.sizing.levers import METRICS, USES, Lever, Metric, Use, formula, lever, metric

METHODS = ("auto", "closed form", "bracketed root")
GRID = np.logspace(-15, 45, 1201)  # where a root is looked for: every quantity in SI units lies within
ROUNDING = 1e-9  # relative: a root this close to a whole number is that number
CLOSED_DEGREE = 2  # of the polynomial in the unknown, up to which the root is written down


class Solution(float):
    """The real root, in the unit of the lever; with what can really be had.

    Attributes
    ----------
    unknown, unit : the lever
    usable : the best value that can be had and meets every target: a whole number, a divisor of the query heads, the
        name of a format; for other levers, and where no format on record will do, the root itself
    exact : the root as an exact number where a closed form was found, else None
    method : "closed form" or "bracketed root"
    target : the metric that set it
    fits : whether memory holds the deployment there
    """

    unknown: str
    unit: str
    usable: int | str | float
    exact: Expr | None
    method: str
    target: str
    fits: bool

    def __repr__(self) -> str:
        shown = f"{float(self):.6g}"
        usable = "" if self.usable == float(self) or str(self.usable) == shown else f", usable {self.usable}"
        memory = "" if self.fits else ", but memory does not hold that"
        return f"{self.unknown} {shown} {self.unit}".rstrip() + f"{usable}{memory} ({self.method})"

    __str__ = __repr__


def solve(deployment: Deployment, unknown: str, *, method: str, **conditions: Any) -> Solution:
    """The value of the unknown at which the target is met; see `Deployment.solve`.

    With several targets, the largest value that meets all of them, or the smallest where none limits it from above.
    """
    if method not in METHODS:
        raise CostModelError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    turned = lever(unknown)
    targets = {
        name: exact(amount(conditions.pop(name), name, at_least=-LARGEST))
        for name in list(conditions)
        if name in METRICS
    }
    if extra := set(conditions) - set(USES):
        raise unknown_name("condition", min(extra), (*METRICS, *USES))
    if not targets:
        raise CostModelError(f"nothing to solve for: give a target, one of {', '.join(METRICS)}")
    if turned.name in conditions:
        raise CostModelError(f"{turned.name} is the unknown: it cannot be given as well")
    for name, target in targets.items():
        if is_open(target) or not target > 0:
            raise CostModelError(f"{name} must be positive, got {target}")
    use = Use(**{name: exact(value) for name, value in conditions.items()})
    found = [_Crossing(deployment, use, turned, metric(name), target, method) for name, target in targets.items()]
    set_by = _deciding(found)
    return set_by.solution()


def _deciding(found: list["_Crossing"]) -> "_Crossing":
    """The target that decides: the tightest from above, else the tightest from below; none may contradict it."""
    above = [one for one in found if one.crosses and one.below_meets]
    under = [one for one in found if one.crosses and not one.below_meets]
    if not above and not under:
        one = found[0]
        raise CostModelError(f"every {one.lever.name} meets {one.says}: it is {one.plateau} whatever it is")
    best = min(above, key=lambda one: one.root) if above else max(under, key=lambda one: one.root)
    for one in under:
        if one is not best and one.root > best.root * (1 + ROUNDING):
            raise CostModelError(
                f"no {best.lever.name} meets both: {best.says} allows at most {best.shown}, "
                f"{one.says} needs at least {one.shown}"
            )
    return best


class _Crossing:
    """Where one metric crosses its target as the unknown grows."""

    def __init__(self, d: Deployment, use: Use, turned: Lever, wanted: Metric, target: Rational, method: str) -> None:
        self.deployment, self.use, self.lever, self.metric, self.target = d, use, turned, wanted, target
        turned.now(d, use)  # refuses a lever that this model does not have
        self.formula = without_steps(formula(wanted.name, d, use, [turned]), turned.symbol)  # `_whole` counts in steps
        if not self.formula.has(turned.symbol):
            raise CostModelError(f"{wanted.name} does not depend on {turned.name} here")
        self._compiled = compile_formulas([self.formula], [turned.symbol])
        if not self._reachable():
            raise CostModelError(forbidden(d, use, turned, wanted, target, self.value))
        self.exact: Expr | None = None
        self._root: float | None = None
        meets = self.meets(GRID)
        if meets.all():
            return
        place = int(np.flatnonzero(meets[1:] != meets[:-1])[-1])  # the last crossing, where there are several
        self.below_meets = bool(meets[place])
        low, high = GRID[place : place + 2].tolist()
        if method != "bracketed root":
            self.exact = self._closed_form(low, high)
        if method == "closed form" and self.exact is None:
            raise CostModelError(f"{wanted.name} has no closed form in {turned.name}: no polynomial of degree 1 or 2")
        self._root = self._bracketed(low, high) if self.exact is None else float(self.exact)

    @property
    def crosses(self) -> bool:
        return self._root is not None

    @property
    def root(self) -> float:
        return present("the crossing", self._root)

    @property
    def says(self) -> str:
        return f"{self.metric.name} {float(self.target):g} {self.metric.unit}"

    @property
    def shown(self) -> str:
        return f"{self.root * self.lever.scale:.4g}"

    @property
    def plateau(self) -> str:
        return f"at {'most' if self.metric.at_most else 'least'} {self._extreme():.4g} {self.metric.unit}"

    def _extreme(self) -> float:
        values = self._compiled(GRID)[0]
        return float(values.max() if self.metric.at_most else values.min())

    def value(self, x: float) -> float:
        """The metric at a value of the unknown, in the symbol's unit."""
        return float(self._compiled(x)[0])

    def meets(self, x: object) -> np.ndarray:
        """Whether the target is met there."""
        value, target = self._compiled(x)[0], float(self.target)
        return value <= target if self.metric.at_most else value >= target

    def _reachable(self) -> bool:
        """Whether a usable value meets the target: at least one sequence, at most all of the time."""
        least = 1 - ROUNDING if self.lever.whole else GRID[0]
        most = 1.0 if self.lever.name == "utilisation" else GRID[-1]
        return bool(self.meets(np.clip(GRID, least, most)).any())

    def _closed_form(self, low: float, high: float) -> Expr | None:
        """The root, within the bracket, of a branch that is the whole formula there."""
        for branch in branches(self.formula, self.lever.symbol):
            try:
                equation = Poly(fraction(together(branch - self.target))[0], self.lever.symbol)
            except PolynomialError:  # it has steps
                return None
            if equation.degree() > CLOSED_DEGREE:
                return None
            for root in sympy_solve(equation):
                value = float(root)
                inside = low * (1 - ROUNDING) <= value <= high * (1 + ROUNDING)
                if inside and isclose(self.value(value), float(self.target), rel_tol=1e-12):
                    return root
        return None

    def _bracketed(self, low: float, high: float) -> float:
        bisect = needed("scipy.optimize", "a root without a closed form", "studies").bisect
        return float(bisect(lambda x: self.meets(x) - 0.5, low, high, xtol=low * 1e-15))

    def solution(self) -> Solution:
        """The root in the reader's unit, and what can be had."""
        usable = self._usable()
        exact_root = None if self.exact is None else self.exact * self.lever.scale
        found = Solution(self.root * self.lever.scale if exact_root is None else exact_root)
        found.unknown, found.unit, found.exact = self.lever.name, self.lever.unit, exact_root
        found.method = "bracketed root" if self.exact is None else "closed form"
        found.target, found.usable = self.metric.name, float(found) if usable is None else usable
        at = self.root if usable is None else FORMATS[usable].bytes if isinstance(usable, str) else usable
        held = formula("memory", self.deployment, self.use, [self.lever]).subs(self.lever.symbol, exact(float(at)))
        found.fits = bool(float(held) <= float(self.deployment.usable_bytes) * (1 + ROUNDING))
        return found

    def _usable(self) -> int | str | None:
        """A whole number, a divisor of the query heads, a format: the nearest that meets the target.

        Fewer heads and fewer bits never make a metric worse: of these, the most that meet it.
        """
        most = self.root * (1 + ROUNDING)
        if self.lever.name == "kv_heads" and (heads := query_heads(self.deployment.model)):
            return max(n for n in divisors(heads) if n <= most)
        if self.lever.whole:
            return self._whole()
        if self.lever.name.endswith("_bits"):
            fitting = [f for f in FORMATS.values() if f.bytes <= most]
            return max(fitting, key=lambda f: f.bytes).name if fitting else None
        return None

    def _whole(self) -> int:
        """The nearest count; a batch that groups or stages share counts in multiples of them."""
        spread = self.deployment.parallel
        ways = spread.data * spread.pipeline if self.lever.name == "batch" else 1
        each = self.root / ways
        if not self.below_meets:
            return ways * int(np.ceil(each * (1 - ROUNDING)))
        most = int(np.floor(each * (1 + ROUNDING)))
        if not most:
            raise CostModelError(f"no batch meets {self.says}: {ways} share it, and {ways} sequences are too many")
        return ways * most
