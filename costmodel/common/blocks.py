"""Memory in equal blocks: how often each is used, and which are free. Integers only; `block_tables` says who uses them.

Kwon et al., PagedAttention (2309.06180), section 4.
"""

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError


class OutOfBlocksError(CostModelError):
    """Fewer blocks are free than were asked for; nothing has changed."""


def blocks_of(tokens: int, block_tokens: int) -> int:
    """⌈tokens/block_tokens⌉: blocks that so many tokens take.

    Parameters
    ----------
    tokens : of one sequence [token]
    block_tokens : that one block holds [token]

    Returns
    -------
    whole blocks [block]

    Examples
    --------
    >>> blocks_of(1000, 16), blocks_of(0, 16)
    (63, 0)
    """
    return -(-tokens // block_tokens)


class BlockPool:
    """So many blocks, numbered from 0, each free or held by a count of references.

    Attributes
    ----------
    size : how many there are
    peak : the most that were ever used at once

    Examples
    --------
    >>> pool = BlockPool(2)
    >>> block = pool.take()
    >>> pool.share(block)
    >>> pool.release(block)
    >>> block, pool.references(block), pool.free
    (0, 1, 1)
    """

    def __init__(self, size: int) -> None:
        self.size = whole("blocks", size, 0)
        self.peak = 0
        self._references: dict[int, int] = {}  # of blocks in use
        self._returned: list[int] = []
        self._fresh = 0  # the first block never yet taken

    @property
    def used(self) -> int:
        """Blocks with at least one reference."""
        return len(self._references)

    @property
    def free(self) -> int:
        """Blocks with none."""
        return self.size - self.used

    def references(self, block: int) -> int:
        """How many hold it; 0 when free."""
        return self._references.get(block, 0)

    def require(self, blocks: int) -> None:
        """Raise OutOfBlocksError unless so many are free."""
        if blocks > self.free:
            raise OutOfBlocksError(f"{blocks} block{'s' * (blocks != 1)} needed, {self.free} of {self.size} are free")

    def take(self) -> int:
        """A free block, now with one reference: the last returned, else the lowest never used."""
        self.require(1)
        if self._returned:
            block = self._returned.pop()
        else:
            block, self._fresh = self._fresh, self._fresh + 1
        self._references[block] = 1
        self.peak = max(self.peak, self.used)
        return block

    def share(self, block: int) -> None:
        """One more reference."""
        self._references[block] = self._held(block) + 1

    def release(self, block: int) -> None:
        """One reference fewer; without any the block is free."""
        left = self._held(block) - 1
        if left:
            self._references[block] = left
        else:
            del self._references[block]
            self._returned.append(block)

    def _held(self, block: int) -> int:
        if block not in self._references:
            raise CostModelError(f"block {block!r} is free: it cannot be shared or released")
        return self._references[block]
