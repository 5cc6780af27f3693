"""The slot game against a loop that plays it step by step."""

import random
from collections import deque

import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.batching import ServingRun, simulate_continuous_batching, simulate_static_batching


def played(lengths: list[int], slots: int, continuous: bool) -> list[list[int | None]]:
    """The same game, one step after the other."""
    queue, holders, left, timeline = deque(range(len(lengths))), [None] * slots, list(lengths), []
    while queue or any(h is not None for h in holders):
        if continuous or all(h is None for h in holders):
            for slot in range(slots):
                if holders[slot] is None and queue:
                    holders[slot] = queue.popleft()
        timeline.append(list(holders))
        for slot, request in enumerate(holders):
            if request is not None:
                left[request] -= 1
                if left[request] == 0:
                    holders[slot] = None
    return timeline


def test_ten_thousand_small_cases_equal_the_step_by_step_game() -> None:
    rng = random.Random(12)
    for _ in range(10_000):
        lengths = [rng.randint(1, 9) for _ in range(rng.randint(1, 12))]
        slots = rng.randint(1, 5)
        for simulate, continuous in ((simulate_static_batching, False), (simulate_continuous_batching, True)):
            run, timeline = simulate(lengths, slots), played(lengths, slots, continuous)
            assert run.timeline == timeline
            assert run.steps == len(timeline)
            busy = sum(request is not None for row in timeline for request in row)
            assert run.utilization == busy / (len(timeline) * slots)
            assert run.ends == [1 + max(i for i, row in enumerate(timeline) if r in row) for r in range(len(lengths))]


def rows(run: ServingRun) -> tuple[int, str]:
    return run.steps, f"{100 * run.utilization:.4g}"


def test_r_batch_small() -> None:
    assert rows(simulate_static_batching([4, 1, 1, 1], 2)) == (5, "70")
    assert rows(simulate_continuous_batching([4, 1, 1, 1], 2)) == (4, "87.5")


def test_r_batch_32() -> None:
    lengths = np.random.default_rng(0).integers(5, 120, 32)
    assert rows(simulate_static_batching(lengths, 8)) == (433, "60.05")
    assert rows(simulate_continuous_batching(lengths, 8)) == (318, "81.76")


def test_one_slot_or_one_request_or_enough_slots() -> None:
    for simulate in (simulate_static_batching, simulate_continuous_batching):
        assert rows(simulate([3, 5, 2], 1)) == (10, "100")
        assert rows(simulate([7], 4)) == (7, "25")
        assert simulate([3, 5, 2], 3).steps == 5


def test_continuous_can_lose_a_step_to_nothing_but_order() -> None:
    """First come, first served: a long request that comes last runs on alone; sorted, it would not."""
    assert simulate_continuous_batching([1, 1, 1, 1, 4], 2).steps == 6
    assert simulate_continuous_batching([4, 1, 1, 1, 1], 2).steps == 4


@pytest.mark.parametrize("simulate", [simulate_static_batching, simulate_continuous_batching])
def test_impossible_requests_are_refused(simulate: object) -> None:
    for lengths, slots, message in (
        ([3, 0], 2, "length must be an integer of at least 1, got 0"),
        ([3, -1], 2, "length must be an integer of at least 1, got -1"),
        ([2.5], 2, "length must be an integer of at least 1, got 2.5"),
        ([True], 2, "length must be an integer of at least 1, got True"),
        (["3"], 2, "length must be an integer of at least 1, got '3'"),
        ([], 2, "no requests: give at least one length"),
        ([3], 0, "slots must be an integer of at least 1, got 0"),
        ([3], -2, "slots must be an integer of at least 1, got -2"),
        ([3], 1.5, "slots must be an integer of at least 1, got 1.5"),
    ):
        with pytest.raises(CostModelError, match=message):
            simulate(lengths, slots)
