"""Associative recall: pairs of key and value are written into a memory, then every key is asked for its value.

A memory of fixed size (one H x H matrix) against attention, which keeps all pairs. A value is H signs; it counts as
recalled when every sign comes back, so nothing is chosen from a list. (The task: Arora et al., BASED, 2402.18668.)
"""

from collections.abc import Callable, Sequence

import numpy as np

Memory = Callable[[np.ndarray, np.ndarray], np.ndarray]  # keys (n, H), values (n, H) -> what each key finds, (n, H)


def associations(pairs: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random directions of length 1 as keys, random signs as values.

    Parameters
    ----------
    pairs, width : n and H
    seed : of the draw; the same seed gives the same pairs

    Returns
    -------
    keys : (n, H), each of length 1
    values : (n, H), each number 1 or -1

    Examples
    --------
    >>> keys, values = associations(pairs=5, width=3, seed=0)
    >>> np.linalg.norm(keys, axis=1).round(12).tolist(), np.unique(values).tolist()
    ([1.0, 1.0, 1.0, 1.0, 1.0], [-1.0, 1.0])
    """
    rng = np.random.default_rng(seed)
    keys = rng.standard_normal((pairs, width))
    return keys / np.linalg.norm(keys, axis=1, keepdims=True), rng.choice([-1.0, 1.0], (pairs, width))


def added(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """K·Σ k vᵀ = K·(Kᵀ·V): linear attention, whose memory is the sum of the outer products.

    Parameters
    ----------
    keys, values : (n, H), all written, in whatever order, then all keys are asked

    Returns
    -------
    (n, H), what each key k finds: Σ (k·k')·v' over all pairs, its own with k·k = 1

    Examples
    --------
    >>> same_key = np.array([[1.0, 0.0], [1.0, 0.0]])
    >>> added(same_key, np.array([[1.0, 1.0], [-1.0, 1.0]]))[0]  # both values at once
    array([0., 2.])

    References
    ----------
    Katharopoulos et al., Transformers are RNNs, 2006.16236.
    """
    return keys @ (keys.T @ values)


def corrected(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """M ← M + k (v − what k finds)ᵀ: the delta rule, each write first takes away what was there.

    Parameters
    ----------
    keys, values : (n, H), written in order, then all keys are asked; keys of length 1

    Returns
    -------
    (n, H), what each key finds; the last key its exact value

    Examples
    --------
    >>> same_key = np.array([[1.0, 0.0], [1.0, 0.0]])
    >>> corrected(same_key, np.array([[1.0, 1.0], [-1.0, 1.0]]))[0]  # the second value has replaced the first
    array([-1.,  1.])

    References
    ----------
    Schlag, Irie and Schmidhuber, Linear transformers are secretly fast weight programmers, 2102.11174.
    With gates: Yang et al., Gated delta networks, 2412.06464.
    """
    memory = np.zeros((keys.shape[1], values.shape[1]))
    for key, value in zip(keys, values, strict=True):
        memory += np.outer(key, value - key @ memory)
    return keys @ memory


def best_matrix(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """K·(K⁺·V), the matrix of least squared error over all pairs: exact for independent keys, so for up to H pairs.

    Parameters
    ----------
    keys, values : (n, H), all seen at once

    Returns
    -------
    (n, H), what each key finds

    Examples
    --------
    >>> keys, values = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[1.0], [-1.0]])
    >>> best_matrix(keys, values).ravel().round(6), added(keys, values).ravel().round(6)
    (array([ 1., -1.]), array([ 0.4, -0.4]))
    """
    return keys @ (np.linalg.pinv(keys) @ values)


def attended(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """softmax(√H·K·Kᵀ)·V: attention over all pairs, with the usual scale of q·k/√H for keys of length √H.

    Parameters
    ----------
    keys, values : (n, H), all kept; keys of length 1

    Returns
    -------
    (n, H), what each key finds: a mean of all values, its own weighing most

    Examples
    --------
    >>> attended(np.eye(4), np.eye(4))[0].round(3)  # e²/(e² + 3) and 1/(e² + 3)
    array([0.711, 0.096, 0.096, 0.096])

    References
    ----------
    Vaswani et al., Attention is all you need, 1706.03762, section 3.2.1.
    """
    scores = np.sqrt(keys.shape[1]) * keys @ keys.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values


def share_recalled(memory: Memory, pairs: int, width: int, seeds: Sequence[int] = range(8)) -> float:
    """The share of pairs whose every sign is recalled, over all seeds.

    Parameters
    ----------
    memory : keys (n, H), values (n, H) -> what each key finds (n, H): `added`, `corrected`, `best_matrix`, `attended`
    pairs, width : n and H
    seeds : one draw of keys and values each, of equal weight

    Returns
    -------
    share, 0 to 1; a guess has 2^-H

    Examples
    --------
    >>> share_recalled(attended, 64, 32), share_recalled(best_matrix, 32, 32)
    (1.0, 1.0)
    >>> share_recalled(added, 32, 32) < 0.1
    True

    References
    ----------
    The task: Arora et al., BASED, 2402.18668.
    """
    drawn = [associations(pairs, width, seed) for seed in seeds]
    return float(np.mean([np.all(memory(keys, values) * values > 0, axis=1) for keys, values in drawn]))
