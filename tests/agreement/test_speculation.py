"""A speculative run in both towers: what target and draft count as they work is what the ledgers say, exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.speculation import CachedDecoder, Filters, ModelDraft, long_run, speculative_generate
from costmodel.lab.speculation import expected_tokens_per_round as lab_tokens
from costmodel.lab.transformer import Decoder
from costmodel.model import Model
from costmodel.passes import ForwardPass
from costmodel.speculation import expected_tokens, limits_of_text, run_passes
from tests.agreement.test_counted_is_symbolic import SWITCHES, WHOLE, pair, shapes


def flops_of(model: Model, passes: list[ForwardPass]) -> int:
    return sum(model.forward(forward).flops for forward in passes)


class Counting(CachedDecoder):
    """Keeps its number of passes where the test can read it."""

    seen: list["Counting"] = []  # noqa: RUF012

    def __init__(self, decoder: Decoder, filters: Filters) -> None:
        super().__init__(decoder, filters)
        self.seen.append(self)


@settings(max_examples=60)
@given(
    target_shape=shapes(), draft_shape=shapes(), switches=SWITCHES, prompt=st.integers(1, 9),
    generated=st.integers(1, 25), guesses=st.integers(0, 5), seed=st.integers(0, 99), hot=st.booleans(),
)  # fmt: skip
def test_a_whole_run(
    target_shape: dict, draft_shape: dict, switches: dict, prompt: int, generated: int, guesses: int, seed: int,
    hot: bool,
) -> None:  # fmt: skip
    target, target_model = pair(target_shape, switches)
    draft, draft_model = pair(draft_shape | {"V": target_shape["V"]}, switches)
    model = CachedDecoder(draft, Filters(float(hot)))
    run = speculative_generate(
        [1] * prompt, target, ModelDraft(model), generated, guesses, np.random.default_rng(seed), temperature=hot
    )
    target_passes, draft_passes = run_passes(prompt, zip(run.drafted, run.accepted, strict=True), **WHOLE)
    assert len(target_passes) == run.rounds
    assert len(draft_passes) == model.passes == sum(run.drafted)
    assert target.work.flops == flops_of(target_model, target_passes)
    assert draft.work.flops == flops_of(draft_model, draft_passes)
    assert target.work.positions == sum(forward.tokens for forward in target_passes)
    assert draft.work.positions == sum(forward.tokens for forward in draft_passes)


def test_the_targets_passes_are_counted_as_they_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    target, draft = TinyDecoder(), TinyDecoder(n_layers=1, d_model=8, seed=1)
    monkeypatch.setattr("costmodel.lab.speculation.models.CachedDecoder", Counting)
    Counting.seen.clear()
    run = speculative_generate([1, 2], target, draft, 30, 3, np.random.default_rng(0))
    assert [model.passes for model in Counting.seen] == [run.rounds, sum(run.drafted)]


@pytest.mark.parametrize("rate", [0, 0.3, 1])
@pytest.mark.parametrize("guesses", [0, 1, 6])
def test_one_estimate_in_both_towers(rate: float, guesses: int) -> None:
    assert lab_tokens(rate, guesses) == pytest.approx(expected_tokens(rate, guesses), rel=1e-15)


@given(size=st.integers(1, 5), guesses=st.integers(0, 6), sharp=st.floats(0.05, 3), seed=st.integers(0, 999))
def test_no_text_leaves_the_limits_of_its_average(size: int, guesses: int, sharp: float, seed: int) -> None:
    """Exact long runs of random tables, from nearly certain to nearly flat, against the limits for α over the text."""
    draws = np.random.default_rng(seed)
    target, draft = (draws.dirichlet(np.full(size, sharp), size) * 0.999 + 0.001 / size for _ in range(2))
    tokens, rate = long_run(target, draft, guesses)
    least, most = limits_of_text(min(rate, 1), guesses)
    assert least - 1e-9 <= tokens <= most + 1e-9


@pytest.mark.parametrize("guesses", [1, 4])
def test_the_limits_are_reached(guesses: int) -> None:
    """Rounds that are all easy or all hard, and hard tokens that fall on the bonus alone."""
    eye = np.eye(guesses + 1)
    ring = np.roll(eye, 1, axis=1)  # token x is followed by x + 1
    wrong = np.where(np.arange(guesses + 1)[:, None] == guesses, eye, ring)  # and the draft fails after the last one
    tokens, rate = long_run(ring, wrong, guesses)
    assert tokens == pytest.approx(guesses + 1) == pytest.approx(1 / (1 - rate))
    stay = np.array([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]])
    tokens, rate = long_run(stay, np.array([[1.0, 0.0], [1.0, 0.0]]), guesses)
    assert tokens == pytest.approx(limits_of_text(rate, guesses)[0], rel=1e-4)
