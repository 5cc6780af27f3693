"""Keys and values of many sequences in blocks of one memory; a sequence finds its own through a block table.

Kwon et al., PagedAttention (2309.06180). `fragmentation` measures what contiguous room wastes instead.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

import numpy as np

from costmodel.common.block_tables import BlockTables
from costmodel.common.blocks import BlockPool, blocks_of
from costmodel.common.errors import CostModelError
from costmodel.lab.shape import DecoderShape

NAMES = count()  # of sequences, in whichever memory they lie


class PagedMemory:
    """Room for the keys and values of `blocks` blocks, in every layer, and the tables of who uses them.

    Parameters
    ----------
    shape : K, H, L and max_len of the decoder that it serves
    blocks : how many, at least 0
    block_tokens : of each, at least 1 [token]

    Raises
    ------
    CostModelError
        for sizes that are not such integers

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> memory = PagedMemory(tiny.shape, blocks=8, block_tokens=4)
    >>> first = memory.new_cache()
    >>> logits = tiny.forward_full([1, 2, 3, 4, 5], first)
    >>> second = first.fork()
    >>> first.table, second.table, memory.used
    ((0, 1), (0, 1), 2)
    >>> logits = tiny.forward_step(6, 5, second)  # block 1 is shared: second writes into a copy
    >>> first.table, second.table, memory.used
    ((0, 1), (0, 2), 3)

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180, section 4.
    """

    def __init__(self, shape: DecoderShape, blocks: int, block_tokens: int = 16) -> None:
        self.shape = shape
        self.tables = BlockTables(BlockPool(blocks), block_tokens)
        room = (2, shape.n_layers, blocks, shape.n_kv_heads, block_tokens, shape.head_dim)
        self.data: np.ndarray = np.empty(room, shape.dtype)  # keys, then values

    @property
    def used(self) -> int:
        """Blocks that some sequence uses."""
        return self.tables.pool.used

    @property
    def nbytes(self) -> int:
        """2·L·K·H·b for every token there is room for [byte]."""
        return self.data.nbytes

    def new_cache(self) -> "PagedKVCache":
        """An empty sequence; it takes blocks as it grows."""
        name = next(NAMES)
        self.tables.allocate(name)
        return PagedKVCache(self, name)

    def copy(self, copies: Iterable[tuple[int, int]], to: "PagedMemory") -> None:
        """Copy blocks, all layers, into blocks of this or another memory."""
        for source, target in copies:
            to.data[:, :, target] = self.data[:, :, source]

    def swap(self, caches: Sequence["PagedKVCache"], to: "PagedMemory") -> None:
        """Move sequences to another memory and back later; what they share with each other is moved once.

        Raises
        ------
        CostModelError
            before anything moves: too few free blocks there, or a cache that is not in this memory
        """
        for cache in caches:
            if cache.memory is not self:
                raise CostModelError("a cache to be swapped lies in another memory already")
        self.copy(self.tables.swap([cache.name for cache in caches], to.tables), to)
        for cache in caches:
            cache.memory = to


class PagedKVCache:
    """One sequence of a PagedMemory, with the interface of `KVCache`: a decoder cannot tell them apart."""

    def __init__(self, memory: PagedMemory, name: int) -> None:
        self.memory = memory
        self.name = name

    @property
    def shape(self) -> DecoderShape:
        """Of the decoder that it serves."""
        return self.memory.shape

    @property
    def length(self) -> int:
        """Tokens."""
        return self.memory.tables.length(self.name)

    @property
    def table(self) -> tuple[int, ...]:
        """The blocks of its tokens, in order."""
        return self.memory.tables.table(self.name)

    def reserve(self, tokens: int) -> None:
        """Take the blocks that so many more tokens need; a shared block that they would be written into is copied.

        Raises
        ------
        CostModelError
            when the sequence would be longer than max_len, or too few blocks are free
        """
        if self.length + tokens > self.shape.max_len:
            raise CostModelError(
                f"sequence of {self.length + tokens} tokens is longer than max_len, {self.shape.max_len}"
            )
        self.memory.copy(self.memory.tables.reserve(self.name, tokens), self.memory)

    def write(self, layer: int, keys: np.ndarray, values: np.ndarray) -> None:
        """Store one layer's keys and values (tokens, K, H) after those already there, in reserved room."""
        blocks, offsets = np.divmod(self.length + np.arange(len(keys)), self.memory.tables.block_tokens)
        blocks = np.array(self.table)[blocks]
        self.memory.data[0, layer, blocks, :, offsets] = keys
        self.memory.data[1, layer, blocks, :, offsets] = values

    def read(self, layer: int, length: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """One layer's keys and values of the first `length` tokens, gathered through the block table: (K, tokens, H).

        One piece, so that sums run in the same order as over a contiguous cache.
        """
        table = np.array(self.table[: blocks_of(length, self.memory.tables.block_tokens)])
        K, H = self.shape.n_kv_heads, self.shape.head_dim
        keys, values = self.memory.data[:, layer, table].swapaxes(1, 2).reshape(2, K, -1, H)
        yield keys[:, :length], values[:, :length]

    def advance(self, tokens: int) -> None:
        """Keep what the pass wrote."""
        self.memory.tables.advance(self.name, tokens)

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens, and return the blocks that this empties."""
        self.memory.tables.truncate(self.name, length)

    def fork(self, tokens: int | None = None) -> "PagedKVCache":
        """A second continuation of the first `tokens` (all by default): nothing is copied until one of them writes."""
        name = next(NAMES)
        self.memory.tables.fork(self.name, name, tokens)
        return PagedKVCache(self.memory, name)

    def free(self) -> None:
        """Return the blocks; the cache must not be used again."""
        self.memory.tables.free(self.name)
