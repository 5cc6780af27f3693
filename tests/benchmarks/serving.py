"""The serving simulation against loops that go step by step; the Azure rows appear where the trace lies."""

import heapq
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
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
import resource
from costmodel import Deployment, accelerator, load
from costmodel.serving import simulate, synthetic_trace
trace = synthetic_trace(requests={count}, rate=5.0)
deployment = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
result = simulate(trace, deployment)
assert result.served == {count}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
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

    def __init__(self, trace: Trace, deployment: Deployment, heap: bool = False) -> None:
        self.trace, self.costs, self.heap = trace, PassCosts(deployment), heap
        self.budget = cache_budget(self.costs)

    def __call__(self) -> tuple[int, list[int]]:
        """(steps, ticks when each request's last token was out)."""
        costs, trace, heap = self.costs, self.trace, self.heap
        arrival = [costs.ticks(s) for s in trace.arrival.tolist()]
        prompt, output = trace.prompt.tolist(), trace.output.tolist()
        block = POLICY.block
        needs = [costs.cache_bytes(-(-(p + m - 1) // block) * block) for p, m in zip(prompt, output, strict=True)]
        (c_one, c_more), (m_one, m_more) = ((line.constant, line.slope) for line in costs.lines[:2])
        shared_c, shared_m = costs.shared(0, 1), costs.shared(1, 1)
        last = [0] * len(trace)
        running: list[list[int]] = []  # [context of the next step, tokens to come, request]
        ends: list[tuple[int, int]] = []
        clock = steps = decoded = contexts = used = next_one = 0
        while next_one < len(trace) or running or ends:
            fresh, asked = [], 0
            while next_one < len(trace) and arrival[next_one] <= clock:
                full = len(running) + len(ends) + len(fresh) >= POLICY.slots
                if full or used + needs[next_one] > self.budget:
                    break
                if fresh and asked + prompt[next_one] > POLICY.prefill_tokens:
                    break
                fresh.append(next_one)
                asked += prompt[next_one]
                used += needs[next_one]
                next_one += 1
            if fresh:
                compute, memory = shared_c, shared_m
                for who in fresh:
                    more = costs.prefill(prompt[who], prompt[who])
                    compute, memory = compute + more[0], memory + more[1]
                clock += max(compute, memory)
                for who in fresh:
                    if output[who] == 1:
                        last[who], used = clock, used - needs[who]
                    elif heap:
                        heapq.heappush(ends, (decoded + output[who] - 1, who))
                        contexts += prompt[who] + 1
                    else:
                        running.append([prompt[who] + 1, output[who] - 1, who])
            elif heap and ends:
                count = len(ends)
                clock += max(shared_c + count * c_one + c_more * contexts, shared_m + count * m_one + m_more * contexts)
                decoded, contexts = decoded + 1, contexts + count
                while ends and ends[0][0] == decoded:
                    who = heapq.heappop(ends)[1]
                    last[who], used = clock, used - needs[who]
                    contexts -= prompt[who] + output[who]
            elif running:
                compute, memory, over = shared_c, shared_m, False
                for who in running:
                    compute += c_one + c_more * who[0]
                    memory += m_one + m_more * who[0]
                    who[0] += 1
                    who[1] -= 1
                    over |= not who[1]
                clock += max(compute, memory)
                if over:
                    for _, left, who in running:
                        if not left:
                            last[who], used = clock, used - needs[who]
                    running = [who for who in running if who[1]]
            else:
                clock = arrival[next_one]
                continue
            steps += 1
        return steps, last


def compared(what: str, trace: Trace, d: Deployment, times: float, rounds: int, **options: object) -> Iterator[Result]:
    """Ours against a loop over everyone, after checking that both say the same."""
    loop = StepLoop(trace, d)
    steps, last = loop()
    found = simulate(trace, d, POLICY, **options)
    error = float(np.abs(found.last_s - np.array(last) / loop.costs.ticks_per_s).max())
    same = found.steps == steps and error <= 1e-9
    print(f"{what}: {steps:,} steps, {steps / found.events:.1f} per event, largest difference {error:.1g} s")
    if not same:
        yield Result(what, found.steps, steps, "the step loop", error, "the same steps and times", False)
    ours = lambda: simulate(trace, d, POLICY, **options)  # noqa: E731
    yield faster(what, ours, loop, "a loop over all who run", times=times, rounds=rounds)


def reported(what: str, ours: Callable, other: Callable, alternative: str) -> Result:
    """A ratio without a floor."""
    found = faster(what, ours, other, alternative, times=0, rounds=3)
    return Result(found.what, found.ours, found.other, alternative, found.ratio, "reported", True)


def scaling(d: Deployment) -> Iterator[Result]:
    """Time grows with the number of requests; and what a million take, in a process of its own."""
    counts = [2_000, 8_000, 32_000]
    traces = [synthetic_trace(requests=n, rate=5.0) for n in counts]
    seconds = [min(timed(lambda t=t: simulate(t, d)) for _ in range(3)) for t in traces]
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
    d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    yield from compared(LONG, long_answers(), d, times=100, rounds=3)
    saturated = synthetic_trace(requests=3000, rate=60.0)
    yield from compared("saturated: 3,000 requests at 60/s", saturated, d, times=1, rounds=3)
    heap = StepLoop(saturated, d, heap=True)
    yield reported(
        "saturated: 3,000 requests at 60/s", lambda: simulate(saturated, d), heap, "a loop with sums and a heap"
    )
    trace = azure()
    if trace is None:
        print("skipped: no traces; set COSTMODEL_DATA to a folder with traces/azure_conv.csv")
    else:
        what = "Azure conversations, 19,366 requests"
        yield from compared(what, trace, d, times=5, rounds=3)
        heap = StepLoop(trace, d, heap=True)
        yield reported(what, lambda: simulate(trace, d), heap, "a loop with sums and a heap")
        if find_spec("numba"):
            yield from compared(f"{what}, compiled", trace, d, times=30, rounds=3, compiled=True)
    yield from scaling(d)
