"""What samples and beams share, and the made-up conversations."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.common.blocks import blocks_of
from costmodel.common.errors import CostModelError
from costmodel.lab.conversations import conversation_trace
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.prefix_cache import hit_ratio
from costmodel.lab.sharing import beam_blocks, parallel_blocks

TINY = TinyDecoder()


@settings(max_examples=30)
@given(st.integers(1, 20), st.integers(2, 12), st.integers(2, 4), st.integers(1, 6))
def test_samples_share_the_whole_blocks_of_their_prompt(prompt: int, new: int, samples: int, b: int) -> None:
    shared = prompt // b
    each = blocks_of(prompt + new - 1, b) - shared
    assert parallel_blocks(TINY, [1] * prompt, new, samples, b) == shared + samples * each


@pytest.mark.parametrize("b", [1, 4, 16])
def test_beams_share_no_less_than_samples_and_one_beam_nothing(b: int) -> None:
    prompt = [i % 16 for i in range(20)]
    alone = beam_blocks(TINY, prompt, 20, 1, b)
    assert alone == blocks_of(39, b)
    assert alone < beam_blocks(TINY, prompt, 20, 4, b) <= parallel_blocks(TINY, prompt, 20, 4, b)


def test_a_request_repeats_what_was_said_before() -> None:
    trace = conversation_trace(500, seed=0, system=2, turn=3, together=20)
    assert trace == conversation_trace(500, seed=0, system=2, turn=3, together=20)
    seen = set()
    for request in trace:
        *past, _, _, _ = request
        assert past == [0, 1] or tuple(past) in seen
        seen.add(tuple(request))
    asked, fresh = sum(map(len, trace)), 2 + 3 * 500
    assert hit_ratio(trace) == 1 - fresh / asked


def test_a_conversation_of_infinite_turns_never_ends() -> None:
    trace = conversation_trace(50, seed=0, together=1, turns=float("inf"))
    assert [len(request) for request in trace] == [2 + 3 * n for n in range(1, 51)]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"requests": 0}, "requests must be an integer of at least 1, got 0"),
        ({"turn": 0.5}, "turn must be an integer of at least 1, got 0.5"),
        ({"together": 0}, "together must be an integer of at least 1, got 0"),
        ({"system": -1}, "system must be an integer of at least 0, got -1"),
        ({"turns": 0}, "turns must be a number of at least 1, got 0"),
        ({"turns": 0.5}, "turns must be a number of at least 1, got 0.5"),
        ({"turns": float("nan")}, "turns must be a number of at least 1, got nan"),
    ],
)
def test_conversations_that_cannot_be_are_named(sizes: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        conversation_trace(**({"requests": 5, "seed": 0} | sizes))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parallel_blocks(TINY, [1], 2, 2, 0), "block_tokens must be an integer of at least 1, got 0"),
        (lambda: parallel_blocks(TINY, [1], 2, 0, 4), "samples must be an integer of at least 1, got 0"),
        (lambda: parallel_blocks(TINY, [1], 0, 2, 4), "n_new must be an integer of at least 1, got 0"),
        (lambda: parallel_blocks(TINY, [1], 1.5, 2, 4), "n_new must be an integer of at least 1, got 1.5"),
        (lambda: parallel_blocks(TINY, [], 2, 2, 4), "tokens must be a non-empty sequence of integers"),
        (lambda: beam_blocks(TINY, [1], 2, 2, 0), "block_tokens must be an integer of at least 1, got 0"),
        (lambda: beam_blocks(TINY, [1], 2, -3, 4), "width must be an integer of at least 1, got -3"),
        (lambda: beam_blocks(TINY, [1], 0, 2, 4), "n_new must be an integer of at least 1, got 0"),
    ],
)
def test_blocks_of_nothing_are_named(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call()
