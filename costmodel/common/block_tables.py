"""Sequences of tokens in blocks: tables that grow, share prefixes, copy before writing and swap. Integers only.

Kwon et al., PagedAttention (2309.06180), section 4. What the blocks hold lies elsewhere, if anywhere.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from costmodel.common.blocks import BlockPool, blocks_of
from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError


@dataclass
class _Sequence:
    length: int = 0  # tokens
    blocks: list[int] = field(default_factory=list)  # cover the length, and what is reserved beyond


class BlockTables:
    """Sequences of tokens in blocks of a pool: they grow block by block, share prefixes, and copy before writing.

    A call that needs more blocks than are free raises OutOfBlocksError and changes nothing.

    Parameters
    ----------
    pool : where blocks come from
    block_tokens : tokens that one block holds

    Examples
    --------
    >>> tables = BlockTables(BlockPool(8), block_tokens=4)
    >>> tables.allocate("a", 6)
    >>> tables.fork("a", "b")
    >>> tables.append("b", 1)  # block 1 is shared: b writes into a copy of it, block 2
    [(1, 2)]
    >>> tables.table("a"), tables.table("b"), tables.pool.used
    ((0, 1), (0, 2), 3)
    """

    def __init__(self, pool: BlockPool, block_tokens: int) -> None:
        self.pool = pool
        self.block_tokens = whole("block_tokens", block_tokens, 1)
        self._sequences: dict[Hashable, _Sequence] = {}

    def __contains__(self, sequence: Hashable) -> bool:
        return sequence in self._sequences

    def __len__(self) -> int:
        return len(self._sequences)

    def length(self, sequence: Hashable) -> int:
        """Its tokens."""
        return self._of(sequence).length

    def table(self, sequence: Hashable) -> tuple[int, ...]:
        """The blocks that hold its tokens, in order, and any that are reserved for more."""
        return tuple(self._of(sequence).blocks)

    @property
    def tokens(self) -> int:
        """Σ lengths: a shared token counts once for each sequence that has it."""
        return sum(s.length for s in self._sequences.values())

    def allocate(self, sequence: Hashable, tokens: int = 0) -> None:
        """Begin a sequence of so many tokens.

        Raises
        ------
        CostModelError
            when there is one of that name
        """
        self._new(sequence)
        self.pool.require(blocks_of(whole("tokens", tokens, 0), self.block_tokens))
        self._sequences[sequence] = _Sequence()
        self.append(sequence, tokens)

    def needed(self, sequence: Hashable, tokens: int) -> int:
        """Free blocks that `reserve` or `append` of so many tokens would take, a copy before writing included."""
        s = self._of(sequence)
        end = blocks_of(s.length + whole("tokens", tokens, 0), self.block_tokens)
        return max(0, end - len(s.blocks)) + (tokens > 0 and self._shared_tail(s))

    def reserve(self, sequence: Hashable, tokens: int) -> list[tuple[int, int]]:
        """Room for more tokens, in blocks that no other sequence uses; the length stays.

        Returns
        -------
        (from, to) blocks whose contents must be copied before anything is written; at most one pair
        """
        self.pool.require(self.needed(sequence, tokens))
        s = self._of(sequence)
        copies = []
        if tokens > 0 and self._shared_tail(s):
            last = s.length // self.block_tokens
            copies.append((s.blocks[last], self.pool.take()))
            self.pool.release(s.blocks[last])
            s.blocks[last] = copies[0][1]
        while len(s.blocks) * self.block_tokens < s.length + tokens:
            s.blocks.append(self.pool.take())
        return copies

    def advance(self, sequence: Hashable, tokens: int) -> None:
        """Tokens were written into reserved room."""
        s = self._of(sequence)
        room = 0 if self._shared_tail(s) else len(s.blocks) * self.block_tokens - s.length
        if whole("tokens", tokens, 0) > room:
            raise CostModelError(f"{tokens} tokens were not reserved; there is room for {room}")
        s.length += tokens

    def append(self, sequence: Hashable, tokens: int = 1) -> list[tuple[int, int]]:
        """`reserve` and `advance` in one."""
        copies = self.reserve(sequence, tokens)
        self._sequences[sequence].length += tokens
        return copies

    def fork(self, parent: Hashable, child: Hashable, tokens: int | None = None) -> None:
        """A second sequence that begins with the parent's first `tokens` (all by default), in the same blocks."""
        s = self._of(parent)
        tokens = s.length if tokens is None else whole("tokens", tokens, 0)
        self._new(child)
        if tokens > s.length:
            raise CostModelError(f"tokens must be 0 to the {s.length} of {parent!r}, got {tokens}")
        shared = s.blocks[: blocks_of(tokens, self.block_tokens)]
        for block in shared:
            self.pool.share(block)
        self._sequences[child] = _Sequence(tokens, shared)

    def truncate(self, sequence: Hashable, length: int) -> None:
        """Keep the first `length` tokens and return the blocks that this empties."""
        s = self._of(sequence)
        if whole("length", length, 0) > s.length:
            raise CostModelError(f"length must be 0 to the {s.length} of {sequence!r}, got {length}")
        kept = blocks_of(length, self.block_tokens)
        while len(s.blocks) > kept:
            self.pool.release(s.blocks.pop())
        s.length = length

    def free(self, sequence: Hashable) -> None:
        """End a sequence; blocks that nobody else uses are free again."""
        self.truncate(sequence, 0)
        del self._sequences[sequence]

    def swap(self, sequences: Iterable[Hashable], to: "BlockTables") -> list[tuple[int, int]]:
        """Move sequences to the blocks of another memory; what they share with each other stays shared.

        What they share with sequences that stay behind is copied, and stays behind too.

        Returns
        -------
        (from, to) blocks whose contents must be copied
        """
        group = {sequence: self._of(sequence) for sequence in sequences}
        if to.block_tokens != self.block_tokens:
            raise CostModelError(f"blocks of {self.block_tokens} tokens do not fit blocks of {to.block_tokens}")
        for sequence in group:
            to._new(sequence)
        written = {sequence: s.blocks[: blocks_of(s.length, self.block_tokens)] for sequence, s in group.items()}
        moved: dict[int, int] = {}
        to.pool.require(len({block for blocks in written.values() for block in blocks}))
        for sequence, s in group.items():
            for block in written[sequence]:
                if block not in moved:
                    moved[block] = to.pool.take()
                else:
                    to.pool.share(moved[block])
            to._sequences[sequence] = _Sequence(s.length, [moved[block] for block in written[sequence]])
            self.free(sequence)
        return list(moved.items())

    def _shared_tail(self, s: _Sequence) -> bool:
        """Whether the next token goes into a block, partly full, that another sequence uses too."""
        last, offset = divmod(s.length, self.block_tokens)
        return offset > 0 and self.pool.references(s.blocks[last]) > 1

    def _of(self, sequence: Hashable) -> _Sequence:
        if sequence not in self._sequences:
            raise CostModelError(f"no sequence {sequence!r} holds blocks")
        return self._sequences[sequence]

    def _new(self, sequence: Hashable) -> None:
        if sequence in self._sequences:
            raise CostModelError(f"sequence {sequence!r} holds blocks already")
