"""Work that equal beginnings save: keys and values of a prompt's first blocks, kept for the next request.

A block is known by a hash chained over all before it, as in vLLM; a hit is confirmed on the content.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.lab.prompt_bill import prompt_cache_cost

__all__ = ["PrefixCache", "hit_ratio", "prompt_cache_cost", "reusable_prefix_tokens"]


def reusable_prefix_tokens(previous: Sequence[int], new: Sequence[int], block_tokens: int = 1) -> int:
    """Tokens that the two begin with, in whole blocks: ⌊P/b⌋·b of P equal ones.

    Valid up to the first difference: a later token's keys and values depend on every token before it.

    Parameters
    ----------
    previous, new : ids of the prompt that is kept and of the one that comes, of any lengths
    block_tokens : b [token], at least 1; 1 counts every equal token

    Returns
    -------
    ⌊P/b⌋·b [token]

    Raises
    ------
    CostModelError
        for b that is not a positive integer

    Examples
    --------
    >>> reusable_prefix_tokens([5, 6, 7, 8], [5, 6, 9, 8])
    2
    >>> reusable_prefix_tokens(range(4200), range(5000), block_tokens=2096)  # 2 blocks; 8 more tokens fill none
    4192

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180, section 4.4 (shared prefix).
    """
    whole("block_tokens", block_tokens, 1)
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(previous, new, strict=False)))
    return equal // block_tokens * block_tokens


def sha256_digest(data: bytes) -> bytes:
    """32 bytes that no two known inputs share."""
    return sha256(data).digest()


@dataclass(frozen=True, eq=False)
class _Block:
    content: bytes
    parent: "_Block | None"


class PrefixCache:
    """Blocks of earlier prompts, the least recently used forgotten first.

    A block counts as older than those before it in its prompt, so that a chain is forgotten from its end.

    Parameters
    ----------
    block_tokens : of a block, at least 1; only whole blocks are kept [token]
    capacity : the most blocks, at least 0; None for no end
    digest : bytes -> bytes; a weak one costs hits, never a wrong one

    Attributes
    ----------
    hits, blocks : whole blocks found, and asked for, so far

    Raises
    ------
    CostModelError
        for sizes that are not integers, block_tokens below 1 or a negative capacity

    Examples
    --------
    >>> cache = PrefixCache(block_tokens=4)
    >>> cache.serve(range(10)), cache.serve(range(9)), cache.serve([9, 1, 2, 3])
    (0, 8, 0)
    >>> cache.hits, cache.blocks, len(cache)  # the same two blocks twice, and one of another prompt
    (2, 5, 3)

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180, section 4.4 (shared prefix).
    A tree in place of hashes: Zheng et al., SGLang, 2312.07104 (RadixAttention).
    """

    def __init__(
        self, block_tokens: int, capacity: int | None = None, digest: Callable[[bytes], bytes] = sha256_digest
    ) -> None:
        self.block_tokens = whole("block_tokens", block_tokens, 1)
        self.capacity = None if capacity is None else whole("capacity", capacity, 0)
        self.digest = digest
        self.hits = 0
        self.blocks = 0
        self._kept: OrderedDict[bytes, _Block] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def hit_ratio(self) -> float:
        """hits/blocks, 0 before the first."""
        return self.hits / self.blocks if self.blocks else 0.0

    def serve(self, tokens: Sequence[int]) -> int:
        """Tokens of the prompt that need no work, a whole number of blocks; all its whole blocks are then kept."""
        ids = np.asarray(tokens, np.int64)
        ends = range(self.block_tokens, len(ids) + 1, self.block_tokens)
        return self.block_tokens * self.serve_blocks(ids[end - self.block_tokens : end].tobytes() for end in ends)

    def serve_blocks(self, contents: Iterable[bytes]) -> int:
        """The same for blocks of any content, in order: how many of the first are there."""
        chain = list(self._chain(contents))
        hits, parent = 0, None
        for hits, (key, content) in enumerate(chain):  # noqa: B007
            block = self._kept.get(key)
            if block is None or block.content != content or block.parent is not parent:
                break
            parent = block
        else:
            hits = len(chain)
        for key, content in chain[hits:]:
            parent = self._kept[key] = _Block(content, parent)
        for key, _ in reversed(chain):
            self._kept.move_to_end(key)
        while self.capacity is not None and len(self._kept) > self.capacity:
            self._kept.popitem(last=False)
        self.hits, self.blocks = self.hits + hits, self.blocks + len(chain)
        return hits

    def _chain(self, contents: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Each block's key, the digest of its parent's key and its content."""
        key = b""
        for content in contents:
            key = self.digest(key + content)
            yield key, content


def hit_ratio(trace: Iterable[Sequence[int]], capacity: int | None = None) -> float:
    """hits/blocks: share of a trace's blocks that an LRU cache of `capacity` blocks holds when they are asked for.

    Parameters
    ----------
    trace : for each request the ids of its blocks, in order, at least 0; equal ids are equal blocks, and a block is
        found again only behind the blocks that it was behind before
    capacity : the most blocks, at least 0; None for no end

    Returns
    -------
    share, 0 to 1; 0 for an empty trace

    Raises
    ------
    CostModelError
        for an id that is not an integer of at least 0, naming the request, or a capacity that is not

    Examples
    --------
    >>> hit_ratio([[0, 1, 2], [0, 1, 3], [4, 1]])  # 2 of 8: block 1 behind block 4 is another
    0.25
    """
    cache = PrefixCache(1, capacity)
    for number, request in enumerate(trace):
        for block in request:
            if isinstance(block, bool) or not isinstance(block, int) or block < 0:
                raise CostModelError(f"request {number}: block ids must be integers of at least 0, got {block!r}")
        cache.serve(request)
    return cache.hit_ratio
