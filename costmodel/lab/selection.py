"""Partial selection and the draw: the best few of many tokens, without sorting them all."""

import numpy as np

ROUNDING = 1e-12  # how near to p a sum of float64 probabilities counts as having reached it
FIRST_GUESS = 64  # tokens sorted at first when looking for a nucleus; grows eightfold


def kth_largest(scores: np.ndarray, k: int) -> np.number:
    """The k-th largest of (V,) scores: only those can be it that reach the k-th largest of many groups' maxima.

    Examples
    --------
    >>> int(kth_largest(np.arange(10_000) % 7_919, 3))
    7916
    """
    groups = max(8 * k, 1024)
    if len(scores) >= 4 * groups:
        whole = len(scores) // groups * groups
        maxima = scores[:whole].reshape(-1, groups).max(axis=0)
        scores = scores[scores >= np.partition(maxima, groups - k)[groups - k]]
    return np.partition(scores, len(scores) - k)[len(scores) - k]


def top_k_mask(scores: np.ndarray, k: int) -> np.ndarray:
    """Where the k largest of the last axis are; of equals at the border, the first.

    Parameters
    ----------
    scores : (…, V)
    k : 1 to V

    Examples
    --------
    >>> top_k_mask(np.array([1.0, 3.0, 2.0, 2.0]), 2)
    array([False,  True,  True, False])
    """
    vocab = scores.shape[-1]
    if k >= vocab or not scores.size:
        return np.ones(scores.shape, bool)
    border = np.apply_along_axis(kth_largest, -1, scores, k)[..., np.newaxis]
    keep = scores >= border
    if (np.count_nonzero(keep, axis=-1) > k).any():
        above, ties = scores > border, scores == border
        keep = above | (ties & (np.cumsum(ties, axis=-1) <= k - np.count_nonzero(above, axis=-1)[..., np.newaxis]))
    return keep


def nucleus_mask(probs: np.ndarray, p: float, rounding: float = ROUNDING) -> np.ndarray:
    """Where the fewest of the largest probabilities are that reach p together; of equals the first; p = 1 keeps all.

    Parameters
    ----------
    probs : (…, V), float64, each row summing to 1
    p : 0 to 1
    rounding : a sum this near to p has reached it

    Examples
    --------
    >>> nucleus_mask(np.array([0.3, 0.1, 0.1, 0.5]), 0.8)
    array([ True, False, False,  True])
    """
    if p == 1:
        return np.ones(probs.shape, bool)
    keep = np.zeros(probs.shape, bool)
    for row, kept in zip(probs.reshape(-1, probs.shape[-1]), keep.reshape(-1, probs.shape[-1]), strict=True):
        kept[_nucleus(row, p - rounding)] = True
    return keep


def _nucleus(probs: np.ndarray, goal: float) -> np.ndarray:
    size = FIRST_GUESS
    while True:
        best = np.flatnonzero(top_k_mask(probs, min(size, len(probs))))
        best = best[np.argsort(-probs[best], kind="stable")]
        reached = np.cumsum(probs[best]) >= goal
        if reached[-1] or size >= len(probs):
            return best[: np.argmax(reached) + 1] if reached[-1] else best
        size *= 8


def draw(weights: np.ndarray, uniform: np.ndarray | float) -> np.ndarray:
    """Indices with probability weight/Σ weights, by inverting the cumulative sum; a weight of 0 is never drawn.

    Parameters
    ----------
    weights : (V,), at least 0, one above
    uniform : any shape, in [0, 1)

    Examples
    --------
    >>> draw(np.array([0.0, 1.0, 0.0, 3.0]), np.array([0.0, 0.2, 0.25, 0.99]))
    array([1, 1, 3, 3])
    """
    below = np.cumsum(weights)
    found = np.searchsorted(below, uniform * below[-1], side="right")
    return np.minimum(found, np.flatnonzero(weights)[-1])  # a product rounded up to the very end
