import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from costmodel.common.errors import CostModelError
from costmodel.lab.sampling import (
    candidates,
    float32_sum,
    greedy,
    greedy_pick_with_summation_order,
    min_p_filter,
    repetition_penalty,
    sample_batch,
    sample_many,
    sample_next,
    temperature_probs,
    top_k_filter,
    top_p_filter,
)

DRAWS = 1_000_000
INF, NAN = float("inf"), float("nan")
ROWS = [[1.0, 2.0], [3.0, 4.0]]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [(0, (1, 0, 0)), (0.5, (0.867, 0.117, 0.016)), (1, (0.665, 0.245, 0.090)), (2, (0.506, 0.307, 0.186))],
)
def test_published_temperatures(temperature: float, expected: tuple) -> None:
    np.testing.assert_array_equal(temperature_probs([2, 1, 0], temperature).round(3), expected)  # R-sampling-t


def test_published_filters() -> None:
    probs = [0.5, 0.3, 0.15, 0.05]
    np.testing.assert_array_equal(top_k_filter(probs, 2).round(3), (0.625, 0.375, 0, 0))  # R-sampling-topk
    np.testing.assert_array_equal(top_p_filter(probs, 0.9).round(3), (0.526, 0.316, 0.158, 0))  # R-sampling-topp


def test_published_figure() -> None:
    kept = [top_p_filter(temperature_probs([3, 2.2, 1.5, 0.5, -0.5], T), 0.9) for T in (0.5, 1, 2)]
    assert [int((p == 0).sum()) for p in kept] == [3, 2, 1]  # R-sampling-fig
    before = [temperature_probs([3, 2.2, 1.5, 0.5, -0.5], T) for T in (0.5, 2)]
    assert [round(100 * p[0]) for p in before] == [79, 38]
    assert round(100 * before[1][-1]) == 7


def test_float_order() -> None:
    assert float32_sum([1e8, 1, -1e8]) == 0  # R-float-order
    assert float32_sum([1e8, -1e8, 1]) == 1
    assert float32_sum([]) == 0
    assert greedy_pick_with_summation_order([1e8, 1, -1e8], 0.5) == "B"
    assert greedy_pick_with_summation_order([1e8, -1e8, 1], 0.5) == "A"
    assert greedy_pick_with_summation_order([0.5], 0.5) == "A"  # a tie goes to the first


# Reported cases: (filter, argument, probabilities, tokens kept)
@pytest.mark.parametrize(
    ("keep", "argument", "probs", "kept"),
    [
        (top_p_filter, 0.75, [0.5, 0.25, 0.125, 0.125], [0, 1]),  # reaches p exactly
        (top_p_filter, 0.8, [0.3, 0.1, 0.1, 0.5], [0, 3]),
        (top_p_filter, 0.9, [0.6, 0.3, 0.1], [0, 1]),  # 0.6 + 0.3 rounds to just below 0.9
        (top_p_filter, 0.9, np.array([0.7, 0.2, 0.1], np.float32), [0, 1]),  # so does float32, by more
        (top_p_filter, 0.5, [5, 3, 2], [0]),  # weights need not sum to 1
        (top_p_filter, 0, [0.2, 0.5, 0.3], [1]),
        (top_p_filter, 0, [0.25] * 4, [0]),
        (top_p_filter, 1, [0.2, 0.5, 0.3], [0, 1, 2]),
        (top_p_filter, 0.5, [0.25] * 4, [0, 1]),
        (top_k_filter, 0, [0.2, 0.5, 0.3], [0, 1, 2]),
        (top_k_filter, -1, [0.2, 0.5, 0.3], [0, 1, 2]),
        (top_k_filter, None, [0.2, 0.5, 0.3], [0, 1, 2]),
        (top_k_filter, 3, [0.2, 0.5, 0.3], [0, 1, 2]),
        (top_k_filter, 9, [0.2, 0.5, 0.3], [0, 1, 2]),
        (top_k_filter, 2, [0.2, 0.4, 0.2, 0.2], [0, 1]),  # of equals the first
        (min_p_filter, 0, [0.2, 0.5, 0.3], [0, 1, 2]),
        (min_p_filter, 1, [0.2, 0.5, 0.3], [1]),
    ],
)
def test_filters_keep(keep: object, argument: float, probs: list, kept: list) -> None:
    left = keep(probs, argument)
    assert np.flatnonzero(left).tolist() == kept
    assert left.sum() == pytest.approx(1, abs=1e-12)


def test_temperature_comes_first() -> None:
    assert candidates([3, 2, 1], 0.5, top_p=0.8)[0].tolist() == [0]
    assert candidates([4, 1, 0], 2, min_p=0.1)[0].tolist() == [0, 1, 2]
    assert candidates([3, 2, 1], 1, top_p=0.8)[0].tolist() == [0, 1]
    assert candidates([4, 1, 0], 1, min_p=0.1)[0].tolist() == [0]


def test_temperatures_at_the_ends() -> None:
    for cold in (0, 1e-300, 5e-324):
        np.testing.assert_array_equal(temperature_probs([1.0, 3.0, 2.0], cold), (0, 1, 0))
    np.testing.assert_array_equal(temperature_probs([2.0, 2.0], 0), (1, 0))  # greedy takes the first
    np.testing.assert_array_equal(temperature_probs([2.0, 2.0], 1e-300), (0.5, 0.5))
    np.testing.assert_allclose(temperature_probs([1.0, 3.0, 2.0], 1e12), [1 / 3] * 3, rtol=1e-11)
    assert [sample_next([1.0, 3.0], rng(), temperature=0) for _ in range(3)] == [1, 1, 1]


def test_minus_infinity_is_never_drawn() -> None:
    logits = [-INF, 0.0, -INF, 0.0]
    np.testing.assert_array_equal(temperature_probs(logits, 1), (0, 0.5, 0, 0.5))
    assert set(sample_many(logits, rng(), 1000, top_k=4).tolist()) == {1, 3}
    assert greedy([-INF, -5.0]) == 1
    assert temperature_probs(np.array([3e38, -3e38], np.float32), 1).tolist() == [1, 0]


@pytest.mark.parametrize("function", [
    greedy,
    lambda x: temperature_probs(x, 1),
    lambda x: temperature_probs(x, 0),
    lambda x: sample_next(x, rng()),
    lambda x: sample_next(x, rng(), temperature=0),
    lambda x: sample_batch([x, x], rng()),
    lambda x: repetition_penalty(x, [0], 1.5),
])  # fmt: skip
@pytest.mark.parametrize(
    ("logits", "said"),
    [
        ([1.0, NAN, 0.0], "NaN"),
        ([1.0, INF], r"\+inf"),
        ([-INF, -INF], "all logits are -inf"),
        ([], "at least one token"),
    ],
)
def test_what_cannot_be_sampled_is_said(function: object, logits: list, said: str) -> None:
    with pytest.raises(CostModelError, match=said):
        function(logits)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: temperature_probs([1.0], -1), "temperature must be a finite number of at least 0, got -1"),
        (lambda: temperature_probs([1.0], NAN), "temperature"),
        (lambda: temperature_probs([1.0], INF), "temperature"),
        (lambda: top_p_filter([1.0], 1.1), "top_p must be between 0 and 1, got 1.1"),
        (lambda: top_p_filter([1.0], NAN), "top_p"),
        (lambda: min_p_filter([1.0], -0.1), "min_p"),
        (lambda: top_k_filter([1.0], 1.5), "top_k must be an integer or None, got 1.5"),
        (lambda: sample_next([1.0], rng(), top_p=2), "top_p"),
        (lambda: top_k_filter([0.5, NAN], 1), "probabilities must be finite"),
        (lambda: top_p_filter([0.5, -0.5], 0.5), "at least 0"),
        (lambda: top_p_filter([0.0, 0.0], 0.5), "all probabilities are 0"),
        (lambda: top_k_filter([], 1), "at least one token"),
        (lambda: repetition_penalty([1.0], [0], 0), "penalty must be a finite number above 0, got 0"),
        (lambda: repetition_penalty([1.0], [1], 2), "previous tokens must be 0 to 0, got 1 to 1"),
        (lambda: repetition_penalty([1.0], [0.5], 2), "previous tokens must be integers, got float64"),
        (lambda: repetition_penalty(ROWS, [0], 2), r"one vector \(V,\), got shape \(2, 2\)"),
        (lambda: greedy(ROWS), r"one vector \(V,\), got shape \(2, 2\)"),
        (lambda: candidates(np.zeros((2, 3))), r"one vector \(V,\), got shape \(2, 3\)"),
        (lambda: candidates(np.zeros((1, 3)), 0), r"one vector \(V,\), got shape \(1, 3\)"),
        (lambda: sample_next(ROWS, rng()), r"one vector \(V,\), got shape \(2, 2\)"),
        (lambda: sample_many(ROWS, rng(), 3), r"one vector \(V,\), got shape \(2, 2\)"),
        (lambda: sample_many([1.0, 2.0], rng(), -1), "n must be an integer of at least 0, got -1"),
        (lambda: sample_many([1.0, 2.0], rng(), 1.5), "n must be an integer of at least 0, got 1.5"),
        (lambda: sample_batch([ROWS], rng()), r"logits must be \(B, V\) or \(V,\), got shape \(1, 2, 2\)"),
    ],
)
def test_settings_without_an_answer_are_refused(call: object, said: str) -> None:
    with pytest.raises(CostModelError, match=said):
        call()


def test_nothing_is_drawn_from_and_filtered_to_nothing() -> None:
    assert sample_many([1.0, 2.0], rng(), 0).tolist() == []
    assert sample_batch(np.zeros((0, 3)), rng()).tolist() == []
    for keep, argument in ((top_k_filter, 2), (top_p_filter, 0.5), (min_p_filter, 0.5)):
        assert keep(np.zeros((0, 3)), argument).shape == (0, 3)


def test_repetition_penalty() -> None:
    np.testing.assert_array_equal(repetition_penalty([2.0, -1.0, 0.0, 3.0], [0, 0, 1, 2], 2), (1, -2, 0, 3))
    logits = np.array([1.0, 2.0])
    np.testing.assert_array_equal(repetition_penalty(logits, [], 5), logits)
    np.testing.assert_array_equal(repetition_penalty(logits, [0, 1], 1), logits)
    assert repetition_penalty(logits, [1], 4) is not logits
    assert logits[1] == 2


logit_rows = arrays(np.float64, st.integers(1, 40), elements=st.one_of(st.floats(-30, 30), st.sampled_from([0.0, 1.0])))


@given(logit_rows, st.floats(0.05, 5), st.integers(-1, 45), st.floats(0, 1))
def test_one_draw_is_the_composition_of_the_filters(logits: np.ndarray, T: float, k: int, p: float) -> None:
    composed = top_p_filter(top_k_filter(temperature_probs(logits, T), k), p)
    ids, probs = candidates(logits, T, k, p)
    spread = np.zeros(len(logits))
    spread[ids] = probs
    np.testing.assert_allclose(spread, composed, rtol=1e-9, atol=1e-12)


@given(logit_rows, st.floats(0.05, 5), st.integers(1, 45), st.floats(0, 1))
def test_filters_keep_the_most_likely_and_no_more_than_asked(logits: np.ndarray, T: float, k: int, p: float) -> None:
    probs = temperature_probs(logits, T)
    few, nucleus = top_k_filter(probs, k), top_p_filter(probs, p)
    assert np.count_nonzero(few) <= k
    for kept in (few, nucleus, min_p_filter(probs, p)):
        assert kept.sum() == pytest.approx(1, abs=1e-9)
        assert kept[np.argmax(probs)] > 0
        left_out = probs[kept == 0]
        assert not left_out.size or left_out.max() <= probs[kept > 0].min()
    in_set = probs[nucleus > 0]
    assert in_set.sum() >= p - 1e-9
    assert in_set.sum() - in_set.min() <= p or len(in_set) == 1 or p == 1  # without its least, p is not reached


@given(arrays(np.float64, (3, 7), elements=st.floats(-9, 9)), st.integers(1, 8), st.floats(0, 1))
def test_rows_of_a_batch_are_filtered_one_by_one(logits: np.ndarray, k: int, p: float) -> None:
    probs = temperature_probs(logits, 0.7)
    for keep, argument in ((top_k_filter, k), (top_p_filter, p), (min_p_filter, p)):
        together = keep(probs, argument)
        np.testing.assert_array_equal(together, [keep(row, argument) for row in probs])


def test_partial_selection_equals_a_full_sort_of_a_large_vocabulary() -> None:
    logits = rng(1).normal(0, 2, 128_256).round(2).astype(np.float32)  # rounded: many ties
    for k, p in ((50, 0.9), (1000, 0.5), (None, 0.9), (None, 0.9999), (200_000, 0.3)):
        order = np.argsort(-logits, kind="stable")[:k]
        probs = temperature_probs(logits[order], 0.8)
        last = int(np.argmax(np.cumsum(probs) >= p - 1e-12))
        assert candidates(logits, 0.8, k, p)[0].tolist() == sorted(order[: last + 1].tolist())


def chi_square(drawn: np.ndarray, probs: np.ndarray) -> float:
    """χ² of the counts, standardised: (χ² - df)/√(2·df)."""
    expected = probs * len(drawn)
    counts = np.bincount(drawn, minlength=len(probs))
    assert not counts[probs == 0].any()
    seen = probs > 0
    freedom = seen.sum() - 1
    statistic = ((counts[seen] - expected[seen]) ** 2 / expected[seen]).sum()
    return (statistic - freedom) / np.sqrt(2 * freedom)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 2.0, "top_k": 5},
        {"top_p": 0.9},
        {"temperature": 1.5, "top_k": 8, "top_p": 0.95},
        {"min_p": 0.1},
    ],
    ids=str,
)
def test_draws_follow_the_distribution(settings: dict) -> None:
    """A million draws, seeded; |standardised χ²| stays below 4 (about 1 in 10,000 seeds would not)."""
    logits = rng(2).normal(0, 1.5, 12)
    ids, probs = candidates(logits, **settings)
    expected = np.zeros(12)
    expected[ids] = probs
    drawn = sample_many(logits, rng(3), DRAWS, **settings)
    assert abs(chi_square(drawn, expected)) < 4


def test_the_test_can_fail() -> None:
    """Draws from a distribution a hundredth away are told apart."""
    probs = temperature_probs([1.0, 0.5, 0.0], 1)
    drawn = sample_many([1.0, 0.51, 0.0], rng(4), DRAWS)
    assert chi_square(drawn, probs) > 4


def test_one_by_one_follows_it_too() -> None:
    generator, logits = rng(5), np.array([1.0, 0.0, -1.0])
    drawn = np.array([sample_next(logits, generator) for _ in range(20_000)])
    assert abs(chi_square(drawn, temperature_probs(logits, 1))) < 4


def test_batches_draw_for_every_row() -> None:
    logits = np.tile([[2.0, 0.0], [0.0, 2.0]], (5_000, 1))
    drawn = sample_batch(logits, rng(6))
    assert abs(chi_square(drawn[::2], temperature_probs([2.0, 0.0], 1))) < 4
    assert abs(chi_square(drawn[1::2], temperature_probs([0.0, 2.0], 1))) < 4


def test_the_same_seed_draws_the_same() -> None:
    logits = rng(7).normal(size=100)
    assert sample_many(logits, rng(8), 9).tolist() == sample_many(logits, rng(8), 9).tolist()
    assert sample_next(logits, rng(8)) == sample_many(logits, rng(8), 1)[0]
