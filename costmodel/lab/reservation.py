"""Two ways to give requests room for their keys and values: one piece each, reserved ahead, or blocks as needed."""

from dataclasses import dataclass
from typing import Protocol

from costmodel.common.block_tables import BlockTables
from costmodel.common.blocks import BlockPool, blocks_of


@dataclass(frozen=True)
class Request:
    """Tokens of a prompt, and of the answer that it will get.

    Attributes
    ----------
    prompt, output : how many of each [token]

    Examples
    --------
    >>> Request(prompt=10, output=30).total
    40
    """

    prompt: int
    output: int

    @property
    def total(self) -> int:
        """prompt + output."""
        return self.prompt + self.output


class Memory(Protocol):
    """What a policy has to answer."""

    def admit(self, name: int, request: Request) -> bool:
        """Whether there is room to begin, which is then taken."""

    def grow(self, name: int) -> bool:
        """Whether there is room for one more token, which is then taken."""

    def free(self, name: int) -> None:
        """Return what a request had."""

    def given(self, name: int) -> int:
        """Tokens that the request has room for."""


class BuddyMemory:
    """One piece per request, a power of two of tokens, found by splitting larger pieces in halves.

    Parameters
    ----------
    capacity : in all; the pieces to begin with are the powers of two that sum to it [token]
    policy : how much to ask for: "max" (max_len), "pow2" (the prompt and the least power of two for the output, less
        than twice what that needs), "oracle" (the length it will have, foreseen)
    max_len : the most that a request may have [token]

    Examples
    --------
    >>> memory = BuddyMemory(64, "oracle", max_len=64)
    >>> memory.admit(0, Request(5, 4)), memory.given(0)  # 9 tokens, in a piece of 16
    (True, 16)

    References
    ----------
    Knuth, The Art of Computer Programming, volume 1 (1997), section 2.5 (the buddy system).
    """

    def __init__(self, capacity: int, policy: str, max_len: int) -> None:
        self.policy, self.max_len = policy, max_len
        self.pieces: dict[int, set[int]] = {1 << bit: set() for bit in range(capacity.bit_length())}
        start = 0
        for size in sorted(self.pieces, reverse=True):
            if capacity & size:
                self.pieces[size].add(start)
                start += size
        self.held: dict[int, tuple[int, int]] = {}  # name -> start, size

    def asked(self, request: Request) -> int:
        """Tokens that the policy reserves for a request."""
        if self.policy == "max":
            return self.max_len
        output = 1 << (request.output - 1).bit_length() if self.policy == "pow2" else request.output
        return min(request.prompt + output, self.max_len)

    def admit(self, name: int, request: Request) -> bool:
        """Take the smallest free piece that is large enough, halved as long as the half is."""
        wanted = 1 << (self.asked(request) - 1).bit_length()
        size = next((s for s in sorted(self.pieces) if s >= wanted and self.pieces[s]), None)
        if size is None:
            return False
        start = min(self.pieces[size])
        self.pieces[size].remove(start)
        while size > wanted:
            size //= 2
            self.pieces[size].add(start + size)
        self.held[name] = start, size
        return True

    def grow(self, name: int) -> bool:
        """Always: its room was reserved."""
        return name in self.held

    def free(self, name: int) -> None:
        """Return a piece, joined with its other half for as long as that is free too."""
        start, size = self.held.pop(name)
        while size < max(self.pieces) and start ^ size in self.pieces[size]:
            self.pieces[size].remove(start ^ size)
            start, size = min(start, start ^ size), 2 * size
        self.pieces[size].add(start)

    def given(self, name: int) -> int:
        """The size of its piece."""
        return self.held[name][1]


class BlockMemory:
    """Blocks as they are needed, wherever they lie.

    Parameters
    ----------
    capacity : in all; what does not fill a block is left out [token]
    block_tokens : of a block [token]

    Examples
    --------
    >>> memory = BlockMemory(64, block_tokens=4)
    >>> memory.admit(0, Request(5, 4)), memory.given(0)  # 5 tokens so far, in two blocks
    (True, 8)

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180, section 4.
    """

    def __init__(self, capacity: int, block_tokens: int) -> None:
        self.tables = BlockTables(BlockPool(capacity // block_tokens), block_tokens)

    def admit(self, name: int, request: Request) -> bool:
        """Blocks for the prompt."""
        if blocks_of(request.prompt, self.tables.block_tokens) > self.tables.pool.free:
            return False
        self.tables.allocate(name, request.prompt)
        return True

    def grow(self, name: int) -> bool:
        """One more token, in a new block when the last is full."""
        if self.tables.needed(name, 1) > self.tables.pool.free:
            return False
        self.tables.append(name)
        return True

    def free(self, name: int) -> None:
        """Return its blocks."""
        self.tables.free(name)

    def given(self, name: int) -> int:
        """Its blocks times what one holds."""
        return len(self.tables.table(name)) * self.tables.block_tokens
