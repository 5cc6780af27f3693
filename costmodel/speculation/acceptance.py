"""Tokens per pass of the target, and what follows from them before any hardware is named.

The closed form assumes that every draft passes on its own with probability α. Acceptances are not independent, so it is
an estimate; what is certain is 1 to γ + 1 tokens per pass. (Leviathan et al., 2211.17192, whose letters these are.)
"""

from sympy import Eq, Expr, Integer, Piecewise

from costmodel.common import checks
from costmodel.common.errors import CostModelError
from costmodel.exact import Number, amount, is_plain, ratio, smallest, whole
from costmodel.symbols import alpha, gamma


def expected_tokens(alpha: Number = alpha, gamma: Number = gamma) -> Number:
    """(1 - α^(γ+1))/(1 - α), and γ + 1 at α = 1: expected tokens per pass, an estimate.

    A γ that is a number gives the sum 1 + α + … + α^γ, exact for integers and fractions.

    Parameters
    ----------
    alpha : α, the probability that a draft passes: a number from 0 to 1 or a symbol
    gamma : γ, drafts per round [token]: a whole number or a symbol

    Returns
    -------
    tokens per pass of the target [token]

    Raises
    ------
    CostModelError
        for α outside 0 … 1, or a γ that is not whole or is below 0

    Examples
    --------
    >>> from fractions import Fraction
    >>> expected_tokens(Fraction(4, 5), 4), float(expected_tokens(Fraction(4, 5), 4))
    (Fraction(2101, 625), 3.3616)
    >>> expected_tokens(gamma=3)
    alpha**3 + alpha**2 + alpha + 1

    References
    ----------
    Leviathan et al., 2211.17192, equation 1.
    """
    amount(alpha, "alpha", 0, 1)
    gamma = whole(gamma, "gamma", at_least=0)
    if is_plain(gamma):
        return sum(alpha**i for i in range(gamma + 1))
    if is_plain(alpha):
        return gamma + 1 if alpha == 1 else (1 - alpha ** (gamma + 1)) / (1 - alpha)
    return Piecewise((gamma + 1, Eq(alpha, 1)), ((1 - alpha ** (gamma + 1)) / (1 - alpha), True))


def sensitivity(alpha: Number = alpha, gamma: Number = gamma) -> Number:
    """dE/dα: tokens per pass that a better draft buys, per unit of acceptance; γ(γ + 1)/2 at α = 1.

    Parameters
    ----------
    alpha : α, the probability that a draft passes: a number from 0 to 1 or a symbol
    gamma : γ, drafts per round [token]: a whole number or a symbol

    Returns
    -------
    1 + 2α + … + γ·α^(γ-1), or its closed form for a symbolic γ [token]

    Raises
    ------
    CostModelError
        for α outside 0 … 1, a γ that is not whole or is below 0, or a symbolic γ beside an α that is a number

    Examples
    --------
    >>> sensitivity(gamma=3)
    3*alpha**2 + 2*alpha + 1
    >>> sensitivity(1, 4)
    10
    """
    amount(alpha, "alpha", 0, 1)
    gamma = whole(gamma, "gamma", at_least=0)
    if is_plain(gamma):
        return sum((i * alpha ** (i - 1) for i in range(1, gamma + 1)), Integer(0) if isinstance(alpha, Expr) else 0)
    if is_plain(alpha):
        raise CostModelError("the derivative needs alpha as a symbol when gamma is one; substitute afterwards")
    slope = (1 - (gamma + 1) * alpha**gamma + gamma * alpha ** (gamma + 1)) / (1 - alpha) ** 2  # not over α: α may be 0
    return Piecewise((gamma * (gamma + 1) / 2, Eq(alpha, 1)), (slope, True))


def most_tokens_of_mixtures(alpha: Number = alpha, gamma: Number = gamma) -> Number:
    """1 + α·γ: the most tokens per pass when rounds differ in difficulty and α is their average *over rounds*.

    E is convex in α, so by Jensen's inequality any mixture of easy and hard rounds yields at least E(α, γ); the chord
    from E(0, γ) = 1 to E(1, γ) = γ + 1 bounds it from above. An average over the text obeys `limits_of_text` instead.

    Parameters
    ----------
    alpha : α, the acceptance probability averaged over rounds
    gamma : γ, drafts per round [token]

    Returns
    -------
    tokens per pass of the target, at most [token]

    Raises
    ------
    CostModelError
        for α outside 0 … 1, or a γ that is not whole or is below 0

    Examples
    --------
    >>> most_tokens_of_mixtures(0.65, 5)
    4.25
    """
    return 1 + amount(alpha, "alpha", 0, 1) * whole(gamma, "gamma", at_least=0)


def limits_of_text(alpha: Number, gamma: Number) -> tuple[Number, Number]:
    """What tokens per pass can be when α is the average *over the tokens of the text*, however acceptances depend.

    A round ends with a rejection or a bonus. Over n tokens there are J ≤ (1 - α)·n rejections and b bonuses, and
    J + b ≥ (1 - α)·n since a bonus spares at most one rejection; whole rounds take γ + 1 tokens each. So tokens per
    pass lie between (γ + 1)/(γ + 1 - α·γ) and the smaller of γ + 1 and 1/(1 - α).

    Parameters
    ----------
    alpha : α, the acceptance probability averaged over the tokens of the text
    gamma : γ, drafts per round [token]

    Returns
    -------
    the least [token]
    the most [token]

    Raises
    ------
    CostModelError
        for α outside 0 … 1, or a γ that is not whole or is below 0

    Examples
    --------
    >>> limits_of_text(0.5, 3)
    (1.6, 2.0)
    >>> [round(x, 3) for x in limits_of_text(0.65, 5)]
    [2.182, 2.857]
    """
    amount(alpha, "alpha", 0, 1)
    gamma = whole(gamma, "gamma", at_least=0)
    least = ratio(gamma + 1, gamma + 1 - alpha * gamma)
    return least, gamma + 1 if alpha == 1 else smallest(gamma + 1, ratio(1, 1 - alpha))


def implied_alpha(tokens: float, gamma: int) -> float:
    """The α at which E(α, γ) is this many tokens per pass, by bisection.

    Parameters
    ----------
    tokens : E, measured per pass of the target, from 1 to γ + 1 [token]
    gamma : γ, drafts per round, at least 1 [token]

    Returns
    -------
    α, a probability, as if each draft passed independently

    Raises
    ------
    CostModelError
        when no α gives so many tokens, fewer than 1 or more than γ + 1, or every α does, at γ = 0

    Examples
    --------
    >>> round(implied_alpha(1.75, 2), 9), round(implied_alpha(3.3616, 4), 9)  # 1 + 1/2 + 1/4 is 1.75
    (0.5, 0.8)
    """
    gamma = checks.whole("gamma", gamma, 1)
    if not (checks.is_real(tokens) and 1 <= tokens <= gamma + 1):
        raise CostModelError(f"tokens per pass must be between 1 and gamma + 1 = {gamma + 1}, got {tokens!r}")
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if expected_tokens(middle, gamma) <= tokens else (low, middle)
    return low
