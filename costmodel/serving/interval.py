"""Between two events the batch is constant, so the time of many decode steps is one closed-form sum.

Step i of an interval takes max(c0 + c1·i, m0 + m1·i): arithmetic and memory traffic, each linear in i because every
context grows by one. The larger of the two changes at most once, at the crossover step. The functions below serve exact
integers (the simulation) and floats (its compiled form) alike.
"""

from math import sqrt

from sympy import Expr, cancel, expand, factor, solve, summation

from costmodel.common.errors import CostModelError
from costmodel.exact import Number
from costmodel.sizing import Deployment
from costmodel.symbols import B, M, S, index


def line_sum(first: Number, growth: Number, steps: int) -> Number:
    """Σ (first + growth·i) for i = 0 … steps − 1: steps·first + growth·steps(steps − 1)/2.

    Examples
    --------
    >>> line_sum(10, 2, 4)  # 10 + 12 + 14 + 16
    52
    """
    return steps * first + growth * (steps * (steps - 1) // 2)


def crossover(c0: Number, c1: Number, m0: Number, m1: Number, steps: int) -> int:
    """The first step, at most `steps`, whose bound is not that of step 0: ⌈(m0 − c0)/(c1 − m1)⌉ where they cross.

    Examples
    --------
    >>> crossover(0, 3, 10, 1, 100)  # 0, 3, 6 … passes 10, 11, 12 … at 5·3 = 10 + 5·1
    5
    """
    gap, closing = c0 - m0, c1 - m1
    if gap >= 0:
        if closing >= 0:
            return steps
        return min(steps, int(gap // -closing) + 1)  # compute binds while gap + closing·i ≥ 0
    if closing <= 0:
        return steps
    return min(steps, int(-(gap // closing)))


def interval(c0: Number, c1: Number, m0: Number, m1: Number, steps: int) -> Number:
    """Σ max(c0 + c1·i, m0 + m1·i) for i = 0 … steps − 1: two sums, one on each side of the crossover.

    Examples
    --------
    >>> interval(0, 3, 10, 1, 8) == sum(max(3 * i, 10 + i) for i in range(8))
    True
    """
    split = crossover(c0, c1, m0, m1, steps)
    if c0 >= m0:
        return line_sum(c0, c1, split) + line_sum(m0 + m1 * split, m1, steps - split)
    return line_sum(m0, m1, split) + line_sum(c0 + c1 * split, c1, steps - split)


def fewest_steps(first: Number, growth: Number, steps: int, target: Number) -> int:
    """The fewest steps n ≤ `steps` of one line whose sum reaches `target`: the root of a quadratic, made exact."""
    slack = 2.0 * first - growth
    n = int(4.0 * target / (slack + sqrt(slack * slack + 8.0 * growth * target)))
    n = min(max(n, 1), steps)
    reached = line_sum(first, growth, n)
    while n < steps and reached < target:
        reached += first + growth * n
        n += 1
    while n > 1 and reached - (first + growth * (n - 1)) >= target:
        n -= 1
        reached -= first + growth * n
    return n


def steps_until(c0: Number, c1: Number, m0: Number, m1: Number, steps: int, target: Number) -> int:
    """The fewest steps, at least 1 and at most `steps`, whose interval lasts at least `target`.

    Examples
    --------
    >>> steps_until(0, 3, 10, 1, 100, 34), steps_until(0, 3, 10, 1, 100, 33)  # steps of 10, 11, 12, 13, …
    (4, 3)
    """
    if target <= 0:
        return 1
    if c0 < m0:
        c0, c1, m0, m1 = m0, m1, c0, c1
    if c1 >= m1:  # what binds first binds throughout
        return fewest_steps(c0, c1, steps, target)
    split = crossover(c0, c1, m0, m1, steps)
    before = line_sum(c0, c1, split)
    if split == steps or target <= before:
        return fewest_steps(c0, c1, split, target)
    return split + fewest_steps(m0 + m1 * split, m1, steps - split, target - before)


def stretch(
    c0: Number, c1: Number, m0: Number, m1: Number, held: Number, grows: Number, steps: int
) -> tuple[Number, Number]:
    """The interval, and Σ (duration of step i)·(held + grows·i): the integral over time of what grows every step.

    Examples
    --------
    >>> each = [max(3 * i, 10 + i) for i in range(8)]
    >>> stretch(0, 3, 10, 1, 5, 2, 8) == (sum(each), sum(t * (5 + 2 * i) for i, t in enumerate(each)))
    True
    """
    if c0 < m0:
        c0, c1, m0, m1 = m0, m1, c0, c1
    if c1 >= m1:  # what binds first binds throughout
        return _sums(c0, c1, held, grows, steps)
    split = crossover(c0, c1, m0, m1, steps)
    ticks, integral = _sums(c0, c1, held, grows, split)
    more, late = _sums(m0 + m1 * split, m1, held + grows * split, grows, steps - split)
    return ticks + more, integral + late


def _sums(t0: Number, t1: Number, h0: Number, h1: Number, n: int) -> tuple[Number, Number]:
    """Σ t0 + t1·i and Σ (t0 + t1·i)(h0 + h1·i), by Σ i = n(n − 1)/2 and Σ i² = n(n − 1)(2n − 1)/6."""
    ones = n * (n - 1) // 2
    ticks = n * t0 + t1 * ones
    return ticks, h0 * ticks + h1 * (t0 * ones + t1 * (ones * (2 * n - 1) // 3))


def interval_formulas(deployment: Deployment) -> dict[str, Expr]:
    """The closed forms as algebra, derived by SymPy from the deployment's own step: M steps of B sequences, S first.

    Parameters
    ----------
    deployment : a model whose step is linear in S (every layer attends to the whole context)

    Returns
    -------
    {"memory": Σ memory seconds over S … S + M − 1 [s], "compute": Σ compute seconds [s],
    "crossover": the step index i at which both take equally long, where there is one}

    Raises
    ------
    CostModelError
        for a model with sliding windows or chunks, whose step is linear only in pieces

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> deployment = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    >>> formulas = interval_formulas(deployment)
    >>> step = deployment.decode(B, S).timing.memory_seconds
    >>> expand(formulas["memory"].subs(M, 2) - step - step.subs(S, S + 1))  # two steps are a step at S and one at S + 1
    0
    """
    step = deployment.decode(B, S).timing
    sides = {name: expand(getattr(step, f"{name}_seconds").subs(S, S + index)) for name in ("memory", "compute")}
    if not all(side.is_polynomial(index) for side in sides.values()):
        raise CostModelError(
            f"{deployment.model.name}: a step is not linear in the context; its pieces are summed apart"
        )
    sums = {name: factor(summation(side, (index, 0, M - 1))) for name, side in sides.items()}
    meets = solve(sides["compute"] - sides["memory"], index)
    return sums | {"crossover": cancel(meets[0])} if meets else sums
