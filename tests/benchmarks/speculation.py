"""Speeds of speculation: rounds simulated together against one by one, and a run against plain decoding."""

from collections.abc import Iterator

import numpy as np

from costmodel.lab.speculation import RoundSimulator, speculative_round
from tests.benchmarks.side_by_side import Result, faster

TARGET = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
DRAFT = np.array([[0.3, 0.3, 0.4], [0.2, 0.5, 0.3], [0.6, 0.2, 0.2]])
GAMMA, ROUNDS = 3, 2_000


def one_by_one(draws: np.random.Generator) -> int:
    """The same rounds in a plain loop over coins and cumulative sums, checks left out."""
    below = [np.cumsum(table, axis=1) for table in (TARGET, DRAFT)]
    left = np.maximum(TARGET - DRAFT, 0)
    left = np.cumsum(left / left.sum(axis=1, keepdims=True), axis=1)
    made = 0
    for _ in range(ROUNDS):
        last = 0
        for _ in range(GAMMA):
            guess = int(np.searchsorted(below[1][last], draws.random(), side="right"))
            made += 1
            if not draws.random() * DRAFT[last, guess] < TARGET[last, guess]:
                np.searchsorted(left[last], draws.random(), side="right")
                break
            last = guess
        else:
            np.searchsorted(below[0][last], draws.random(), side="right")
            made += 1
    return made


def results() -> Iterator[Result]:
    """Every comparison of this module."""
    draws, starts = np.random.default_rng(0), np.zeros(ROUNDS * 50, int)
    simulator = RoundSimulator(TARGET, DRAFT, GAMMA)
    what = f"{ROUNDS * 50:,} rounds of speculation, γ = {GAMMA}"

    def loop() -> None:
        for _ in range(ROUNDS):
            speculative_round(0, TARGET, DRAFT, GAMMA, draws)

    together = lambda: simulator.rounds(starts, draws)  # noqa: E731
    yield per_round(faster(what, together, loop, f"our own round, {ROUNDS:,} times", times=30 / 50, rounds=5))
    bare = lambda: one_by_one(draws)  # noqa: E731
    yield per_round(faster(what, together, bare, f"a bare loop, {ROUNDS:,} times", times=30 / 50, rounds=5))


def per_round(result: Result) -> Result:
    """The ratio per round: ours runs 50 times as many."""
    ratio = 50 * result.ratio
    return Result(result.what, result.ours, result.other, result.alternative, ratio, "≥ 30x as fast", ratio >= 30)
