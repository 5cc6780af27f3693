"""Requests that join and leave between passes get what they would get alone, in the slot game's time."""

import random

import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.batching import simulate_continuous_batching
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.iteration import serve_continuously
from costmodel.lab.paging import PagedMemory


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("paged", [False, True])
def test_the_same_tokens_in_the_slot_game_s_steps(seed: int, paged: bool) -> None:
    tiny, rng = TinyDecoder(), random.Random(seed)
    prompts = [[rng.randrange(16) for _ in range(rng.randint(1, 20))] for _ in range(10)]
    n_new = [rng.randint(1, 15) for _ in prompts]
    memory = PagedMemory(tiny.shape, 40, 4)
    served = serve_continuously(tiny, prompts, n_new, 3, new_cache=memory.new_cache if paged else None)
    run = simulate_continuous_batching(n_new, 3)
    assert len(served.passes) == run.steps
    assert [set(rows) for rows in served.passes] == [{r for r in row if r is not None} for row in run.timeline]
    for prompt, n, answer in zip(prompts, n_new, served.answers, strict=True):
        assert answer == tiny.generate(prompt, n).new_tokens
    assert memory.used == 0


def test_every_prompt_goes_through_once_and_every_later_token_alone() -> None:
    served = serve_continuously(TinyDecoder(), [[1] * 3, [2] * 9, [3] * 5], [2, 2, 2], 3)
    assert served.passes == [{0: 3, 1: 9, 2: 5}, {0: 1, 1: 1, 2: 1}]


def test_what_cannot_be_served_is_refused() -> None:
    for n_new, slots, message in (
        ([1], 0, "slots must be an integer of at least 1"),
        ([0], 1, "n_new must be an integer of at least 1, got 0"),
        ([1, 1], 1, "one n_new for each prompt is needed, got 2 for 1"),
    ):
        with pytest.raises(CostModelError, match=message):
            serve_continuously(TinyDecoder(), [[1]], n_new, slots)
