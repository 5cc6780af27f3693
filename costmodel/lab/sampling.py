"""Choosing a token: one draw, many draws from one distribution, one draw for every row of a batch.

The order is temperature, top-k, top-p, then min-p; a repetition penalty is applied to the logits before. Only the
candidates that top-k leaves are exponentiated and sorted, so a large vocabulary costs a few passes over its logits.
"""

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.lab.filters import (
    checked_logits,
    checked_share,
    checked_temperature,
    checked_vector,
    min_p_filter,
    repetition_penalty,
    temperature_probs,
    top_k_filter,
    top_k_limit,
    top_p_filter,
)
from costmodel.lab.selection import draw, nucleus_mask, top_k_mask
from costmodel.lab.summation import float32_sum, greedy_pick_with_summation_order

__all__ = [
    "candidates",
    "float32_sum",
    "greedy",
    "greedy_pick_with_summation_order",
    "min_p_filter",
    "repetition_penalty",
    "sample_batch",
    "sample_many",
    "sample_next",
    "temperature_probs",
    "top_k_filter",
    "top_p_filter",
]


def greedy(logits: np.ndarray) -> int:
    """The token with the largest logit, the first of several.

    Parameters
    ----------
    logits : (V,)

    Returns
    -------
    id, 0 to V - 1

    Raises
    ------
    CostModelError
        for NaN or +inf logits, nothing but -inf, or other than one vector

    Examples
    --------
    >>> greedy([0.5, 2.0, 2.0])
    1
    """
    return int(np.argmax(checked_vector(logits)))


def sample_next(
    logits: np.ndarray,
    rng: np.random.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    *,
    min_p: float | None = None,
) -> int:
    """One token drawn from the filtered distribution.

    Parameters
    ----------
    logits : (V,)
    rng : gives one uniform number; unused where a single token is left, as at temperature 0
    temperature : T, the number that logits are divided by; 0 is greedy
    top_k : number of tokens left; None or below 1 keeps all
    top_p, min_p : 0 to 1; None keeps all

    Returns
    -------
    id, 0 to V - 1

    Raises
    ------
    CostModelError
        for logits or settings that have no answer (NaN, +inf, all -inf, p outside 0 to 1, T below 0), or other than one
        vector of logits

    Examples
    --------
    >>> sample_next([2.0, 1.0, 0.0], np.random.default_rng(0), temperature=0)
    0

    References
    ----------
    Holtzman et al., 1904.09751, section 3.
    """
    return int(_drawn(candidates(logits, temperature, top_k, top_p, min_p=min_p), rng, 1)[0])


def sample_many(
    logits: np.ndarray,
    rng: np.random.Generator,
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    *,
    min_p: float | None = None,
) -> np.ndarray:
    """n independent tokens (n,) from one filtered distribution; the parameters are those of `sample_next`.

    Parameters
    ----------
    logits : (V,)
    rng : gives n uniform numbers; unused where a single token is left
    n : number of draws, at least 0
    temperature : T, the number that logits are divided by; 0 is greedy
    top_k, top_p, min_p : as in `sample_next`

    Returns
    -------
    (n,) ids

    Raises
    ------
    CostModelError
        as `sample_next`, or for an n that is not an integer of at least 0

    Examples
    --------
    >>> sample_many([2.0, 1.0, 0.0], np.random.default_rng(0), 5, top_k=2)
    array([0, 0, 0, 0, 1])
    """
    n = whole("n", n, 0)
    return _drawn(candidates(logits, temperature, top_k, top_p, min_p=min_p), rng, n)


def _drawn(found: tuple[np.ndarray, np.ndarray], rng: np.random.Generator, n: int) -> np.ndarray:
    ids, weights = found
    return ids[draw(weights, rng.random(n))] if len(ids) > 1 else np.repeat(ids, n)


def sample_batch(
    logits: np.ndarray,
    rng: np.random.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    *,
    min_p: float | None = None,
) -> np.ndarray:
    """One token for each row of logits (B, V); the parameters are those of `sample_next`.

    Parameters
    ----------
    logits : (B, V); (V,) is one row
    rng : gives each row, in order, its uniform number
    temperature : T, the number that logits are divided by; 0 is greedy
    top_k, top_p, min_p : as in `sample_next`, the same for all rows

    Returns
    -------
    (B,) ids

    Raises
    ------
    CostModelError
        as `sample_next`, or for more than two axes

    Examples
    --------
    >>> sample_batch([[0.0, 9.0], [9.0, 0.0]], np.random.default_rng(0), temperature=0)
    array([1, 0])
    """
    rows = np.atleast_2d(checked_logits(logits))
    if rows.ndim > 2:
        raise CostModelError(f"logits must be (B, V) or (V,), got shape {rows.shape}")
    return np.array([sample_next(row, rng, temperature, top_k, top_p, min_p=min_p) for row in rows], dtype=np.intp)


def candidates(
    logits: np.ndarray,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    *,
    min_p: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens that can be drawn and their probabilities, by partial selection.

    Parameters
    ----------
    logits : (V,)
    temperature : T, the number that logits are divided by; 0 leaves the greedy token alone
    top_k, top_p, min_p : as in `sample_next`; the latter two look at what top-k leaves, renormalised

    Returns
    -------
    ids, ascending, and probabilities, summing to 1

    Raises
    ------
    CostModelError
        as `sample_next`

    Examples
    --------
    >>> ids, probs = candidates([0.0, 3.0, 2.0, 1.0], 0.5, top_k=3, top_p=0.9)
    >>> ids, probs.round(3)
    (array([1, 2]), array([0.881, 0.119]))

    References
    ----------
    Holtzman et al., 1904.09751, section 3; min-p: Nguyen et al., 2407.01082.
    """
    logits, temperature = checked_vector(logits), checked_temperature(temperature)
    limit = top_k_limit(top_k, logits.shape[-1])
    top_p = 1.0 if top_p is None else checked_share("top_p", top_p)
    min_p = 0.0 if min_p is None else checked_share("min_p", min_p)
    if temperature == 0:
        return np.array([np.argmax(logits)]), np.ones(1)
    ids = np.flatnonzero(top_k_mask(logits, limit)) if limit < len(logits) else np.arange(len(logits))
    probs = temperature_probs(logits[ids], temperature)
    if top_p < 1 or min_p > 0:
        kept = np.flatnonzero(nucleus_mask(probs, top_p) & (probs >= min_p * probs.max()))
        ids, probs = ids[kept], probs[kept] / probs[kept].sum()
    return ids, probs
