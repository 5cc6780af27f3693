"""The serving simulation against loops that go step by step; the Azure rows appear where the trace lies."""

import heapq
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from costmodel import Deployment, accelerator, load
from costmodel.serving import PassCosts, Policy, Trace, read_trace, simulate, synthetic_trace
from costmodel.serving.memory import cache_budget
from tests.benchmarks.side_by_side import Result, faster, timed

POLICY = Policy()
LONG = "200 answers of 4,000 tokens at 0.04/s"
MILLION = """
from pathlib import Path
from costmodel import Deployment, accelerator, load
from costmodel.serving import simulate, synthetic_trace
trace = synthetic_trace(requests={count}, rate=5.0)
deployment = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
result = simulate(trace, deployment)
assert result.served == {count}
peak = next(line for line in Path('/proc/self/status').read_text().splitlines() if line.startswith('VmHWM'))
print(1024 * int(peak.split()[1]))  # ru_maxrss would count the process that started this one
"""


def azure() -> Trace | None:
    """The Azure conversation trace, named by COSTMODEL_DATA or lying beside the checkout."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    for folder in (os.environ.get("COSTMODEL_DATA"), beside):
        if folder and (path := Path(folder) / "traces" / "azure_conv.csv").is_file():
            return read_trace(path)
    return None


def long_answers() -> Trace:
    """Low load, long answers: the batch hardly ever changes."""
    gaps = np.random.default_rng(0).exponential(25, 200)
    return Trace(np.cumsum(gaps), np.full(200, 500), np.full(200, 4000))


class StepLoop:
    """Continuous batching step by step: every step goes through everyone who runs, or keeps sums and a heap."""

    def __init__(self, trace: Trace, costs: PassCosts, heap: bool = False) -> None:
        self.trace, self.costs, self.heap = trace, costs, heap
        self.budget = cache_budget(costs)

    def __call__(self) -> tuple[int, list[int], list[int], int, int]:
        """Steps, ticks of each request's first and last token, ticks in passes, integral of what the caches hold."""
        costs, trace, heap, block = self.costs, self.trace, self.heap, POLICY.block
        arrival = [costs.ticks(s) for s in trace.arrival.tolist()]
        prompt, output = trace.prompt.tolist(), trace.output.tolist()
        needs = [costs.cache_bytes(-(-(p + m - 1) // block) * block) for p, m in zip(prompt, output, strict=True)]
        (c_one, c_more), (m_one, m_more), (h_one, h_more) = ((line.constant, line.slope) for line in costs.lines)
        shared_c, shared_m = costs.shared(1)
        first, last = [0] * len(trace), [0] * len(trace)
        running: list[list[int]] = []  # [context of the next step, tokens to come, request]
        ends: list[tuple[int, int]] = []
        clock = steps = decoded = contexts = used = following = busy = held = 0
        while following < len(trace) or running or ends:
            fresh, asked = [], 0
            while following < len(trace) and arrival[following] <= clock:
                full = len(running) + len(ends) + len(fresh) >= POLICY.slots
                if full or used + needs[following] > self.budget:
                    break
                if fresh and asked + prompt[following] > POLICY.prefill_tokens:
                    break
                fresh.append(following)
                asked += prompt[following]
                used += needs[following]
                following += 1
            if fresh:
                kept = h_one * len(ends) + h_more * contexts + sum(h_one + h_more * who[0] for who in running)
                compute, memory = shared_c, shared_m
                for who in fresh:
                    more = costs.prefill(prompt[who], prompt[who])
                    compute, memory = compute + more[0], memory + more[1]
                    kept += h_one + h_more * prompt[who]
                lasts = max(compute, memory)
                for who in fresh:
                    first[who] = clock + lasts
                    if output[who] == 1:
                        last[who], used = clock + lasts, used - needs[who]
                    elif heap:
                        heapq.heappush(ends, (decoded + output[who] - 1, who))
                        contexts += prompt[who] + 1
                    else:
                        running.append([prompt[who] + 1, output[who] - 1, who])
            elif heap and ends:
                count = len(ends)
                compute = shared_c + count * c_one + c_more * contexts
                memory = shared_m + count * m_one + m_more * contexts
                lasts, kept = max(compute, memory), count * h_one + h_more * contexts
                decoded, contexts = decoded + 1, contexts + count
                while ends and ends[0][0] == decoded:
                    who = heapq.heappop(ends)[1]
                    last[who], used = clock + lasts, used - needs[who]
                    contexts -= prompt[who] + output[who]
            elif running:
                compute, memory, kept, over = shared_c, shared_m, 0, False
                for who in running:
                    context = who[0]
                    compute += c_one + c_more * context
                    memory += m_one + m_more * context
                    kept += h_one + h_more * context
                    who[0] = context + 1
                    who[1] -= 1
                    if not who[1]:
                        over = True
                lasts = max(compute, memory)
                if over:
                    for _, left, who in running:
                        if not left:
                            last[who], used = clock + lasts, used - needs[who]
                    running = [who for who in running if who[1]]
            else:
                clock = arrival[following]
                continue
            clock, busy, held, steps = clock + lasts, busy + lasts, held + lasts * kept, steps + 1
        return steps, first, last, busy, held


def compared(what: str, trace: Trace, costs: PassCosts, times: float, **options: object) -> Iterator[Result]:
    """Ours against a loop over everyone, after checking that both say the same."""
    loop = StepLoop(trace, costs)
    steps, *tokens, busy, held = loop()
    found, tick = simulate(trace, costs, POLICY, **options), 1 / costs.ticks_per_s
    pairs = zip((found.first_s, found.last_s), tokens, strict=True)
    error = max(float(np.abs(ours - np.array(theirs) * tick).max()) for ours, theirs in pairs)
    same = found.steps == steps and error <= 1e-9 and abs(found.busy_s - busy * tick) <= 1e-9 * found.busy_s
    same &= abs(found.held_byte_s - held * tick / costs.cache_unit) <= 1e-9 * found.held_byte_s
    print(f"{what}: {steps:,} steps, {steps / found.events:.1f} per event, largest difference {error:.1g} s")
    if not same:
        yield Result(what, found.steps, steps, "the step loop", error, "the same steps and times", False)
    ours = lambda: simulate(trace, costs, POLICY, **options)  # noqa: E731
    yield faster(what, ours, loop, "a loop over all who run", times=times, rounds=5)


def against_a_heap(what: str, trace: Trace, costs: PassCosts) -> Result:
    """A ratio without a floor: step by step, but with running sums, so that nobody is gone through."""
    loop = StepLoop(trace, costs, heap=True)
    found = faster(what, lambda: simulate(trace, costs, POLICY), loop, "", times=0, rounds=5)
    return replace(found, alternative="a loop with sums and a heap", floor="reported")


def scaling(costs: PassCosts) -> Iterator[Result]:
    """Time grows with the number of requests; and what a million take, in a process of its own."""
    counts = [2_000, 8_000, 32_000]
    traces = [synthetic_trace(requests=n, rate=5.0) for n in counts]
    seconds = [min(timed(lambda t=t: simulate(t, costs)) for _ in range(3)) for t in traces]
    exponent = float(np.polyfit(np.log(counts), np.log(seconds), 1)[0])
    what = "serving: exponent of the requests"
    yield Result(what, seconds[-1], seconds[0], f"{counts[0]:,} requests", exponent, "≤ 1.1", exponent <= 1.1)
    peaks = []
    for count in (1_000, 1_000_000):
        run = subprocess.run(
            [sys.executable, "-c", MILLION.format(count=count)], capture_output=True, text=True, check=True
        )
        peaks.append(int(run.stdout))
    each = (peaks[1] - peaks[0]) / 999_000
    print(f"a million requests: {peaks[1] / 2**20:,.0f} MiB at most, {each:,.0f} byte a request")
    ratio = peaks[1] / 2**30
    yield Result("a million requests: GiB at most", ratio, 1.0, "1 GiB", ratio, "≤ 1", ratio <= 1)


def results() -> Iterator[Result]:
    """Every comparison of this module."""
    costs = PassCosts(Deployment(load("llama-3-8b"), accelerator("h100-sxm")))
    yield from compared(LONG, long_answers(), costs, times=100)
    saturated, what = synthetic_trace(requests=3000, rate=60.0), "saturated: 3,000 requests at 60/s"
    yield from compared(what, saturated, costs, times=1)
    yield against_a_heap(what, saturated, costs)
    trace, what = azure(), "Azure conversations, 19,366 requests"
    if trace is None:
        print("skipped: no traces; set COSTMODEL_DATA to a folder with traces/azure_conv.csv")
    else:
        yield from compared(what, trace, costs, times=5)
        yield against_a_heap(what, trace, costs)
        if find_spec("numba"):
            yield from compared(f"{what}, compiled", trace, costs, times=30, compiled=True)
    yield from scaling(costs)
