"""The rule of speculative sampling: accept with min(1, p/q), else replace from max(0, p - q); if all pass, a bonus.

p is the target's distribution and q the draft's, as in Leviathan et al. (2211.17192); Chen et al. (2302.01318) write
them the other way round.
"""

from collections.abc import Sequence

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.selection import ROUNDING, draw


def checked_distribution(name: str, probs: np.ndarray) -> np.ndarray:
    """Float64 probabilities (…, V), each row summing to 1 to within float32's rounding."""
    probs = np.asarray(probs, dtype=np.float64)
    if probs.ndim == 0 or probs.shape[-1] == 0:
        raise CostModelError(f"{name} must have at least one token on its last axis, got shape {probs.shape}")
    if not np.isfinite(probs).all() or (probs < 0).any():
        raise CostModelError(f"{name} must hold finite probabilities of at least 0, got {probs.min()} to {probs.max()}")
    totals = probs.sum(axis=-1)
    if (np.abs(totals - 1) > 1e-5).any():
        raise CostModelError(f"each distribution of {name} must sum to 1, got {totals.min():.6g} to {totals.max():.6g}")
    return probs


def _pair(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p, q = checked_distribution("p", p), checked_distribution("q", q)
    if p.shape != q.shape:
        raise CostModelError(f"p and q must have the same shape, got {p.shape} and {q.shape}")
    return p, q


def acceptance_rate(p: np.ndarray, q: np.ndarray) -> float | np.ndarray:
    """α = Σ min(p, q): how likely a token drawn from q is kept; 1 - α is the total variation distance.

    Parameters
    ----------
    p, q : target and draft, (…, V)

    Returns
    -------
    a float for one distribution, else an array (…)

    Raises
    ------
    CostModelError
        for shapes that differ, or what is no distribution

    Examples
    --------
    >>> round(acceptance_rate([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]), 12)
    0.8

    References
    ----------
    Leviathan et al., 2211.17192, section 3.2.
    """
    p, q = _pair(p, q)
    rate = np.minimum(p, q).sum(axis=-1)
    return float(rate) if rate.ndim == 0 else rate


def keep_probabilities(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """min(1, p/q) for each token; 1 where q is 0, which is never drafted.

    Parameters
    ----------
    p, q : target and draft, (…, V)

    Returns
    -------
    (…, V) probabilities

    Raises
    ------
    CostModelError
        for shapes that differ, or what is no distribution

    Examples
    --------
    >>> keep_probabilities([0.5, 0.3, 0.2], [0.3, 0.3, 0.4])
    array([1. , 1. , 0.5])

    References
    ----------
    Leviathan et al., 2211.17192, section 2.3.
    """
    p, q = _pair(p, q)
    return np.divide(p, q, out=np.ones_like(p), where=p < q)


def residual(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """What a replacement is drawn from: max(0, p - q), scaled to sum to 1.

    Where p and q are equal to within rounding nothing is left of the difference; a rejection is then rounding too, and
    the replacement comes from p.

    Parameters
    ----------
    p, q : target and draft, (…, V)

    Returns
    -------
    (…, V), each row a distribution

    Raises
    ------
    CostModelError
        for shapes that differ, or what is no distribution

    Examples
    --------
    >>> residual([0.5, 0.3, 0.2], [0.3, 0.3, 0.4])
    array([1., 0., 0.])
    >>> residual([0.5, 0.5], [0.5, 0.5])
    array([0.5, 0.5])

    References
    ----------
    Leviathan et al., 2211.17192, section 2.3; Chen et al., 2302.01318, algorithm 2.
    """
    p, q = _pair(p, q)
    left = np.maximum(p - q, 0)
    total = left.sum(axis=-1, keepdims=True)
    return np.where(total > ROUNDING, left / np.where(total > 0, total, 1), p)


def expected_tokens_per_round(alpha: float | np.ndarray, n_draft: int) -> float | np.ndarray:
    """1 + α + … + α^γ = (1 - α^(γ+1))/(1 - α): tokens per pass when each draft passes on its own with probability α.

    An estimate: real acceptances are not independent. Only the limits 1 and γ + 1 are hard.

    Parameters
    ----------
    alpha : α, 0 to 1, a float or an array
    n_draft : γ, at least 0

    Returns
    -------
    tokens per pass of the target [token], of alpha's shape

    Raises
    ------
    CostModelError
        for an α outside 0 to 1, or a γ that is not a whole number of at least 0

    Examples
    --------
    >>> round(expected_tokens_per_round(0.8, 4), 10), expected_tokens_per_round(1, 4), expected_tokens_per_round(0.8, 0)
    (3.3616, 5.0, 1.0)

    References
    ----------
    Leviathan et al., 2211.17192, equation 1.
    """
    n_draft = checked_count("n_draft", n_draft)
    rate = np.asarray(alpha, dtype=np.float64)
    if not ((rate >= 0) & (rate <= 1)).all():
        raise CostModelError(f"alpha must be between 0 and 1, got {alpha}")
    total = np.ones_like(rate)
    for _ in range(n_draft):
        total = 1 + rate * total
    return float(total) if total.ndim == 0 else total


def checked_count(name: str, value: int) -> int:
    """A whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise CostModelError(f"{name} must be a whole number of at least 0, got {value!r}")
    return int(value)


def verify(drafted: Sequence[int], p: np.ndarray, q: np.ndarray | None, rng: np.random.Generator) -> list[int]:
    """The tokens that a round yields: the drafts up to the first rejection, and one from the target.

    Draft x passes when u·q(x) < p(x), strictly, so a token that the target gives 0 never does.

    Parameters
    ----------
    drafted : x₁ … x_γ
    p : (γ + 1, V), the target's distribution at each draft and after the last
    q : (γ, V), the distributions that the drafts were drawn from; None when each was certain
    rng : gives one uniform number for each draft looked at, and one for the last token

    Returns
    -------
    1 to γ + 1 ids [token]

    Raises
    ------
    CostModelError
        when a draft has q(x) = 0: it cannot have been drawn from q; for a draft that is no id from 0 to V - 1, or a
        distribution too few or too many

    Examples
    --------
    >>> verify([0, 2], np.eye(3)[[0, 1, 1]], None, np.random.default_rng(0))  # 0 passes, the target's own 1 replaces 2
    [0, 1]

    References
    ----------
    Leviathan et al., 2211.17192, algorithm 1, with the proof in appendix A.1; Chen et al., 2302.01318, algorithm 2.
    """
    if len(p) != len(drafted) + 1 or (q is not None and len(q) != len(drafted)):
        raise CostModelError(
            f"{len(drafted)} drafts need {len(drafted) + 1} target distributions and {len(drafted)} of the draft, "
            f"got {len(p)} and {'none' if q is None else len(q)}"
        )
    for i, token in enumerate(drafted):
        if not 0 <= token < p.shape[1]:
            raise CostModelError(f"drafted token {token} is outside the vocabulary; ids are 0 to {p.shape[1] - 1}")
        chance = 1.0 if q is None else q[i, token]
        if not chance > 0:
            raise CostModelError(f"drafted token {token} has probability {chance} in the draft; it cannot be drawn")
        if not rng.random() * chance < p[i, token]:
            unwanted = np.eye(1, p.shape[1], token)[0] if q is None else q[i]
            return [*drafted[:i], int(draw(residual(p[i], unwanted), rng.random()))]
    return [*drafted, int(draw(p[len(drafted)], rng.random()))]
