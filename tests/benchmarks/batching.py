"""Speeds of the slot game: events against a loop over steps, and how time grows with requests."""

import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from costmodel.lab.batching import simulate_continuous_batching
from tests.benchmarks.side_by_side import Result, faster

REQUESTS, SLOTS = 100_000, 8


def queue_and_scan(lengths: list[int], slots: int) -> int:
    """The same game by looking at every slot in every step: how many steps it takes."""
    queue, left, steps = deque(lengths), [0] * slots, 0
    while queue or any(left):
        for slot in range(slots):
            if left[slot] == 0 and queue:
                left[slot] = queue.popleft()
        for slot in range(slots):
            if left[slot]:
                left[slot] -= 1
        steps += 1
    return steps


def processor_time(run: Callable) -> float:
    """Seconds of processor that one call takes: a long call is interrupted on a busy machine, a short one is not."""
    start = time.process_time()
    run()
    return time.process_time() - start


def game() -> Iterator[Result]:
    """Continuous batching of 100,000 requests of the lengths that chats have (mean about 340 tokens)."""
    lengths = np.random.default_rng(0).geometric(1 / 343, REQUESTS).tolist()
    assert simulate_continuous_batching(lengths, SLOTS).steps == queue_and_scan(lengths, SLOTS)
    ours = lambda: simulate_continuous_batching(lengths, SLOTS)  # noqa: E731
    what = f"continuous batching, {REQUESTS:,} requests on {SLOTS} slots"
    yield faster(what, ours, lambda: queue_and_scan(lengths, SLOTS), "a queue and a scan of slots", times=80, rounds=3)
    few, seconds = [1000 * 4**i for i in range(5)], []
    for n in few:
        sample = (lengths * -(-n // REQUESTS))[:n]
        seconds.append(min(processor_time(lambda s=sample: simulate_continuous_batching(s, SLOTS)) for _ in range(5)))
    exponent = float(np.polyfit(np.log(few), np.log(seconds), 1)[0])
    what = "continuous batching: exponent of the number of requests"
    yield Result(what, seconds[-1], seconds[0], f"{few[0]:,} requests", exponent, "≤ 1.1", exponent <= 1.1)


def results() -> Iterator[Result]:
    """Every comparison of this file."""
    yield from game()
