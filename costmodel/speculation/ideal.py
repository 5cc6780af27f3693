"""The speed-up before any hardware is named: a draft step costs c steps of the target, checking costs one.

What γ is best then, and which c a published speed-up implies. (Leviathan et al., 2211.17192, whose letters these are.)
"""

from sympy import E, Expr, LambertW, log

from costmodel.common import checks
from costmodel.common.errors import CostModelError
from costmodel.exact import LARGEST, Number, amount, is_open, ratio, whole
from costmodel.speculation.acceptance import expected_tokens
from costmodel.symbols import alpha, cost_ratio, gamma


def ideal_speedup(alpha: Number = alpha, gamma: Number = gamma, cost_ratio: Number = cost_ratio) -> Number:
    """E(α, γ)/(1 + γ·c): the speed-up when checking γ + 1 tokens takes as long as producing one.

    Parameters
    ----------
    alpha, gamma : as in `expected_tokens`: a probability, and a number of drafts
    cost_ratio : c, ratio of the time of a draft step to that of the target

    Returns
    -------
    ratio of the time per token without guessing to that with it; below 1 guessing does not pay

    Raises
    ------
    CostModelError
        for c below 0, or what `expected_tokens` refuses

    Examples
    --------
    >>> from fractions import Fraction
    >>> ideal_speedup(Fraction(1, 2), 2, Fraction(1, 10))  # 7/4 tokens in the time of 6/5
    Fraction(35, 24)
    >>> round(ideal_speedup(0.8, 4, 0.05), 4)
    2.8013

    References
    ----------
    Leviathan et al., 2211.17192, theorem 3.8.
    """
    return expected_tokens(alpha, gamma) / (1 + gamma * amount(cost_ratio, "cost_ratio", at_least=0))


def best_gamma_formula(alpha: Number = alpha, cost_ratio: Number = cost_ratio) -> Expr:
    """(1 + W₋₁(-α^(1/c - 1)/e))/ln α - 1/c: where d/dγ of the ideal speed-up is 0, for c < α < 1.

    The speed-up rises to this γ and falls after it, so the best whole number is its floor or its ceiling.

    Parameters
    ----------
    alpha : α, the probability that a draft passes
    cost_ratio : c, ratio of the time of a draft step to that of the target

    Returns
    -------
    γ, in general not whole [token]; W₋₁ is the lower real branch of Lambert's W

    Raises
    ------
    CostModelError
        for α that is not between 0 and 1, or c that is not above 0

    Examples
    --------
    >>> round(float(best_gamma_formula(0.8, 0.05)), 3)
    7.857
    """
    amount(cost_ratio, "cost_ratio")
    if not is_open(amount(alpha, "alpha", 0, 1)) and not 0 < alpha < 1:
        raise CostModelError(f"alpha must be above 0 and below 1 for a best gamma, got {alpha}")
    return (1 + LambertW(-(alpha ** (1 / cost_ratio - 1)) / E, -1)) / log(alpha) - 1 / cost_ratio


def ideal_best_gamma(alpha: Number, cost_ratio: Number) -> int:
    """The whole γ with the largest ideal speed-up, the smaller of equals; 0 unless α > c.

    Parameters
    ----------
    alpha : α, the probability that a draft passes
    cost_ratio : c, ratio of the time of a draft step to that of the target

    Returns
    -------
    γ [token], found by raising it from 0 as long as that helps

    Raises
    ------
    CostModelError
        when more guesses always help: a free draft, or α = 1 with a draft faster than the target; for α that is no
        number from 0 to 1 or c that is no number of at least 0

    Examples
    --------
    >>> ideal_best_gamma(0.8, 0.05), ideal_best_gamma(0.3, 0.4)
    (8, 0)

    References
    ----------
    Leviathan et al., 2211.17192, section 3.5.
    """
    if checks.amount("alpha", alpha, 0, 1) <= checks.amount("cost_ratio", cost_ratio, 0, LARGEST):
        return 0
    if cost_ratio == 0 or alpha == 1:
        raise CostModelError(f"with alpha {alpha} and cost_ratio {cost_ratio} every further guess helps: no best gamma")
    best = 0
    while ideal_speedup(alpha, best + 1, cost_ratio) > ideal_speedup(alpha, best, cost_ratio):
        best += 1
    return best


def implied_cost(speedup: float, alpha: float, gamma: int) -> float:
    """(E(α, γ)/speed-up - 1)/γ: the c at which the ideal speed-up is the one measured.

    Parameters
    ----------
    speedup : ratio of the measured time per token without guessing to that with it
    alpha : α, the probability that a draft passes
    gamma : γ, drafts per round, at least 1 [token]

    Returns
    -------
    c, ratio of the time of a draft step to that of the target; below 0 when not even a free draft explains the speed-up

    Raises
    ------
    CostModelError
        for a speed-up that is not above 0, α outside 0 … 1, or a γ that is not whole or is below 1: no drafts, no cost

    Examples
    --------
    >>> implied_cost(2, 0.5, 2)  # E = 1.75: too few tokens for twice the speed
    -0.0625
    >>> round(implied_cost(3.4, 0.75, 7), 4), round(implied_cost(3.1, 0.65, 5), 4)  # two rows of Leviathan's table 2
    (0.0084, -0.0296)
    """
    gamma = whole(gamma, "gamma")
    return ratio(ratio(expected_tokens(alpha, gamma), amount(speedup, "speedup")) - 1, gamma)
