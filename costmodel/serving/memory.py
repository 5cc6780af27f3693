"""Cache memory of one replica, given out in whole blocks and counted in whole bytes."""

from collections.abc import Iterable

from costmodel.common.errors import CostModelError
from costmodel.serving.costs import PassCosts
from costmodel.serving.decoding import Decoding, Sequence
from costmodel.serving.policy import Policy


def cache_budget(costs: PassCosts) -> int:
    """Bytes left for caches: capacity·(1 − reserve) − weights, rounded down.

    Raises
    ------
    CostModelError
        when the weights alone do not fit
    """
    d = costs.deployment
    left = int(d.usable_bytes - d.weight_bytes)
    if left < 0:
        raise CostModelError(
            f"{d.model.name} does not fit on {d.accelerator.name}: its weights take {d.weight_bytes:,} of "
            f"{int(d.usable_bytes):,} byte; more devices or fewer bits are needed"
        )
    return left


class Memory:
    """Who holds how much, and who may come in.

    Without preemption a sequence's whole answer is set aside when it begins, so nothing grows. With it a sequence holds
    the blocks of the tokens it has, and the next step must fit: one more token for everyone.
    """

    def __init__(self, costs: PassCosts, policy: Policy) -> None:
        self.costs, self.policy = costs, policy
        self.budget = cache_budget(costs)
        self.grows = policy.preemption is not None
        self.used = 0  # set aside
        self.peak = 0
        self._bytes: dict[int, int] = {}
        self._batch: list[Sequence] = []  # of static batching

    def bytes(self, tokens: int) -> int:
        """Of one sequence: its tokens' blocks [byte]."""
        blocks = -(-tokens // self.policy.block)
        if blocks not in self._bytes:
            self._bytes[blocks] = self.costs.cache_bytes(blocks * self.policy.block)
        return self._bytes[blocks]

    def never(self, who: Sequence) -> str:
        """Why a request can never be served; empty if it can."""
        who.reserved = self.bytes(who.prompt + who.output - 1)
        return "" if who.reserved <= self.budget else self.refusal(who.prompt + who.output - 1)

    def refusal(self, tokens: int) -> str:
        """What is wrong with a cache of so many tokens; empty if it fits."""
        needs = self.bytes(tokens)
        if needs <= self.budget:
            return ""
        return f"its cache of {tokens:,} tokens takes {needs:,} byte; there are {self.budget:,}"

    def _next(self, decoding: Decoding, filling: Iterable[Sequence], ahead: int = 1) -> int:
        """Bytes when every decoding sequence has `ahead` more tokens, and every other is about to decode."""
        step, size = decoding.step + ahead, self.bytes
        growing = sum([size(who.offset + step) for who in decoding.members.values()])
        return growing + sum([size(who.soon) for who in filling])

    def admits(self, who: Sequence, decoding: Decoding, filling: Iterable[Sequence]) -> bool:
        """Whether it may begin beside these."""
        if self.grows:
            return self._next(decoding, filling) + self.bytes(who.soon) <= self.budget
        if self.policy.kind == "static":
            return self._together([*self._batch, who]) <= self.budget
        return self.used + who.reserved <= self.budget

    def _together(self, batch: list[Sequence]) -> int:
        """A static batch keeps every row until its longest answer is done."""
        longest = max(who.output for who in batch)
        return sum(self.bytes(who.prompt + longest - 1) for who in batch)

    def take(self, who: Sequence) -> None:
        """Set its memory aside, where that is done beforehand."""
        if self.grows:
            return
        if self.policy.kind == "static":
            self._batch.append(who)
            self.used = self._together(self._batch)
        else:
            self.used += who.reserved
        if self.used > self.peak:
            self.peak = self.used

    def give(self, who: Sequence) -> None:
        """Its memory is free again; a static batch's all at once."""
        if self.policy.kind == "static":
            self._batch.clear()
            self.used = 0
        elif not self.grows:
            self.used -= who.reserved

    def fits(self, decoding: Decoding, filling: Iterable[Sequence]) -> bool:
        """Whether the next step has room."""
        return not self.grows or self._next(decoding, filling) <= self.budget

    def lasts(self, decoding: Decoding, filling: Iterable[Sequence], steps: int) -> int:
        """How many of the next `steps` have room, given that the first does."""
        if not self.grows or self._next(decoding, filling, steps) <= self.budget:
            return steps
        low, high = 1, steps
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._next(decoding, filling, middle) <= self.budget else (low, middle)
        return low

    def note(self, decoding: Decoding, filling: Iterable[Sequence], steps: int) -> None:
        """Remember the most that was ever given out."""
        if self.grows:
            self.peak = max(self.peak, self._next(decoding, filling, steps))
