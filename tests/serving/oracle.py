"""Serving a trace step by step: every pass looks at every request that runs. Plain and slow, and the simulator's judge.

Written from the policies' rules alone: it shares the price of a pass (PassCosts.mixed) with the package, nothing else.
"""

from dataclasses import dataclass, field

from costmodel.serving import PassCosts, Policy, Trace


@dataclass
class Request:
    key: tuple
    prompt: int
    output: int
    made: int = 0  # tokens of the answer
    cached: int = 0
    filled: int = 0
    brought_in: int | None = None  # ticks to bring its cache in, where that lies outside

    @property
    def context(self) -> int:
        return self.cached if self.brought_in is not None else self.prompt + self.made

    @property
    def most(self) -> int:
        return self.prompt + self.output - 1


@dataclass
class Reference:
    costs: PassCosts
    policy: Policy
    requests: list[Request]
    blocks: list | None = None
    block_tokens: int = 512
    first: dict = field(default_factory=dict)
    last: dict = field(default_factory=dict)
    rejected: set = field(default_factory=set)
    steps: int = 0
    busy: int = 0
    held: int = 0
    peak: int = 0
    preempted: int = 0
    hits: int = 0
    asked: int = 0

    def run(self) -> "Reference":
        costs, policy = self.costs, self.policy
        d = costs.deployment
        budget = int(d.usable_bytes - d.weight_bytes)
        static, chunked = policy.kind == "static", policy.kind == "chunked"
        coming = sorted(self.requests, key=lambda r: (r.key[1], r.key[2]))
        waiting, filling, running = [], [], []
        known: list = []  # blocks, most recently used last
        clock = 0

        def size(tokens: int) -> int:
            return costs.cache_bytes(-(-tokens // policy.block) * policy.block)

        def demand(also: list) -> int:
            """Bytes that must be there for the next step, with some more requests let in."""
            if static:
                batch = running + filling + also
                longest = max((r.output for r in batch), default=1)
                return sum(size(r.prompt + longest - 1) for r in batch)
            if policy.preemption is None:
                return sum(size(r.most) for r in running + filling + also)
            return sum(size(r.cached + 1) for r in running) + sum(
                size(min(r.context + 1, r.most)) for r in filling + also
            )

        while coming or waiting or filling or running:
            while coming and coming[0].key[1] <= clock:
                r = coming.pop(0)
                if size(r.most) > budget:
                    self.rejected.add(r.key[2])
                else:
                    waiting.append(r)
            waiting.sort(key=lambda r: r.key)
            asked = 0
            while waiting and len(running) + len(filling) < policy.slots and not (static and running):
                r = waiting[0]
                new = 0 if r.brought_in is not None else r.context
                if policy.kind == "continuous" and asked and asked + new > policy.prefill_tokens:
                    break
                if demand([r]) > budget:
                    break
                waiting.pop(0)
                if r.brought_in is not None:
                    clock += r.brought_in
                    r.brought_in = None
                    running.append(r)
                    continue
                asked += new
                r.filled = 0
                if self.blocks is not None and policy.prefix_blocks != 0 and r.made == 0:
                    ids = self.blocks[r.key[2]]
                    hits = 0
                    while hits < len(ids) and ids[hits] in known:
                        hits += 1
                    for name in ids[::-1]:
                        if name in known:
                            known.remove(name)
                        known.append(name)
                    if policy.prefix_blocks is not None:
                        known = known[-policy.prefix_blocks :]
                    self.hits, self.asked = self.hits + hits, self.asked + len(ids)
                    r.filled = min(r.prompt - 1, hits * self.block_tokens)
                filling.append(r)
            self.peak = max(self.peak, demand([]) if policy.preemption is None else 0)

            fill = bool(filling) and (not chunked or len(running) < policy.chunk)
            if not fill and not running:
                if not coming:
                    break
                clock = max(clock, coming[0].key[1])
                continue
            decode = running and (not fill or chunked)
            if decode:
                while demand([]) > budget:
                    victim = max(running + filling, key=lambda r: r.key)
                    self.preempted += 1
                    if victim in running:
                        running.remove(victim)
                        if policy.preemption == "swap":
                            link = costs.ticks(costs.cache_bytes(victim.cached) / policy.link)
                            victim.brought_in = link
                            clock += link
                        else:
                            victim.cached = 0
                    else:
                        filling.remove(victim)
                    waiting.append(victim)
            self.peak = max(self.peak, demand([]))
            pieces = []
            if fill:
                room = policy.chunk - len(running) if chunked else 10**12
                for r in filling:
                    new = min(room, r.context - r.filled)
                    if new > 0:
                        pieces.append((r, new))
                        room -= new
            decoders = list(running) if decode else []
            lasts = costs.mixed([r.cached + 1 for r in decoders], [(new, r.filled + new) for r, new in pieces])
            bytes_held = sum(costs.cache.at(r.cached + 1)[0] for r in running)
            bytes_held += sum(costs.cache.at(r.context)[0] for r in filling)
            clock, self.steps = clock + lasts, self.steps + 1
            self.busy, self.held = self.busy + lasts, self.held + lasts * bytes_held
            for r in decoders:
                r.cached += 1
                r.made += 1
                if r.made == r.output:
                    self.last.setdefault(r.key[2], clock)
                    if not static:
                        running.remove(r)
            for r, new in pieces:
                r.filled += new
                if r.filled == r.context:
                    r.cached = r.context
                    r.made += 1
                    self.first.setdefault(r.key[2], clock)
                    filling.remove(r)
                    if r.made >= r.output:
                        self.last.setdefault(r.key[2], clock)
                    if r.made < r.output or static:
                        running.append(r)
            if static and all(r.made >= r.output for r in running):
                running.clear()
        assert not waiting + filling + running
        return self


def requests_of(trace: Trace, costs: PassCosts) -> list[Request]:
    priority = [0] * len(trace) if trace.priority is None else trace.priority.tolist()
    return [
        Request((priority[i], costs.ticks(float(trace.arrival[i])), i), int(trace.prompt[i]), int(trace.output[i]))
        for i in range(len(trace))
    ]


def reference(trace: Trace, costs: PassCosts, policy: Policy) -> Reference:
    return Reference(costs, policy, requests_of(trace, costs), trace.blocks, trace.block_tokens).run()
