"""Associative recall: pairs of key and value are written into a memory, then every key is asked for its value.

A memory of fixed size (one H x H matrix) against attention, which keeps all pairs. A value is H signs; it counts as
recalled when every sign comes back, so nothing is chosen from a list. (The task: Arora et al., BASED, 2402.18668.)
"""

from collections.abc import Callable, Sequence

import numpy as np

Memory = Callable[[np.ndarray, np.ndarray], np.ndarray]  # keys (n, H), values (n, H) -> what each key finds, (n, H)


def associations(pairs: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random directions of length 1 as keys, random signs as values, (pairs, width) each."""
    rng = np.random.default_rng(seed)
    keys = rng.standard_normal((pairs, width))
    return keys / np.linalg.norm(keys, axis=1, keepdims=True), rng.choice([-1.0, 1.0], (pairs, width))


def added(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Linear attention: the memory is the sum of the outer products k vᵀ."""
    return keys @ (keys.T @ values)


def corrected(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The delta rule: each write adds k (v − what k finds)ᵀ, so it first takes away what was there.

    Examples
    --------
    >>> same_key = np.array([[1.0, 0.0], [1.0, 0.0]])
    >>> corrected(same_key, np.array([[1.0, 1.0], [-1.0, 1.0]]))[0]
    array([-1.,  1.])
    """
    memory = np.zeros((keys.shape[1], values.shape[1]))
    for key, value in zip(keys, values, strict=True):
        memory += np.outer(key, value - key @ memory)
    return keys @ memory


def best_matrix(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The matrix of least squared error over all pairs: exact as long as the keys are independent, so up to H pairs."""
    return keys @ (np.linalg.pinv(keys) @ values)


def attended(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Softmax attention over all pairs, with scores √H·(q·k): the usual scale for keys of length √H."""
    scores = np.sqrt(keys.shape[1]) * keys @ keys.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values


def share_recalled(memory: Memory, pairs: int, width: int, seeds: Sequence[int] = range(8)) -> float:
    """The share of pairs whose every sign is recalled, over all seeds.

    Parameters
    ----------
    memory : how pairs are written and read
    pairs, width : n and H
    seeds : one draw of keys and values each

    Examples
    --------
    >>> share_recalled(attended, 64, 32), share_recalled(best_matrix, 32, 32)
    (1.0, 1.0)
    >>> share_recalled(added, 32, 32) < 0.1
    True
    """
    drawn = [associations(pairs, width, seed) for seed in seeds]
    return float(np.mean([np.all(memory(keys, values) * values > 0, axis=1) for keys, values in drawn]))
