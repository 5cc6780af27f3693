"""Speculation as algebra: closed forms against other routes, limits, published tables, when it pays."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Max, Rational, diff, limit, simplify

from costmodel import CostModelError, Deployment, accelerator, load, transformer
from costmodel.evaluate import evaluate
from costmodel.layers import Mlp
from costmodel.model import Block, Model
from costmodel.passes import ForwardPass
from costmodel.speculation import (
    Speculation,
    best_gamma_formula,
    draft_ledger,
    expected_tokens,
    ideal_best_gamma,
    ideal_speedup,
    implied_alpha,
    implied_cost,
    most_tokens_of_mixtures,
    run_passes,
    sensitivity,
    verify_ledger,
)
from costmodel.speculation.published import CHEN, LEVIATHAN
from costmodel.symbols import B, S, alpha, cost_ratio, gamma

H100 = accelerator("h100-sxm")
PAIR = Speculation(load("llama-3-70b"), H100.times(4), load("llama-3-8b"))
RATES = st.integers(0, 99).map(lambda x: Fraction(x, 100))


def test_published_tokens_per_pass() -> None:
    assert float(expected_tokens(Fraction(4, 5), 4)) == 3.3616  # R-spec-tokens
    assert expected_tokens(alpha, gamma).subs({alpha: Rational(4, 5), gamma: 4}) == Rational(33616, 10000)


@given(rate=RATES, guesses=st.integers(0, 12))
def test_the_closed_form_is_the_sum(rate: Fraction, guesses: int) -> None:
    exact = expected_tokens(rate, guesses)
    assert exact == (1 - rate ** (guesses + 1)) / (1 - rate)
    assert 1 <= exact <= most_tokens_of_mixtures(rate, guesses) <= guesses + 1
    symbolic = expected_tokens().subs({alpha: Rational(rate.numerator, rate.denominator), gamma: guesses})
    assert symbolic == Rational(Fraction(exact).numerator, Fraction(exact).denominator)


def test_the_ends() -> None:
    assert expected_tokens(1, gamma) == gamma + 1
    assert expected_tokens().subs(alpha, 1) == gamma + 1
    assert limit(expected_tokens(alpha, gamma).args[1][0], alpha, 1) == gamma + 1
    assert expected_tokens(alpha, 0) == 1
    assert expected_tokens(0, gamma) == expected_tokens(0, 5) == 1
    assert ideal_speedup(alpha, 0, cost_ratio) == 1


@pytest.mark.parametrize("guesses", range(6))
def test_sensitivity_is_the_derivative(guesses: int) -> None:
    assert simplify(sensitivity(alpha, guesses) - diff(expected_tokens(alpha, guesses), alpha)) == 0
    assert sensitivity(1, guesses) == guesses * (guesses + 1) // 2 == sensitivity().subs({alpha: 1, gamma: guesses})
    at = {alpha: Rational(3, 5), gamma: guesses}
    assert simplify(sensitivity().subs(at) - sensitivity(Rational(3, 5), guesses)) == 0


@given(rates=st.lists(RATES, min_size=1, max_size=5), guesses=st.integers(0, 8))
def test_mixing_easy_and_hard_rounds_yields_at_least_the_estimate(rates: list, guesses: int) -> None:
    """Jensen, and the chord: both exact in fractions."""
    mean = Fraction(sum(rates), len(rates))
    mixed = Fraction(sum(expected_tokens(rate, guesses) for rate in rates), len(rates))
    assert expected_tokens(mean, guesses) <= mixed <= most_tokens_of_mixtures(mean, guesses)


@settings(max_examples=30)
@given(rate=st.integers(2, 95), cost=st.integers(1, 60))
def test_the_best_gamma_is_beside_the_closed_form(rate: int, cost: int) -> None:
    a, c = rate / 100, cost / 100
    best = ideal_best_gamma(a, c)
    tried = [ideal_speedup(Fraction(rate, 100), n, Fraction(cost, 100)) for n in range(120)]
    if a > c:
        peak = float(best_gamma_formula(a, c))
        assert tried[best] == pytest.approx(float(max(tried)), rel=1e-12)
        assert best in (floor(peak), ceil(peak))
    else:
        assert best == 0
        assert max(tried) == 1


def test_the_closed_form_is_a_stationary_point() -> None:
    speedup = (1 - alpha ** (gamma + 1)) / ((1 - alpha) * (1 + cost_ratio * gamma))
    for a, c in ((0.8, 0.05), (0.6, 0.2), (0.95, 0.01)):
        at = best_gamma_formula(a, c)
        assert abs(diff(speedup, gamma).subs({alpha: a, cost_ratio: c, gamma: at}).evalf()) < 1e-12


def test_what_was_measured_beside_the_estimate() -> None:
    assert [(r.task, r.draft, r.temperature) for r in LEVIATHAN if r.beats_estimate] == [
        ("EnDe", "T5-small", 1), ("CNNDM", "T5-small", 0), ("CNNDM", "T5-small", 1), ("CNNDM", "T5-base", 1)
    ]  # fmt: skip
    assert all(row.speedup < row.ceiling <= row.gamma + 1 for row in LEVIATHAN)
    assert [r.alpha for r in LEVIATHAN if r.speedup > r.most_of_text] == [0.65, 0.53]
    implied = (0.0084, 0.0694, 0.2286, -0.0014, 0.0347, 0.2791, -0.0296, 0.0095, 0.0747, -0.0191, -0.0274, 0.0685)
    assert tuple(round(row.implied_cost, 4) for row in LEVIATHAN) == implied
    assert [round(row.tokens_per_round, 2) for row in CHEN] == [2.83, 3.04, 3.72]
    for row in CHEN:
        assert row.speedup == pytest.approx(14.1 / row.ms_per_token, abs=0.05)  # published to two digits
        assert expected_tokens(implied_alpha(row.tokens_per_round, 4), 4) == pytest.approx(row.tokens_per_round)


def test_verifying_is_one_pass_over_all_drafts() -> None:
    llama = load("llama-3-8b")
    for guesses in (0, 3):
        whole = llama.forward(ForwardPass(2, guesses + 1, 100 + guesses, head="all"))
        assert verify_ledger(llama, 2, 100, guesses).flops == whole.flops
        assert verify_ledger(llama).flops.subs({B: 2, S: 100, gamma: guesses}) == whole.flops
        assert verify_ledger(llama).bytes.subs({B: 2, S: 100, gamma: guesses}) == whole.bytes
    weights = verify_ledger(llama, 1, 100, 4).elements("weight") - verify_ledger(llama, 1, 100, 0).elements("weight")
    assert weights == 4 * 4096  # four more rows of the embedding: the matrices are read once


@settings(max_examples=40)
@given(guesses=st.integers(1, 8), context=st.integers(1, 50), batch=st.integers(1, 4))
def test_drafting_with_a_letter_for_gamma_is_the_sum(guesses: int, context: int, batch: int) -> None:
    small = transformer(V=32, D=8, F=16, N=2, K=1, H=4, L=2)
    steps = [small.decode(batch, context + i) for i in range(guesses)]
    at = {B: batch, S: context, gamma: guesses}
    for kind in ("flops", "bytes"):
        total = sum(getattr(step, kind) for step in steps)
        assert getattr(draft_ledger(small, batch, context, guesses), kind) == total
        assert getattr(draft_ledger(small), kind).subs(at) == total


def test_windows_need_a_number_for_gamma() -> None:
    windowed = load("mistral-7b-v0.1")
    assert draft_ledger(windowed, 1, 5000, 2).flops == sum(windowed.decode(1, 5000 + i).flops for i in range(2))
    with pytest.raises(CostModelError, match="sliding windows; give gamma as a number"):
        draft_ledger(windowed)


def test_speedups_by_each_route() -> None:
    tried = PAIR.speedups(0.8, batch=4, context=1024, at_most=6)
    assert tried == pytest.approx([PAIR.speedup(0.8, batch=4, context=1024, gamma=n) for n in range(7)], rel=1e-12)
    assert tried[0] == 1
    assert PAIR.best_gamma(0.8, batch=4, context=1024, at_most=6) == tried.index(max(tried))
    formula = PAIR.speedup(alpha, batch=B, context=1024, gamma=4)
    assert formula.has(Max)
    assert float(formula.subs({alpha: 0.8, B: 4})) == pytest.approx(tried[4], rel=1e-12)


def test_memory_bound_speculation_nears_the_ideal() -> None:
    c = PAIR.cost_ratio(1, 1024)
    assert c == pytest.approx(load("llama-3-8b").params / load("llama-3-70b").params, rel=0.1)
    assert PAIR.speedup(0.8, batch=1, context=1024, gamma=4) == pytest.approx(ideal_speedup(0.8, 4, c), rel=0.01)


def test_free_guesses_cost_only_the_check() -> None:
    lookup = Speculation(load("llama-3-8b"), H100)
    assert lookup.draft_seconds(1, 512, 4, 0.5) == lookup.cost_ratio(1, 512) == 0
    assert lookup.speedup(0.5, batch=1, context=512, gamma=4) == pytest.approx(expected_tokens(0.5, 4), rel=0.01)


def test_drafts_are_checked_against_the_latents_themselves() -> None:
    pair = Speculation(load("deepseek-v3"), accelerator("h200").times(8))
    found = pair.speedups(0.8, batch=1, context=8192, at_most=4)
    assert [round(times, 2) for times in found] == [1, 1.17, 1.19, 1.16, 1.11]  # expanding them all: 0.51 to 0.67


def test_fewer_bits_for_the_draft_alone_make_it_cheaper() -> None:
    narrow = Speculation(PAIR.target, PAIR.accelerator, PAIR.draft, draft_weights="int4")
    assert narrow.plain_seconds(1, 1024) == PAIR.plain_seconds(1, 1024)
    assert narrow.cost_ratio(1, 1024) < PAIR.cost_ratio(1, 1024) / 3


def test_a_copy_of_the_target_in_fewer_bits_as_its_draft() -> None:
    llama = load("llama-3-8b")
    own = Speculation(llama, H100, llama, draft_weights="int4")
    assert own.plain_seconds(1, 512) == Speculation(llama, H100).plain_seconds(1, 512)
    assert 0.25 < own.cost_ratio(1, 512) < 0.27


@pytest.mark.parametrize(("rate", "guesses"), [(0.8, 4), (0.8, None), (0.5, 2), (0.3, None)])
def test_the_last_batch_that_pays_is_that_of_a_plain_search(rate: float, guesses: int | None) -> None:
    found = PAIR.largest_paying_batch(rate, context=512, gamma=guesses, at_most=6)
    gammas = range(1, 7) if guesses is None else [guesses]
    nearby = range(max(1, found - 3), found + 4)
    paying = [b for b in nearby if max(PAIR.speedup(rate, batch=b, context=512, gamma=n) for n in gammas) > 1]
    assert paying == [b for b in nearby if b <= found]


def test_company_never_makes_guesses_cheaper_here() -> None:
    """The bisection's premise, on this pair: the best speed-up does not rise with the batch."""
    found = [max(PAIR.speedups(0.7, batch=b, context=512, at_most=5)) for b in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)]
    assert found == sorted(found, reverse=True)


def test_a_mixture_may_gain_in_company_alone() -> None:
    mixture = Speculation(load("qwen3-30b-a3b"), H100)
    last = mixture.largest_paying_batch(0.6, context=16, gamma=3)
    pays = [mixture.speedup(0.6, batch=b, context=16, gamma=3) > 1 for b in (1, 8, last, last + 1, 4096)]
    assert pays == [False, True, True, False, False]


def test_long_contexts_can_pay_at_any_batch() -> None:
    """With long contexts decoding waits for the caches, whatever the batch, and a check reads them once."""
    assert PAIR.largest_paying_batch(0.8, context=512, gamma=3) < 400
    assert PAIR.largest_paying_batch(0.8, context=100_000, gamma=3) is None
    assert PAIR.largest_paying_batch(0.02, context=512, gamma=3) == 0


def test_memory_holds_the_caches_of_both_models() -> None:
    """Alone, a model is a Deployment's; with a draft, weights and caches add; without a cache there is no limit."""
    card = accelerator("h100-sxm").times(4)
    target, draft = load("llama-3-70b"), load("llama-3-8b")
    assert Speculation(target, card).largest_batch(8192) == Deployment(target, card).largest_batch(8192)
    pair = Speculation(target, card, draft, draft_weights="int4", cache="fp8")
    held = [pair.largest_batch(8192) + extra for extra in (0, 1)]
    parts = [Deployment(target, card, cache="fp8"), Deployment(draft, card, weights="int4", cache="fp8")]
    assert [sum(d.memory_bytes(b, 8192) for d in parts) <= card.capacity for b in held] == [True, False]
    assert Speculation(target, accelerator("h100-sxm")).largest_batch(8192) == 0
    bare = Model(((Block((Mlp(8, 16),)), 1),), name="bare")  # caches nothing: 384 parameters, 768 bytes
    card = replace(accelerator("h100-sxm"), capacity=2 * 768)
    assert Speculation(bare, card, bare).largest_batch(100) is None
    assert Speculation(bare, replace(card, capacity=2 * 768 - 1), bare).largest_batch(100) == 0


def test_passes_of_a_run() -> None:
    target, draft = run_passes(1, [(0, 0), (0, 0), (3, 3), (2, 1)])
    assert [(p.tokens, p.context) for p in target] == [(1, 1), (1, 2), (4, 6), (3, 9)]
    assert [(p.tokens, p.context) for p in draft] == [(3, 3), (1, 4), (1, 5), (2, 7), (1, 8)]


def test_the_closed_form_over_an_array_that_includes_1() -> None:
    rates = [0.0, 0.5, 0.8, 1.0]
    assert evaluate(expected_tokens(), alpha=rates, gamma=4) == pytest.approx([expected_tokens(x, 4) for x in rates])
    slopes = [sensitivity(x, 3) for x in rates]
    assert evaluate(sensitivity(), alpha=rates, gamma=3) == pytest.approx(slopes)


def test_compiled_over_a_grid() -> None:
    grid = evaluate(ideal_speedup(alpha, 4, cost_ratio), alpha=[0.0, 0.8, 1.0], cost_ratio=0.05)
    assert grid.tolist() == pytest.approx([1 / 1.2, 3.3616 / 1.2, 5 / 1.2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expected_tokens(1.2, 3), "alpha must be a number from 0 to 1, got 1.2"),
        (lambda: expected_tokens(0.5, -1), "gamma must be a whole number"),
        (lambda: expected_tokens(0.5, 2.5), "gamma must be a whole number"),
        (lambda: sensitivity(0.5, gamma), "needs alpha as a symbol"),
        (lambda: ideal_speedup(0.5, 2, -0.1), "cost_ratio must be a number from 0 to .*, got -0.1"),
        (lambda: ideal_best_gamma(1, 0.1), "no best gamma"),
        (lambda: ideal_best_gamma(0.5, 0), "no best gamma"),
        (lambda: implied_alpha(6, 4), "tokens per pass must be between 1 and gamma"),
        (lambda: expected_tokens("half", 3), "alpha must be a number from 0 to 1, got 'half'"),
        (lambda: most_tokens_of_mixtures(0.5, -1), "gamma must be a whole number, at least 0, got -1"),
        (lambda: ideal_speedup(0.5, 2, "c"), "cost_ratio must be a number from 0 to .*, got 'c'"),
        (lambda: best_gamma_formula(1, 0.1), "alpha must be above 0 and below 1 for a best gamma, got 1"),
        (lambda: best_gamma_formula(0.5, 0), "cost_ratio must be a number from 1e-15 to .*, got 0"),
        (lambda: ideal_best_gamma(alpha, 0.1), "alpha must be a number from 0 to 1, got alpha"),
        (lambda: ideal_best_gamma(0.5, -1), "cost_ratio must be a number from 0 to .*, got -1"),
        (lambda: implied_cost(2, 0.5, 0), "gamma must be a whole number, at least 1, got 0"),
        (lambda: implied_cost(0, 0.5, 2), "speedup must be a number from 1e-15 to .*, got 0"),
        (lambda: implied_cost(2, 1.5, 2), "alpha must be a number from 0 to 1, got 1.5"),
        (lambda: implied_alpha(1, 0), "gamma must be an integer of at least 1, got 0"),
        (lambda: implied_alpha("3", 4), "tokens per pass must be between 1 and gamma .* = 5, got '3'"),
        (lambda: verify_ledger(PAIR.target, 1, 10, -1), "gamma must be a whole number, at least 0, got -1"),
        (lambda: verify_ledger(PAIR.target, None, 10, 1), "batch must be positive, got None"),
        (lambda: draft_ledger(PAIR.draft, 1, "10", 1), "context must be a number from 1e-15 to .*, got '10'"),
        (lambda: PAIR.draft_seconds(1, 10, 2, "half"), "alpha must be a number from 0 to 1, got 'half'"),
        (lambda: run_passes(4, [(2.0, 1)]), "drafts of a round must be an integer of at least 0, got 2.0"),
        (lambda: run_passes(4, [(2, "1")]), "accepted drafts must be 0 to the 2 drafted, got '1'"),
        (lambda: run_passes(4, [(2, 3)]), "accepted drafts must be 0 to the 2 drafted, got 3"),
        (lambda: PAIR.draft_seconds(1, 10, gamma), "gamma must be a number where seconds"),
        (lambda: PAIR.speedup(2.0, batch=1, context=8, gamma=1), "alpha must be"),
        (lambda: PAIR.best_gamma(alpha, batch=1, context=8), "alpha must be a number from 0 to 1, got alpha"),
        (lambda: PAIR.speedups(0.5, batch=0, context=8), "batch must be an integer of at least 1, got 0"),
        (lambda: PAIR.speedups(0.5, batch=1, context=8, at_most=-1), "at_most must be an integer of at least 0"),
        (lambda: PAIR.largest_paying_batch(0.5, context=8, at_most=0), "at_most must be an integer of at least 1"),
        (lambda: PAIR.largest_paying_batch(alpha, context=8, gamma=1), "alpha must be a number from 0 to 1, got alpha"),
        (lambda: PAIR.largest_paying_batch(0.5, context=8, limit=0), "limit must be an integer of at least 1, got 0"),
        (lambda: Speculation("llama-3-8b", PAIR.accelerator), "target must be a Model, such as .*, got 'llama-3-8b'"),
        (lambda: Speculation(PAIR.target, "h100-sxm"), "accelerator must be an Accelerator, got 'h100-sxm'"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call()


def test_implied_cost_undoes_the_speedup() -> None:
    assert implied_cost(ideal_speedup(0.7, 5, 0.1), 0.7, 5) == pytest.approx(0.1)
