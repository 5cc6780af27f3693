"""Prompts on some accelerators, answers on others: each prompt's cache travels over the link in between.

Zhong et al., DistServe, 2401.09670; Patel et al., Splitwise, 2311.18677. Transfers do not delay passes or each other.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from costmodel.common.checks import present
from costmodel.serving.costs import PassCosts
from costmodel.serving.decoding import Sequence
from costmodel.serving.log import Log
from costmodel.serving.memory import Memory
from costmodel.serving.policy import Policy
from costmodel.serving.replica import Replica

COUNTED = ("steps", "events", "busy", "held", "preempted", "hits", "asked")


def _prompts(requests: list[Sequence]) -> Iterator[Sequence]:
    """The requests as prefill sees them: over with the first token."""
    for index, who in enumerate(requests):
        yield Sequence((*who.key[:2], index), who.prompt, 1)


def _answers(requests: list[tuple[int, Sequence]]) -> Iterator[Sequence]:
    """The requests as decoding sees them: (when the cache is there, request), one token made."""
    for index, (ready, who) in enumerate(requests):
        handed = Sequence((who.key[0], ready, index), who.prompt, who.output)
        handed.made, handed.cached, handed.away = 1, who.prompt, True
        yield handed


def serve_apart(
    requests: list[Sequence],
    costs: PassCosts,
    policy: Policy,
    pools: tuple[int, int],
    *,
    blocks: tuple[Callable[[int], list[int]], int] | None = None,
    prioritised: bool = False,
    watch: Callable[[], None] | None = None,
) -> Log:
    """Serve requests on pools of (prefill, decode) replicas, in turn; one log of both.

    Parameters
    ----------
    requests : in order of arrival, numbered by it
    costs, policy, blocks, prioritised, watch : as a Replica takes them
    pools : replicas that prefill, replicas that decode
    """
    whole = Log([None] * len(requests), [None] * len(requests))
    memory = Memory(costs, policy)
    whole.rejected = {who.index: reason for who in requests if (reason := memory.never(who))}
    able = [who for who in requests if who.index not in whole.rejected]
    alone = replace(policy, kind="continuous", preemption=None)
    for part in (able[i :: pools[0]] for i in range(pools[0])):
        at = None if blocks is None else (lambda index, part=part: blocks[0](part[index].index), blocks[1])
        log = Replica(costs, alone, _prompts(part), len(part), blocks=at, prioritised=prioritised).run()
        _count(whole, log)
        for who, ticks in zip(part, log.last, strict=True):
            whole.first[who.index] = ticks
            if who.output == 1:
                whole.last[who.index] = ticks
                if watch is not None:
                    watch()
    ready = [
        (present("its first token", whole.first[who.index]) + costs.transfer(who.prompt, policy.link), who)
        for who in able
        if who.output > 1
    ]
    ready.sort(key=lambda pair: (pair[0], pair[1].index))
    together = replace(policy, kind="continuous")
    for begun in (ready[i :: pools[1]] for i in range(pools[1])):
        log = Replica(costs, together, _answers(begun), len(begun), prioritised=prioritised, watch=watch).run()
        _count(whole, log)
        for (_, who), ticks in zip(begun, log.last, strict=True):
            whole.last[who.index] = ticks
    return whole


def _count(whole: Log, log: Log) -> None:
    for name in COUNTED:
        setattr(whole, name, getattr(whole, name) + getattr(log, name))
    whole.peak = max(whole.peak, log.peak)
