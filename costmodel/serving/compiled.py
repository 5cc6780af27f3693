"""The continuous policy as machine code (numba, extra "fast"): the same events, the same closed forms, the same ticks.

It serves what fits 64-bit integers: no preemption, priorities, shared blocks or windows. Times are kept as whole
seconds and ticks, so that only a single interval must fit.
"""

import heapq
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.common.extras import needed
from costmodel.serving import interval as closed_forms
from costmodel.serving.costs import PassCosts
from costmodel.serving.formula import Polynomial
from costmodel.serving.interval import interval, steps_until, stretch
from costmodel.serving.log import Log
from costmodel.serving.memory import Memory
from costmodel.serving.policy import Policy
from costmodel.serving.trace import Trace

LIMIT = 2.0**61  # an interval's ticks, and what is multiplied on the way
FORMULAS = ("line_sum", "crossover", "interval", "fewest_steps", "steps_until", "_sums", "stretch")
OVERFLOW = -1


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., Any]:
    """The core and the closed forms it calls, compiled: the very functions of `interval`, not copies."""
    numba = needed("numba", "the compiled core of the serving simulation", "fast")
    space = dict(vars(closed_forms))
    for name in FORMULAS:
        space[name] = numba.njit(FunctionType(getattr(closed_forms, name).__code__, space, name))
    return numba.njit(FunctionType(_core.__code__, {**globals(), **{name: space[name] for name in FORMULAS}}, "_core"))


def serve(trace: Trace, costs: PassCosts, policy: Policy) -> Log:
    """Serve a trace on one replica; the log that `Replica.run` gives, `held` to rounding.

    Raises
    ------
    CostModelError
        for what the compiled core does not serve
    """
    _refuse(trace, costs, policy)
    core, memory, tps = _compiled(), Memory(costs, policy), costs.ticks_per_s
    tokens = -(-(trace.prompt + trace.output - 1) // policy.block) * policy.block
    needs = -(-(int(costs.cache.constant) + int(costs.cache.slope) * tokens) // costs.cache_unit)
    able = np.flatnonzero(needs <= memory.budget)
    log = Log([None] * len(trace), [None] * len(trace))
    log.rejected = {
        int(i): memory.refusal(int(trace.prompt[i] + trace.output[i] - 1))
        for i in np.flatnonzero(needs > memory.budget)
    }
    arrival = _arrivals(trace.arrival[able], costs)
    prompt, output = trace.prompt[able], trace.output[able]
    prefill = [_column(formula, prompt) for formula in costs.prefills]
    one = prompt == 1
    for values, line in zip(prefill, costs.lines, strict=False):
        values[one] = line.at(1)[0]
    most = max(policy.slots, policy.prefill_tokens, int(prompt.max(initial=1))) + 1
    shared = _shared(costs, most)
    lines = np.array([[line.constant, line.slope] for line in costs.lines], dtype=np.int64)
    times = np.zeros((2, len(able), 2), dtype=np.int64)
    counts = np.zeros(4, dtype=np.int64)  # steps, events, busy seconds and ticks
    found = core(
        arrival, prompt, output, needs[able], prefill[0], prefill[1], shared[0], shared[1], lines,
        np.array([memory.budget, policy.slots, policy.prefill_tokens, tps], dtype=np.int64), times, counts,
    )  # fmt: skip
    if found[0] == OVERFLOW:
        raise CostModelError("an interval is too long for 64-bit ticks; use compiled=False")
    for into, part in ((log.first, times[0]), (log.last, times[1])):
        ticks = [seconds * tps + rest for seconds, rest in part.tolist()]
        if len(able) == len(trace):
            into[:] = ticks
        else:
            for place, tick in zip(able.tolist(), ticks, strict=True):
                into[place] = tick
    log.peak, log.held = int(found[0]), found[1]
    log.steps, log.events, log.busy = int(counts[0]), int(counts[1]), int(counts[2]) * tps + int(counts[3])
    return log


def _refuse(trace: Trace, costs: PassCosts, policy: Policy) -> None:
    """Name what the compiled core leaves to the plain one."""
    limits = {
        f"policy {policy.kind!r}": policy.kind != "continuous",
        "preemption": policy.preemption is not None,
        "priorities": trace.priority is not None,
        "shared blocks": trace.blocks is not None and policy.prefix_blocks != 0,
        "windows or chunks of attention": costs.breaks,
        f"ticks as fine as 1/{costs.ticks_per_s} s": costs.ticks_per_s >= 2**52,
    }
    for what, present in limits.items():
        if present:
            raise CostModelError(f"the compiled core does not serve {what}; use compiled=False")


def _shared(costs: PassCosts, most: int) -> np.ndarray:
    """What a pass over 0 … most − 1 tokens shares: a row of compute, a row of memory."""
    found = np.empty((2, most), dtype=np.int64)
    found.T[:] = [costs.shared(n) for n in range(most)] if costs.mixture else costs.shared(1)
    return found


def _arrivals(seconds: np.ndarray, costs: PassCosts) -> np.ndarray:
    """Each time as whole seconds and ticks, rounded up as `PassCosts.ticks` does.

    From 1 s on, a float's fraction is k/2⁵² exactly; k·ticks/2⁵² is worked out in halves of 26 bits.
    """
    tps, half, rest = costs.ticks_per_s, 2**26, 2**26 - 1
    found = np.empty((len(seconds), 2), dtype=np.int64)
    whole = np.floor(seconds)
    k = ((seconds - whole) * 2.0**52).astype(np.int64)
    (high, low), (tick_high, tick_low) = (k // half, k & rest), divmod(tps, half)
    middle = high * tick_low + low * tick_high
    remainder = (middle & rest) * half + low * tick_low
    ticks = high * tick_high + middle // half + (remainder + 2**52 - 1) // 2**52
    found[:, 0], found[:, 1] = whole + ticks // tps, ticks % tps
    early = np.flatnonzero(seconds < 1)
    for place, at in zip(early.tolist(), seconds[early].tolist(), strict=True):
        found[place] = divmod(costs.ticks(at), tps)
    return found


def _column(formula: Polynomial, prompt: np.ndarray) -> np.ndarray:
    """A prefill formula at T = S = each prompt, in 64-bit integers."""
    longest = int(prompt.max(initial=1))
    if sum(abs(c) * longest**2 for c, _, _ in formula.terms) >= LIMIT:
        raise CostModelError(f"a prompt of {longest} tokens is too long for 64-bit ticks; use compiled=False")
    v = [np.ones_like(prompt), prompt, prompt]
    return sum((int(c) * v[i] * v[j] for c, i, j in formula.terms), start=np.zeros_like(prompt))


def _core(
    arrival: np.ndarray, prompt: np.ndarray, output: np.ndarray, needs: np.ndarray, prefill_c: np.ndarray,
    prefill_m: np.ndarray, shared_c: np.ndarray, shared_m: np.ndarray, line: np.ndarray, limits: np.ndarray,
    times: np.ndarray, counts: np.ndarray,
) -> tuple[int, float]:  # fmt: skip
    """Replica.run for one kind of policy, over arrays; see there. Sequences are numbers, the queue is a range."""
    budget, slots, prefill_tokens, tps = limits
    (c_one, c_more), (m_one, m_more), (h_one, h_more) = line
    count, total = len(prompt), 0
    head = seen = running = used = peak = step = 0
    offsets = 0  # Σ (tokens cached − step) of those that decode
    clock_s = clock_t = 0
    held = 0.0
    ends = [(0, 0)][:0]
    while total < count:
        while seen < count and (arrival[seen, 0], arrival[seen, 1]) <= (clock_s, clock_t):
            seen += 1
        start, asked = head, 0
        while head < seen and running + head - start < slots:
            if asked and asked + prompt[head] > prefill_tokens:
                break
            if used + needs[head] > budget:
                break
            used += needs[head]
            asked += prompt[head]
            head += 1
        peak = max(peak, used)
        first = step + 1
        lines = running * h_one + h_more * (offsets + running * first)
        if head > start:
            compute, memory = shared_c[asked], shared_m[asked]
            for who in range(start, head):
                compute += prefill_c[who]
                memory += prefill_m[who]
                lines += h_one + h_more * prompt[who]
            steps, lasts = 1, max(compute, memory)
            held += float(lasts) * lines
        elif running:
            c0 = shared_c[running] + running * c_one + c_more * (offsets + running * first)
            m0 = shared_m[running] + running * m_one + m_more * (offsets + running * first)
            c1, m1 = running * c_more, running * m_more
            steps = ends[0][0] - step
            if steps * (max(c0, m0) + float(max(c1, m1)) * steps) >= 2.0**61:
                return -1, held
            if head == seen and seen < count and float(arrival[seen, 0] - clock_s) * tps < 2.0**61:
                target = (arrival[seen, 0] - clock_s) * tps + arrival[seen, 1] - clock_t
                steps = steps_until(c0, c1, m0, m1, steps, target)
            lasts = interval(c0, c1, m0, m1, steps)
            held += stretch(float(c0), float(c1), float(m0), float(m1), float(lines), float(running * h_more), steps)[1]
            step += steps
        else:
            clock_s, clock_t = arrival[seen]
            continue
        clock_t += lasts
        clock_s, clock_t = clock_s + clock_t // tps, clock_t % tps
        counts[0] += steps
        counts[1] += 1
        counts[3] += lasts
        counts[2], counts[3] = counts[2] + counts[3] // tps, counts[3] % tps
        for who in range(start, head):
            times[0, who, 0], times[0, who, 1] = clock_s, clock_t
            if output[who] == 1:
                times[1, who, 0], times[1, who, 1] = clock_s, clock_t
                used -= needs[who]
                total += 1
            else:
                heapq.heappush(ends, (step + output[who] - 1, who))
                offsets += prompt[who] - step
                running += 1
        while running and ends[0][0] <= step:
            who = heapq.heappop(ends)[1]
            times[1, who, 0], times[1, who, 1] = clock_s, clock_t
            offsets -= prompt[who] - (step - output[who] + 1)
            running -= 1
            used -= needs[who]
            total += 1
    return peak, held
