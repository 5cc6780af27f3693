"""The key/value cache: what attention has to remember of earlier tokens."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.shape import DecoderShape

FIRST_CHUNK = 64  # tokens


class Cache(Protocol):
    """What a decoder asks of a cache, contiguous or paged."""

    @property
    def shape(self) -> DecoderShape:
        """Of the decoder that it serves."""

    @property
    def length(self) -> int:
        """Tokens."""

    def reserve(self, tokens: int) -> None:
        """Make room for more tokens."""

    def write(self, layer: int, keys: np.ndarray, values: np.ndarray) -> None:
        """Store one layer's keys and values (tokens, K, H) after those already there."""

    def read(self, layer: int, length: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """One layer's keys and values of the first `length` tokens (K, tokens, H), piece by piece."""

    def advance(self, tokens: int) -> None:
        """Keep what the pass wrote."""

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens."""

    def fork(self) -> "Cache":
        """A second continuation of the same tokens."""

    def free(self) -> None:
        """Give the memory back."""


class KVCache:
    """Keys and values of one sequence, in chunks allocated ahead; the capacity doubles and nothing is ever moved.

    A pass reserves room, writes every layer, and only then advances `length`: an interrupted pass leaves no trace.

    Parameters
    ----------
    shape : K, H, L and max_len
    capacity : tokens to allocate at first

    Examples
    --------
    >>> shape = DecoderShape(vocab=16, d_model=16, n_layers=2, max_len=64, n_heads=2, n_kv_heads=2, head_dim=8, d_ff=64)
    >>> cache = KVCache(shape, capacity=8)
    >>> cache.reserve(9)
    >>> cache.length, cache.capacity, cache.nbytes
    (0, 16, 8192)
    """

    def __init__(self, shape: DecoderShape, capacity: int = FIRST_CHUNK) -> None:
        self.shape = shape
        self.length = 0
        self.capacity = 0
        self._chunks: list[tuple[int, np.ndarray, np.ndarray]] = []  # first position, keys and values (L, K, tokens, H)
        self._grow(max(1, min(capacity, shape.max_len)))

    def _grow(self, tokens: int) -> None:
        s = self.shape
        room = (s.n_layers, s.n_kv_heads, tokens, s.head_dim)
        self._chunks.append((self.capacity, np.empty(room, s.dtype), np.empty(room, s.dtype)))
        self.capacity += tokens

    def reserve(self, tokens: int) -> None:
        """Make room for more tokens: at least as many again as there are, at most max_len in all.

        Raises
        ------
        CostModelError
            when the sequence would be longer than max_len
        """
        needed = self.length + tokens
        if needed > self.shape.max_len:
            raise CostModelError(f"sequence of {needed} tokens is longer than max_len, {self.shape.max_len}")
        if needed > self.capacity:
            self._grow(max(needed - self.capacity, min(self.capacity, self.shape.max_len - self.capacity)))

    def write(self, layer: int, keys: np.ndarray, values: np.ndarray) -> None:
        """Store one layer's keys and values (tokens, K, H) after those already there, in reserved room."""
        end = self.length + len(keys)
        for first, chunk_keys, chunk_values in self._chunks:
            start, stop = max(first, self.length), min(first + chunk_keys.shape[2], end)
            if start < stop:
                here, there = slice(start - first, stop - first), slice(start - self.length, stop - self.length)
                chunk_keys[layer, :, here] = keys[there].swapaxes(0, 1)
                chunk_values[layer, :, here] = values[there].swapaxes(0, 1)

    def read(self, layer: int, length: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """One layer's keys and values of the first `length` tokens, as views (K, tokens, H), chunk by chunk."""
        for first, keys, values in self._chunks:
            if first < length:
                yield keys[layer, :, : length - first], values[layer, :, : length - first]

    def advance(self, tokens: int) -> None:
        """Keep what the pass wrote."""
        self.length += tokens

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens; the memory stays.

        Raises
        ------
        CostModelError
            when it holds fewer
        """
        if not 0 <= length <= self.length:
            raise CostModelError(f"length must be 0 to the {self.length} tokens in the cache, got {length}")
        self.length = length

    def fork(self) -> "KVCache":
        """An independent copy, for a second continuation of the same tokens."""
        copy = KVCache(self.shape, self.capacity)
        [(_, all_keys, all_values)] = copy._chunks
        for first, keys, values in self._chunks:
            here = slice(first, min(first + keys.shape[2], self.length))
            if first < self.length:
                all_keys[:, :, here] = keys[:, :, : self.length - first]
                all_values[:, :, here] = values[:, :, : self.length - first]
        copy.length = self.length
        return copy

    def free(self) -> None:
        """Give the memory back; the cache must not be used again."""
        self._chunks.clear()

    @property
    def nbytes(self) -> int:
        """2·L·K·H·b for every token there is room for [byte]."""
        return sum(keys.nbytes + values.nbytes for _, keys, values in self._chunks)
