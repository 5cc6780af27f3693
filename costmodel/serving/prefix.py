"""Blocks of past prompts kept for reuse: the one used longest ago makes room."""

from collections import OrderedDict
from collections.abc import Sequence


class PrefixStore:
    """A bounded store of block ids, least recently used out first.

    Parameters
    ----------
    capacity : blocks; None for no bound

    Examples
    --------
    >>> store = PrefixStore(2)
    >>> store.reuse([1, 2]), store.reuse([1, 3]), store.reuse([2])
    (0, 1, 0)
    """

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity
        self.kept: OrderedDict[int, None] = OrderedDict()
        self.hits = self.asked = 0

    def reuse(self, ids: Sequence[int]) -> int:
        """Leading blocks of a prompt that are kept; all of its blocks are kept from now on."""
        kept, hits = self.kept, 0
        for name in ids:
            if name not in kept:
                break
            hits += 1
        for name in reversed(ids):  # the first block of a prefix is the last to be forgotten
            kept[name] = None
            kept.move_to_end(name)
        if self.capacity is not None:
            while len(kept) > self.capacity:
                kept.popitem(last=False)
        self.hits, self.asked = self.hits + hits, self.asked + len(ids)
        return hits
