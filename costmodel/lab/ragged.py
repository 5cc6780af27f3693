"""Sequences of different lengths as one batch: their rows one below the other, their caches kept apart."""

from collections.abc import Sequence

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.cache import Cache
from costmodel.lab.shape import DecoderShape


class RaggedBatch:
    """The rows of one pass: all that works on rows alone can take them together.

    Parameters
    ----------
    shape : vocabulary and max_len
    sequences : (T_i,) ids each
    caches : one, or None, for each sequence

    Attributes
    ----------
    ids, positions : (Σ T_i,), which token each row is and where in its sequence
    lengths : T_i

    Raises
    ------
    CostModelError
        before anything changes: no tokens, an id outside the vocabulary, too long, or a cache used twice

    Examples
    --------
    >>> shape = DecoderShape(vocab=16, d_model=16, n_layers=2, max_len=64, n_heads=2, n_kv_heads=2, head_dim=8, d_ff=64)
    >>> RaggedBatch(shape, [[7, 8, 9], [4]], [None, None]).positions
    array([0, 1, 2, 0])
    """

    def __init__(self, shape: DecoderShape, sequences: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> None:
        if len(caches) != len(sequences) or not sequences:
            raise CostModelError(f"one cache for each sequence is needed, got {len(caches)} for {len(sequences)}")
        held = [id(cache) for cache in caches if cache is not None]
        if len(set(held)) < len(held):
            raise CostModelError("two sequences of a batch share one cache; give each its own, cache.fork()")
        rows = [checked_ids(tokens, shape.vocab) for tokens in sequences]
        pasts = [0 if cache is None else cache.length for cache in caches]
        for tokens, past in zip(rows, pasts, strict=True):
            if past + len(tokens) > shape.max_len:
                raise CostModelError(f"sequence of {past + len(tokens)} tokens is longer than max_len, {shape.max_len}")
        self.caches = list(caches)
        self.lengths = [len(tokens) for tokens in rows]
        self.ids = np.concatenate(rows)
        self.positions = np.concatenate([past + np.arange(n) for past, n in zip(pasts, self.lengths, strict=True)])
        for cache, length in zip(caches, self.lengths, strict=True):
            if cache is not None:
                cache.reserve(length)

    def split(self, rows: np.ndarray) -> list[np.ndarray]:
        """Rows of all sequences, sequence by sequence."""
        return np.split(rows, np.cumsum(self.lengths)[:-1])

    def finish(self) -> None:
        """Keep in the caches what this pass wrote."""
        for cache, tokens in zip(self.caches, self.lengths, strict=True):
            if cache is not None:
                cache.advance(tokens)


def checked_ids(tokens: Sequence[int] | np.ndarray, vocab: int) -> np.ndarray:
    """Tokens as an array, when there are some and all are integers from 0 to V - 1."""
    try:
        ids = np.asarray(tokens)
    except ValueError:  # rows of several lengths
        ids = np.empty((0, 0))
    if ids.ndim != 1 or ids.size == 0 or not np.issubdtype(ids.dtype, np.integer):
        raise CostModelError(f"tokens must be a non-empty sequence of integers, got {str(tokens)[:60]}")
    wrong = ids[(ids < 0) | (ids >= vocab)]
    if wrong.size:
        raise CostModelError(f"token {wrong[0]} is outside the vocabulary; ids are 0 to {vocab - 1}")
    return ids
