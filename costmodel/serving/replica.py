"""One replica, event by event: between two events it repeats the same kind of step, and takes them all at once."""

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from costmodel.serving.costs import PassCosts
from costmodel.serving.decoding import Decoding, Sequence
from costmodel.serving.interval import steps_until, stretch
from costmodel.serving.log import Log
from costmodel.serving.memory import Memory
from costmodel.serving.policy import Policy
from costmodel.serving.prefix import PrefixStore


class Replica:
    """Serves requests under a policy: static, continuous or chunked, or one half of disaggregated serving.

    Parameters
    ----------
    costs, policy : what a pass costs; what the next pass holds
    arrivals : sequences in order of arrival (their key's second entry), numbered 0 … count − 1
    count : how many there are
    blocks : request -> the ids of its prompt's blocks, and the tokens of a block, where known
    prioritised : whether some go before others who arrived earlier
    watch : called whenever an answer is complete
    """

    def __init__(
        self,
        costs: PassCosts,
        policy: Policy,
        arrivals: Iterable[Sequence],
        count: int,
        *,
        blocks: tuple[Callable[[int], list[int]], int] | None = None,
        prioritised: bool = False,
        watch: Callable[[], None] | None = None,
    ) -> None:
        self.costs, self.policy, self.prioritised, self.watch = costs, policy, prioritised, watch
        self.coming = iter(arrivals)
        self.next = next(self.coming, None)
        self.queue: list[tuple[tuple[int, int, int], Sequence]] = []
        self.decoding = Decoding(costs)
        self.filling: deque[Sequence] = deque()
        self.memory = Memory(costs, policy)
        self.static, self.chunked = policy.kind == "static", policy.kind == "chunked"
        self.store = None if blocks is None or policy.prefix_blocks == 0 else PrefixStore(policy.prefix_blocks)
        self.blocks = blocks
        self.clock = 0
        self.log = Log([None] * count, [None] * count)

    def run(self) -> Log:
        """Serve everything."""
        while True:
            if self.next is not None and self.next.key[1] <= self.clock:
                self._arrive()
            if self.queue:
                self._admit()
            if self.filling and (not self.chunked or len(self.decoding) < self.policy.chunk):
                self._prefill()
            elif self.decoding.members:
                self._decode()
            elif self.next is not None:
                self.clock = self.next.key[1]
                continue
            else:
                break
            self.log.events += 1
        if self.store is not None:
            self.log.hits, self.log.asked = self.store.hits, self.store.asked
        self.log.peak = self.memory.peak
        return self.log

    # Arrival and admission

    def _arrive(self) -> None:
        while self.next is not None and self.next.key[1] <= self.clock:
            who, self.next = self.next, next(self.coming, None)
            problem = self.memory.never(who)
            if problem:
                self.log.rejected[who.index] = problem
            else:
                heappush(self.queue, (who.key, who))

    def _admit(self) -> None:
        """Let in whoever is first in line while there is room: slots, memory, and tokens of one prefill pass."""
        policy, queue = self.policy, self.queue
        if self.static and self.decoding.members:
            return
        asked = 0
        members, filling, memory = self.decoding.members, self.filling, self.memory
        while queue and len(members) + len(filling) < policy.slots:
            who = queue[0][1]
            new = 0 if who.away else who.prompt + who.made
            if policy.kind == "continuous" and asked and asked + new > policy.prefill_tokens:
                return
            if not memory.admits(who, self.decoding, filling):
                return
            heappop(queue)
            memory.take(who)
            if who.away:
                self.clock += who.due
                who.away, who.due = False, 0
                self.decoding.join(who)
            else:
                asked += new
                if self.store is not None:
                    who.filled = self._reused(who)
                filling.append(who)

    def _reused(self, who: Sequence) -> int:
        """Tokens of its prompt whose cache is kept from earlier ones; one is always computed."""
        if who.made or self.store is None or self.blocks is None:
            return 0
        ids, tokens = self.blocks
        return min(who.prompt - 1, tokens * self.store.reuse(ids(who.index)))

    # Passes

    def _prefill(self) -> None:
        """One pass over prompts: whole ones by themselves, or pieces beside the decoding sequences."""
        decoding, filling, costs = self.decoding, self.filling, self.costs
        beside, room = 0, None
        if self.chunked:
            if decoding.members and self.memory.grows:
                self._make_room()
            beside = len(decoding)
            room = self.policy.chunk - beside
        pieces, tokens, compute, memory = [], beside, 0, 0
        for who in filling:
            new = who.prompt + who.made - who.filled
            if room is not None:
                new = min(new, room)
                if not new:
                    break
                room -= new
            who.filled += new
            pieces.append(who)
            tokens += new
            c, m = costs.prefill(new, who.filled)
            compute, memory = compute + c, memory + m
        c, m = costs.shared(tokens)
        compute, memory = compute + c, memory + m
        if beside:
            compute += decoding.base[0] + decoding.grows[0] * decoding.step
            memory += decoding.base[1] + decoding.grows[1] * decoding.step
        if self.memory.grows:
            self.memory.note(decoding, filling, 1)
        lasts = max(compute, memory)
        log = self.log
        self.clock, log.steps, log.busy, log.held = (
            self.clock + lasts, log.steps + 1, log.busy + lasts, log.held + lasts * self._held()
        )  # fmt: skip
        done = decoding.advance(1) if beside else []
        for who in pieces:
            if who.filled == who.prompt + who.made:
                filling.popleft()  # those that are done came first
                self._first_token(who)
        if done or self.static:
            self._finish(done)

    def _first_token(self, who: Sequence) -> None:
        """Its prompt is read: a token comes out, and it decodes unless that was all."""
        who.cached, who.filled = who.prompt + who.made, 0
        who.made += 1
        if who.made == 1:
            self.log.first[who.index] = self.clock
        whole = who.made == who.output
        if not whole or self.static:  # a static batch keeps every slot until it is done
            self.decoding.join(who)
        else:
            self.memory.give(who)
        if whole:
            self._last_token(who)

    def _last_token(self, who: Sequence) -> None:
        self.log.last[who.index] = self.clock
        if self.watch is not None:
            self.watch()

    def _finish(self, done: list[Sequence]) -> None:
        """Answers are complete: their slots and memory are free at once, or when a static batch is over."""
        for who in done:
            self._last_token(who)
        if self.static:
            members = self.decoding.members
            done = [] if any(self.log.last[index] is None for index in members) else list(members.values())
        for who in done:
            self.decoding.leave(who)
            self.memory.give(who)

    def _decode(self) -> None:
        """As many steps as nothing can happen in: until someone ends, memory runs out, or an arrival matters."""
        decoding, memory = self.decoding, self.memory
        if not memory.grows:
            steps = decoding.horizon()
        elif self._make_room():
            steps = 1
        else:
            steps = memory.lasts(decoding, self.filling, decoding.horizon())
        c0, c1, m0, m1 = decoding.lines()
        if self.next is not None and not self.static and (self.prioritised or not self.queue):  # else it waits anyway
            target = self.next.key[1] - self.clock
            if target < steps * max(c0 + c1 * steps, m0 + m1 * steps):  # no step lasts longer: it may fall in between
                steps = steps_until(c0, c1, m0, m1, steps, target)
        lasts, held = stretch(c0, c1, m0, m1, self._held(), decoding.grows[2], steps)
        if memory.grows:
            memory.note(decoding, self.filling, steps)
        log = self.log
        self.clock, log.steps, log.busy, log.held = (
            self.clock + lasts, log.steps + steps, log.busy + lasts, log.held + held
        )  # fmt: skip
        done = decoding.advance(steps)
        if done:
            self._finish(done)

    def _held(self) -> int:
        """What all caches hold in the next step, in the costs' unit; those that are prefilled count in full."""
        decoding = self.decoding
        held = decoding.base[2] + decoding.grows[2] * decoding.step
        for who in self.filling:
            held += self.costs.cache.at(who.prompt + who.made)[0]
        return held

    # Preemption

    def _make_room(self) -> bool:
        """Where the next step would not fit, the last in line give way; whether any did."""
        gone = False
        while not self.memory.fits(self.decoding, self.filling):
            gone = True
            victim = max((*self.decoding.members.values(), *self.filling), key=lambda who: who.key)
            self.log.preempted += 1
            if victim.index in self.decoding.members:
                self.decoding.interrupt(victim)
                if self.policy.preemption == "swap":
                    victim.away, victim.due = True, self.costs.transfer(victim.cached, self.policy.link)
                    self.clock += victim.due
            else:
                self.filling.remove(victim)
                victim.filled = 0
            heappush(self.queue, (victim.key, victim))
        return gone
