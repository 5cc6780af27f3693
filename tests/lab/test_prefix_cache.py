"""Prefixes are reused up to the first difference and never by mistake."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.common.errors import CostModelError
from costmodel.lab.prefix_cache import PrefixCache, hit_ratio, reusable_prefix_tokens

PROMPTS = st.lists(st.lists(st.integers(0, 2), max_size=12), max_size=12)


def test_up_to_the_first_difference() -> None:
    assert reusable_prefix_tokens([1, 2, 3], [1, 2, 3, 4]) == 3
    assert reusable_prefix_tokens([1, 2, 3], [1, 9, 3]) == 1
    assert reusable_prefix_tokens([], [1]) == reusable_prefix_tokens([1], []) == reusable_prefix_tokens([2], [1]) == 0


def test_a_timestamp_at_the_top_leaves_nothing() -> None:
    prompt = list(range(10, 2000))
    assert reusable_prefix_tokens([1, *prompt], [2, *prompt]) == 0
    assert reusable_prefix_tokens([*prompt, 1], [*prompt, 2]) == 1990


@pytest.mark.parametrize(("prefix", "block", "reused"), [(240, 784, 0), (240, 16, 240), (4200, 2096, 4192)])
def test_only_whole_blocks_are_reused(prefix: int, block: int, reused: int) -> None:
    """⌊P/B⌋·B (vllm#54607, #53749)."""
    first, second = [*range(prefix), -1], [*range(prefix), -2]
    assert reusable_prefix_tokens(first, second, block) == reused
    cache = PrefixCache(block)
    assert cache.serve(first) == 0
    assert cache.serve(second) == reused


@given(PROMPTS, st.integers(1, 4), st.sampled_from([None, lambda _: b"", lambda data: data[-1:]]))
def test_hits_are_the_longest_earlier_prefix_whatever_the_hash(prompts: list, block: int, weak: object) -> None:
    """Unbounded and strong: exactly the best of all earlier prompts. Weak: at most that (openvino.genai#3722)."""
    cache = PrefixCache(block, digest=weak) if weak else PrefixCache(block)
    for number, prompt in enumerate(prompts):
        best = max((reusable_prefix_tokens(old, prompt, block) for old in prompts[:number]), default=0)
        hit = cache.serve(prompt)
        assert hit <= best if weak else hit == best


def test_colliding_blocks_are_never_shared() -> None:
    cache = PrefixCache(2, digest=lambda _: b"all the same")
    assert [cache.serve(prompt) for prompt in ([1, 2], [3, 4], [3, 4], [1, 2])] == [0, 0, 2, 0]


@given(PROMPTS, st.integers(0, 6))
def test_a_bounded_cache_stays_bounded_and_never_finds_more(prompts: list, capacity: int) -> None:
    bounded, free = PrefixCache(2, capacity), PrefixCache(2)
    for prompt in prompts:
        assert bounded.serve(prompt) <= free.serve(prompt)
        assert len(bounded) <= capacity


def test_the_least_recently_used_goes_first_and_chains_from_their_end() -> None:
    cache = PrefixCache(1, capacity=4)
    cache.serve([1, 2])
    cache.serve([3, 4])
    assert cache.serve([1, 2]) == 2  # now newer than 3, 4
    cache.serve([5])  # pushes out the end of the older chain
    assert cache.serve([3, 4]) == 1
    long = PrefixCache(1, capacity=3)
    long.serve([1, 2, 3, 4, 5])
    assert long.serve([1, 2, 3, 4, 5]) == 3  # the beginning was kept, which alone can be found


def test_hit_ratio_counts_blocks() -> None:
    assert hit_ratio([[0, 1, 2], [0, 1, 3], [4]]) == 2 / 7
    assert hit_ratio([]) == hit_ratio([[]]) == 0
    for bad in (-1, 0.5, "a", True):
        with pytest.raises(CostModelError, match="request 1: block ids must be integers of at least 0"):
            hit_ratio([[0], [bad]])


def test_impossible_caches_are_refused() -> None:
    with pytest.raises(CostModelError, match="block_tokens must be an integer of at least 1, got 0"):
        PrefixCache(0)
    with pytest.raises(CostModelError, match="capacity must be an integer of at least 0, got -1"):
        PrefixCache(4, capacity=-1)


@pytest.mark.parametrize(
    ("name", "requests", "ratio"), [("conversation", 12_031, "0.3664"), ("synthetic", 3_993, "0.6396")]
)
def test_r_trace_mooncake(published: Path, name: str, requests: int, ratio: str) -> None:
    with (published / "traces" / f"mooncake_{name}.jsonl").open() as lines:
        trace = [json.loads(line)["hash_ids"] for line in lines]
    assert len(trace) == requests
    unbounded = hit_ratio(trace)
    assert f"{unbounded:.4f}" == ratio
    assert hit_ratio(trace, capacity=10_000) < unbounded == hit_ratio(trace, capacity=200_000)


def test_tokens_of_any_integer_kind() -> None:
    cache = PrefixCache(2)
    cache.serve(np.arange(6, dtype=np.int32))
    assert cache.serve(range(6)) == cache.serve([*range(6)]) == 6
    assert cache.hit_ratio == 6 / 9
