"""Prices of prompts, as one formula and call by call."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Rational, limit, oo, simplify, solve

from costmodel.caching import break_even_requests, cached_prompt_cost, uncached_prompt_cost
from costmodel.common.errors import CostModelError
from costmodel.lab.prompt_bill import Call, prompt_cache_bill, prompt_cache_cost
from costmodel.symbols import prefix, read, requests, suffix, write

PREFIX, MINUTE = list(range(10_000)), 60.0


def calls(count: int, every: float = 1.0, top: int | None = None) -> list[Call]:
    """Calls with the same prefix of 10,000 tokens, or with the time at its top, and 500 tokens of their own."""
    return [Call(i * every, PREFIX if top is None else [top + i, *PREFIX[1:]], range(i, i + 500)) for i in range(count)]


def test_r_promptcache() -> None:
    assert [f"{cost:.4f}" for cost in prompt_cache_cost(10_000, 500, 100, 3.0)] == ["3.1500", "0.4845"]
    first, second = (prompt_cache_bill(calls(n), 3.0).cost for n in (1, 2))
    assert (f"{first:.4f}", f"{second - first:.4f}") == ("0.0390", "0.0045")
    assert prompt_cache_bill(calls(100), 3.0).cost == pytest.approx(0.4845, rel=1e-12)
    saved = 1 - 0.4845 / 3.15
    assert f"{saved:.0%}" == "85%"


@given(
    *(st.integers(low, 30) for low in (0, 0, 1)),
    st.floats(0, 10),
    st.floats(0, 3),
    st.floats(0, 1),
    st.integers(0, 40),
)
def test_the_formula_is_the_sum_of_the_calls(
    prefix: int, suffix: int, count: int, price: float, write: float, read: float, minimum: int
) -> None:
    made = [Call(i, range(prefix), range(suffix)) for i in range(count)]
    bill = prompt_cache_bill(made, price, write, read, minimum=minimum)
    uncached, cached = prompt_cache_cost(prefix, suffix, count, price, write, read, minimum=minimum)
    assert bill.cost == pytest.approx(cached, rel=1e-9, abs=1e-15)
    assert bill.read + bill.written + bill.plain == count * (prefix + suffix)
    if prefix >= minimum:
        symbolic = cached_prompt_cost(prefix, suffix, count, price / 1e6, write, read)
        assert symbolic == pytest.approx(cached, rel=1e-9, abs=1e-15)
    assert uncached_prompt_cost(prefix, suffix, count, price / 1e6) == pytest.approx(uncached, rel=1e-9, abs=1e-15)


def test_it_pays_from_the_second_call() -> None:
    [root] = solve(uncached_prompt_cost() - cached_prompt_cost(), requests)
    assert simplify(root - break_even_requests()) == 0
    assert break_even_requests(Rational(5, 4), Rational(1, 10)) == Rational(23, 18)  # 5 minutes
    assert break_even_requests(2, Rational(1, 10)) == Rational(19, 9)  # 1 hour: from the third
    for count, pays in ((1, False), (2, True)):
        uncached, cached = prompt_cache_cost(1000, 50, count, 3.0)
        assert (cached < uncached) == pays
    for count, pays in ((2, False), (3, True)):
        uncached, cached = prompt_cache_cost(1000, 50, count, 3.0, write_multiplier=2)
        assert (cached < uncached) == pays
    with pytest.raises(CostModelError, match="read must be below 1"):
        break_even_requests(2, 1)


@pytest.mark.parametrize(("call", "refused"), [
    (lambda: cached_prompt_cost(10_000, 500, 0, 3e-6, 1.25, 0.1), "requests must be a number from 1 to"),
    (lambda: cached_prompt_cost(10_000, 500, 1, 3e-6, -1.25, 0.1), "write must be a number from 0 to"),
    (lambda: uncached_prompt_cost(-1, 500, 1, 3e-6), "prefix must be a number from 0 to"),
    (lambda: break_even_requests(-1, 0.1), "write must be a number from 0 to"),
])  # fmt: skip
def test_impossible_prices_and_requests(call: Callable, refused: str) -> None:
    with pytest.raises(CostModelError, match=f"^{refused} .*, got "):
        call()


def test_in_the_long_run_only_reads_and_suffixes_count() -> None:
    share = limit(cached_prompt_cost() / uncached_prompt_cost(), requests, oo)
    assert simplify(share - (prefix * read + suffix) / (prefix + suffix)) == 0
    assert not share.has(write)


def test_a_prefix_below_the_minimum_is_not_cached_and_nobody_says_so() -> None:
    bill = prompt_cache_bill(calls(100), 3.0, minimum=16_000)
    assert (bill.read, bill.written, f"{bill.cost:.2f}") == (0, 0, "3.15")
    assert prompt_cache_cost(10_000, 500, 100, 3.0, minimum=10_001) == (3.15, 3.15)
    assert prompt_cache_cost(10_000, 500, 100, 3.0, minimum=10_000)[1] < 1


def test_an_entry_lives_from_its_last_use() -> None:
    live = 5 * MINUTE
    assert prompt_cache_bill(calls(100, every=live), 3.0, ttl=live).written == 10_000
    late = prompt_cache_bill(calls(100, every=live + 1), 3.0, ttl=live)
    assert (late.read, late.written) == (0, 1_000_000)
    assert late.cost == pytest.approx(3.15 * (1.25 * 10_000 + 500) / 10_500)  # dearer than no cache


def test_a_timestamp_at_the_top_writes_every_time() -> None:
    bill = prompt_cache_bill(calls(100, top=10**6), 3.0)
    assert (bill.read, bill.written) == (0, 1_000_000)
    assert bill.cost > prompt_cache_cost(10_000, 500, 100, 3.0)[0]


def test_a_conversation_reads_what_it_wrote_and_writes_what_is_new() -> None:
    turns = [Call(i, range(1000 * (i + 1))) for i in range(3)]
    bill = prompt_cache_bill(turns, 3.0)
    assert (bill.read, bill.written, bill.plain) == (1000 + 2000, 3000, 0)


def test_what_makes_no_sense_is_refused() -> None:
    for arguments, message in (
        ((-1, 5, 5, 3.0), "prefix must be an integer of at least 0, got -1"),
        ((1, 0.5, 5, 3.0), "suffix must be an integer of at least 0, got 0.5"),
        ((1, 5, 0, 3.0), "requests must be an integer of at least 1, got 0"),
        ((1, 5, 5, -3.0), "price_per_million must be a finite number of at least 0, got -3.0"),
        ((1, 5, 5, 3.0, float("nan")), "write_multiplier must be a finite number of at least 0, got nan"),
        ((1, 5, 5, 3.0, 1, "x"), "read_multiplier must be a finite number of at least 0, got 'x'"),
    ):
        with pytest.raises(CostModelError, match=message):
            prompt_cache_cost(*arguments)
    for settings, message in (
        ({"ttl": float("nan")}, "ttl must be a number of at least 0, got nan"),
        ({"ttl": -1}, "ttl must be a number of at least 0, got -1"),
        ({"minimum": -1}, "minimum must be an integer of at least 0, got -1"),
        ({"minimum": 0.5}, "minimum must be an integer of at least 0, got 0.5"),
        ({"minimum": float("nan")}, "minimum must be an integer of at least 0, got nan"),
        ({"read_multiplier": float("inf")}, "read_multiplier must be a finite number of at least 0, got inf"),
    ):
        with pytest.raises(CostModelError, match=message):
            prompt_cache_bill([Call(0, [1])], 3.0, **settings)
    with pytest.raises(CostModelError, match="time must not go backwards, got 1 after 2"):
        prompt_cache_bill([Call(2, [1]), Call(1, [1])], 3.0)


def test_the_familiar_name_stands_where_it_is_looked_for() -> None:
    from costmodel.lab import prefix_cache

    assert prefix_cache.prompt_cache_cost is prompt_cache_cost
