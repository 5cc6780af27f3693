"""The rule itself: published numbers, reported cases, and every edge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.common.errors import CostModelError
from costmodel.lab.speculation import (
    acceptance_rate,
    expected_tokens_per_round,
    keep_probabilities,
    residual,
    verify,
)

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4])


class Coins:
    """Uniform numbers as given."""

    def __init__(self, *values: float) -> None:
        self.values = list(values)

    def random(self) -> float:
        return self.values.pop(0)


@st.composite
def distributions(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """p and q over one vocabulary, zeros and equal and disjoint ones among them."""
    size = draw(st.integers(1, 6))
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    p, q = (np.array(draw(weights), float) for _ in range(2))
    return p / p.sum(), q / q.sum()


def test_published_numbers() -> None:
    np.testing.assert_array_equal(keep_probabilities(P, Q), [1, 1, 0.5])  # R-spec-alpha
    assert acceptance_rate(P, Q) == pytest.approx(0.8, abs=1e-15)
    assert round(expected_tokens_per_round(0.8, 4), 4) == 3.3616  # R-spec-tokens
    np.testing.assert_array_equal(residual(P, Q), [1, 0, 0])


@given(pair=distributions())
def test_what_comes_out_is_p_as_algebra(pair: tuple) -> None:
    p, q = pair
    out = q * keep_probabilities(p, q) + (1 - acceptance_rate(p, q)) * residual(p, q)
    np.testing.assert_allclose(out, p, rtol=0, atol=1e-14)
    assert acceptance_rate(p, q) == pytest.approx(1 - np.abs(p - q).sum() / 2, abs=1e-14)
    assert acceptance_rate(p, q) == acceptance_rate(q, p)
    assert not np.isnan(residual(p, q)).any()


def test_a_coin_of_zero_accepts_nothing_that_the_target_forbids() -> None:
    p, q = np.array([[0, 1], [0.5, 0.5]]), np.array([[1.0, 0.0]])
    assert verify([0], p, q, Coins(0.0, 0.0)) == [1]  # sglang 35771: 0 <= 0 would accept
    with pytest.raises(CostModelError, match=r"drafted token 1 has probability 0\.0 in the draft"):
        verify([1], p, q, Coins(0.0, 0.0))


def test_equal_after_rounding_replaces_from_the_target() -> None:
    p, q = np.array([0.1 + 0.2, 0.7]), np.array([0.3, 0.7])
    assert p[0] > q[0]
    np.testing.assert_array_equal(residual(p, q), p)
    forced = Coins(1.0, 0.5)  # 1·q < p fails: a rejection that only rounding can make
    assert verify([1], np.array([p, p]), q[np.newaxis], forced) == [1]
    assert forced.values == []  # the replacement was drawn, and from p: 0.5 is beyond 0.3


def test_disjoint_supports_never_accept() -> None:
    p, q = np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.5, 0.0])
    assert acceptance_rate(p, q) == 0
    np.testing.assert_array_equal(residual(p, q), p)


def test_each_verdict() -> None:
    p, q = np.tile(P, (3, 1)), np.tile(Q, (2, 1))
    assert verify([2, 0], p, q, Coins(0.49, 0.99, 0.0)) == [2, 0, 0]  # 0.49 < 0.5, then a sure one, then the bonus
    assert verify([2, 0], p, q, Coins(0.51, 0.9)) == [0]  # only token 0 has more in p than in q
    assert verify([], p[:1], q[:0], Coins(0.6)) == [1]  # γ = 0: the target alone


def test_a_certain_draft_passes_as_often_as_the_target_says_it() -> None:
    assert verify([1], np.array([P, P]), None, Coins(0.29, 0.0)) == [1, 0]
    assert verify([1], np.array([P, P]), None, Coins(0.31, 0.99)) == [2]  # never token 1 again


@pytest.mark.parametrize("gamma", [0, 1, 7])
def test_tokens_per_round_at_the_ends(gamma: int) -> None:
    assert expected_tokens_per_round(1, gamma) == gamma + 1
    assert expected_tokens_per_round(0, gamma) == 1
    rates = np.linspace(0, 0.99, 9)
    closed = (1 - rates ** (gamma + 1)) / (1 - rates)
    np.testing.assert_allclose(expected_tokens_per_round(rates, gamma), closed, rtol=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: acceptance_rate([0.5, 0.6], [1, 0]), "each distribution of p must sum to 1, got 1.1 to 1.1"),
        (lambda: acceptance_rate([0.5, 0.5], [-1, 2]), "q must hold finite probabilities of at least 0"),
        (lambda: acceptance_rate([np.nan, 1], [0.5, 0.5]), "p must hold finite"),
        (lambda: acceptance_rate([1.0], [0.5, 0.5]), "same shape"),
        (lambda: acceptance_rate([], []), "at least one token"),
        (lambda: expected_tokens_per_round(1.1, 2), "alpha must be between 0 and 1, got 1.1"),
        (lambda: expected_tokens_per_round(float("nan"), 2), "alpha must be"),
        (lambda: expected_tokens_per_round(0.5, -1), "n_draft must be a whole number of at least 0, got -1"),
        (lambda: expected_tokens_per_round(0.5, 1.5), "n_draft must be a whole number"),
        (lambda: verify([0], np.array([P]), None, Coins()), "1 drafts need 2 target distributions"),
        (lambda: verify([3], np.array([P, P]), None, Coins()), "token 3 is outside the vocabulary; ids are 0 to 2"),
        (lambda: verify([-1], np.array([P, P]), np.array([Q]), Coins()), "token -1 is outside the vocabulary"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call()
