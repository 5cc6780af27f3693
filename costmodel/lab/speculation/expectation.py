"""What a round yields on average, exactly, for bigram tables: no independence is assumed."""

import numpy as np

from costmodel.lab.speculation.models import checked_tables
from costmodel.lab.speculation.rule import checked_count


def tokens_per_round(target: np.ndarray, draft: np.ndarray, n_draft: int) -> np.ndarray:
    """(1 + A + … + A^γ)·1 with A = min(p, q): expected tokens of a round, by the token that it starts after.

    Parameters
    ----------
    target, draft : p and q, bigram tables (V, V)
    n_draft : γ

    Returns
    -------
    (V,), each from 1 to γ + 1 [token]

    Raises
    ------
    CostModelError
        for tables of two shapes, rows that are not distributions, or a γ that is not a whole number of at least 0

    Examples
    --------
    >>> tokens_per_round(np.eye(2), np.full((2, 2), 0.5), 2)  # 1 + 1/2 + 1/4
    array([1.75, 1.75])
    """
    passes, total = np.minimum(*checked_tables(target, draft)), np.ones(len(target))
    for _ in range(checked_count("n_draft", n_draft)):
        total = 1 + passes @ total
    return total


def long_run(target: np.ndarray, draft: np.ndarray, n_draft: int) -> tuple[float, float]:
    """Tokens per round and acceptance rate α of an endless answer: α averaged over the target's own text.

    Rounds start after the last token of the round before, so their starts are a Markov chain with the kernel
    (1 + A + … + A^(γ-1))·(p - A) + A^γ·p; text is one with the kernel p.

    Parameters
    ----------
    target, draft : p and q, bigram tables (V, V)
    n_draft : γ

    Returns
    -------
    tokens per round, 1 to γ + 1 [token]
    α, a probability

    Raises
    ------
    CostModelError
        for tables of two shapes, rows that are not distributions, or a γ that is not a whole number of at least 0

    Examples
    --------
    >>> p = np.array([[0.5, 0.3, 0.2]] * 3)
    >>> q = np.array([[0.3, 0.3, 0.4]] * 3)
    >>> [round(x, 4) for x in long_run(p, q, 4)]  # rows alike, so drafts pass independently: (1 - 0.8^5)/(1 - 0.8)
    [3.3616, 0.8]
    """
    p, q = checked_tables(target, draft)
    kernel, passes = p, np.minimum(p, q)
    for _ in range(checked_count("n_draft", n_draft)):
        kernel = p - passes + passes @ kernel
    starts, text = _stationary(kernel), _stationary(p)
    return float(starts @ tokens_per_round(target, draft, n_draft)), float(text @ passes.sum(axis=1))


def _stationary(kernel: np.ndarray) -> np.ndarray:
    """The distribution that the kernel leaves as it is."""
    size = len(kernel)
    equations = np.vstack([kernel.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(equations, np.append(np.zeros(size), 1), rcond=None)[0]
