"""Addition of floats is not associative, so the order of a sum can decide a near tie."""

from collections.abc import Iterable

import numpy as np


def float32_sum(values: Iterable[float]) -> float:
    """The sum of the values from left to right, every partial sum rounded to float32.

    Parameters
    ----------
    values : terms, each rounded to float32 first

    Returns
    -------
    the sum, a number that float32 holds; 0.0 of no values

    Examples
    --------
    >>> float32_sum([1e8, 1, -1e8]), float32_sum([1e8, -1e8, 1])
    (0.0, 1.0)

    References
    ----------
    Goldberg, What every computer scientist should know about floating-point arithmetic, ACM Comput. Surv. 23(1), 1991.
    """
    total = np.float32(0)
    for value in values:
        total = total + np.float32(value)
    return float(total)


def greedy_pick_with_summation_order(contributions: Iterable[float], other_logit: float) -> str:
    """Which of two tokens greedy decoding picks when A's logit is a float32 sum in the given order and B's is known.

    A tie goes to A, the first.

    Parameters
    ----------
    contributions : the terms of A's logit, in the order that a kernel adds them
    other_logit : B's logit, a number that is rounded to float32

    Returns
    -------
    "A" or "B"

    Examples
    --------
    >>> greedy_pick_with_summation_order([1e8, 1, -1e8], 0.5), greedy_pick_with_summation_order([1e8, -1e8, 1], 0.5)
    ('B', 'A')

    References
    ----------
    He, Thinking Machines Lab, Defeating nondeterminism in LLM inference, 2025.
    """
    return "A" if float32_sum(contributions) >= np.float32(other_logit) else "B"
