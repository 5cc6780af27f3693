"""Filters between logits and the draw: temperature, top-k, top-p, min-p, repetition penalty.

Each takes logits or probabilities (…, V) and works on the last axis. What cannot be sampled (NaN, +inf, or nothing
but -inf) is an error.
"""

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.selection import ROUNDING, nucleus_mask, top_k_mask


def checked_logits(logits: np.ndarray) -> np.ndarray:
    """Floats, with every row's largest finite."""
    logits = np.asarray(logits)
    logits = logits if np.issubdtype(logits.dtype, np.floating) else logits.astype(np.float64)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise CostModelError(f"logits must have at least one token on their last axis, got shape {logits.shape}")
    largest = logits.max(axis=-1)  # NaN wins every maximum
    if np.isnan(largest).any():
        raise CostModelError("a logit is NaN; each must be a finite number or -inf")
    if np.isposinf(largest).any():
        raise CostModelError("a logit is +inf; each must be a finite number or -inf")
    if np.isneginf(largest).any():
        raise CostModelError("all logits are -inf, so no token can be chosen; leave at least one finite")
    return logits


def checked_vector(logits: np.ndarray) -> np.ndarray:
    """Logits of one distribution, (V,)."""
    logits = checked_logits(logits)
    if logits.ndim > 1:
        raise CostModelError(f"logits must be one vector (V,), got shape {logits.shape}; index a row, or sample_batch")
    return logits


def _checked_probs(probs: np.ndarray) -> np.ndarray:
    """Floats that are not negative, with a positive finite sum in every row."""
    probs = np.asarray(probs, dtype=np.float64)
    if probs.ndim == 0 or probs.shape[-1] == 0:
        raise CostModelError(f"probabilities must have at least one token on their last axis, got shape {probs.shape}")
    if not np.isfinite(probs).all() or (probs < 0).any():
        raise CostModelError(f"probabilities must be finite and at least 0, got {probs.min()} to {probs.max()}")
    if (probs.sum(axis=-1) <= 0).any():
        raise CostModelError("all probabilities are 0, so no token can be chosen; leave at least one above")
    return probs


def checked_temperature(temperature: float) -> float:
    """T, when it is finite and not negative."""
    if not 0 <= temperature < np.inf:
        raise CostModelError(f"temperature must be a finite number of at least 0, got {temperature}")
    return float(temperature)


def checked_share(name: str, value: float) -> float:
    """A probability to compare with, when it is one."""
    if not 0 <= value <= 1:
        raise CostModelError(f"{name} must be between 0 and 1, got {value}")
    return float(value)


def top_k_limit(k: int | None, vocab: int) -> int:
    """How many tokens top-k leaves: all of them for None, for k <= 0 (off) and for k > V."""
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer)):
        raise CostModelError(f"top_k must be an integer or None, got {k!r}")
    return vocab if k is None or k <= 0 else min(int(k), vocab)


def temperature_probs(logits: np.ndarray, temperature: float) -> np.ndarray:
    """softmax(logits/T); at T = 0 all on the largest logit (the first of several), the greedy choice.

    Parameters
    ----------
    logits : (…, V); -inf has probability 0
    temperature : T, a number of at least 0

    Returns
    -------
    (…, V), summing to 1

    Raises
    ------
    CostModelError
        for a negative or infinite T, NaN or +inf logits, or nothing but -inf

    Examples
    --------
    >>> for T in (0, 0.5, 1, 2):
    ...     print(temperature_probs([2, 1, 0], T).round(3))
    [1. 0. 0.]
    [0.867 0.117 0.016]
    [0.665 0.245 0.09 ]
    [0.506 0.307 0.186]

    References
    ----------
    Holtzman et al., 1904.09751, section 3.3.
    """
    logits, temperature = checked_logits(logits), checked_temperature(temperature)
    if temperature == 0:
        return np.eye(logits.shape[-1])[np.argmax(logits, axis=-1)]
    return _softmax(logits, temperature)


def _softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    with np.errstate(over="ignore"):  # a gap beyond the largest float is a probability of 0
        weights = np.exp((logits - logits.max(axis=-1, keepdims=True)).astype(np.float64) / temperature)
    return weights / weights.sum(axis=-1, keepdims=True)


def top_k_filter(probs: np.ndarray, k: int | None) -> np.ndarray:
    """Keep the k most likely tokens (of equals, the first) and renormalise.

    Parameters
    ----------
    probs : (…, V), at least 0; a row need not sum to 1
    k : None or below 1 keeps all, and so does k > V

    Returns
    -------
    (…, V), summing to 1

    Raises
    ------
    CostModelError
        for a k that is no whole number, probabilities that are negative or not finite, or all 0

    Examples
    --------
    >>> top_k_filter([0.5, 0.3, 0.15, 0.05], 2)
    array([0.625, 0.375, 0.   , 0.   ])

    References
    ----------
    Fan et al., Hierarchical neural story generation, 1805.04833.
    """
    probs = _checked_probs(probs)
    return _renormalised(probs, top_k_mask(probs, top_k_limit(k, probs.shape[-1])))


def top_p_filter(probs: np.ndarray, p: float) -> np.ndarray:
    """Keep the fewest most likely tokens whose probabilities reach p, and renormalise.

    A set that reaches p exactly, to within the rounding of the given dtype, gets no further token; of equals the first
    are kept.

    Parameters
    ----------
    probs : (…, V), at least 0; a row need not sum to 1
    p : share of a row's sum; 0 keeps the most likely token alone, 1 keeps all

    Returns
    -------
    (…, V), summing to 1

    Raises
    ------
    CostModelError
        for a p outside 0 to 1, probabilities that are negative or not finite, or all 0

    Examples
    --------
    >>> top_p_filter([0.5, 0.3, 0.15, 0.05], 0.9).round(3)
    array([0.526, 0.316, 0.158, 0.   ])

    References
    ----------
    Holtzman et al., 1904.09751, section 3.1.
    """
    given = np.asarray(probs).dtype
    rounding = 8 * np.finfo(given).eps if given in (np.float16, np.float32) else ROUNDING
    probs, p = _checked_probs(probs), checked_share("top_p", p)
    probs = probs / probs.sum(axis=-1, keepdims=True)
    return _renormalised(probs, nucleus_mask(probs, p, rounding))


def min_p_filter(probs: np.ndarray, p: float) -> np.ndarray:
    """Keep the tokens with at least p times the largest probability, and renormalise.

    Parameters
    ----------
    probs : (…, V), at least 0; a row need not sum to 1
    p : share of the row's largest probability; 0 keeps all, 1 the most likely token and its equals

    Returns
    -------
    (…, V), summing to 1

    Raises
    ------
    CostModelError
        for a p outside 0 to 1, probabilities that are negative or not finite, or all 0

    Examples
    --------
    >>> min_p_filter([0.5, 0.3, 0.15, 0.05], 0.5)
    array([0.625, 0.375, 0.   , 0.   ])

    References
    ----------
    Nguyen et al., 2407.01082.
    """
    probs, p = _checked_probs(probs), checked_share("min_p", p)
    return _renormalised(probs, probs >= p * probs.max(axis=-1, keepdims=True))


def _renormalised(probs: np.ndarray, keep: np.ndarray) -> np.ndarray:
    kept = np.where(keep, probs, 0.0)
    return kept / kept.sum(axis=-1, keepdims=True)


def repetition_penalty(logits: np.ndarray, previous: np.ndarray, penalty: float) -> np.ndarray:
    """Logits of tokens already present: divided by the penalty if positive, else multiplied.

    Parameters
    ----------
    logits : (V,)
    previous : ids present, 0 to V - 1; how often does not matter
    penalty : factor above 0; 1 changes nothing, more makes the tokens less likely

    Returns
    -------
    (V,), a copy

    Raises
    ------
    CostModelError
        for a penalty or an id out of range, other than one vector of logits, NaN or +inf, or nothing but -inf

    Examples
    --------
    >>> repetition_penalty([2.0, -1.0, 3.0], [0, 1], 2.0)
    array([ 1., -2.,  3.])

    References
    ----------
    Keskar et al., CTRL, 1909.05858, section 4.1, where negative logits are divided too, and so made more likely.
    """
    if not 0 < penalty < np.inf:
        raise CostModelError(f"penalty must be a finite number above 0, got {penalty}")
    logits, ids = checked_vector(logits).copy(), np.asarray(list(previous))
    if ids.size and not np.issubdtype(ids.dtype, np.integer):
        raise CostModelError(f"previous tokens must be integers, got {ids.dtype}")
    ids = ids.astype(np.intp)
    if ids.size and not 0 <= ids.min() <= ids.max() < len(logits):
        raise CostModelError(f"previous tokens must be 0 to {len(logits) - 1}, got {ids.min()} to {ids.max()}")
    logits[ids] = np.where(logits[ids] > 0, logits[ids] / penalty, logits[ids] * penalty)
    return logits
