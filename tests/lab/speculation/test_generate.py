"""Whole runs: greedy output is the target's own, batches, stops, caches rolled back, what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.sampling import sample_next
from costmodel.lab.speculation import (
    CachedDecoder,
    Filters,
    LookupDraft,
    ModelDraft,
    TableModel,
    bigram_table,
    speculative_batch,
    speculative_generate,
    speculative_round,
)

TARGET = TinyDecoder(max_len=128)
DRAFTS = {
    "itself": TARGET,
    "a smaller decoder": TinyDecoder(max_len=128, d_model=8, n_layers=1, seed=3),
    "a bigram table": bigram_table(TARGET.generate([1], 60).tokens, 16),
    "prompt lookup": LookupDraft(),
}


EYES = ModelDraft(TableModel(np.eye(3), Filters()))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", DRAFTS)
@settings(max_examples=15)
@given(
    prompt=st.lists(st.integers(0, 15), min_size=1, max_size=8), n_tokens=st.integers(0, 40), gamma=st.integers(0, 6)
)
def test_greedy_output_is_the_targets_own(name: str, prompt: list[int], n_tokens: int, gamma: int) -> None:
    run = speculative_generate(prompt, TARGET, DRAFTS[name], n_tokens, gamma, rng(), temperature=0)
    assert run.tokens == TARGET.generate(prompt, n_tokens).tokens
    assert run.new_tokens == run.tokens[len(prompt) :]
    assert sum(run.accepted) + run.rounds == n_tokens
    assert all(accepted <= drafted <= gamma for drafted, accepted in zip(run.drafted, run.accepted, strict=True))


def test_the_target_as_its_own_draft_passes_always() -> None:
    run = speculative_generate([1, 2], TARGET, TARGET, 40, 4, rng(), temperature=0)
    assert run.drafted == run.accepted == [4] * 8
    assert run.tokens_per_pass == 5
    assert run.acceptance == 1


def test_gamma_zero_is_plain_decoding_draw_for_draw() -> None:
    run = speculative_generate([1, 2], TARGET, DRAFTS["a smaller decoder"], 20, 0, rng(7), temperature=0.8, top_k=5)
    draws = rng(7)
    plain = TARGET.generate([1, 2], 20, choose=lambda logits: sample_next(logits, draws, 0.8, 5))
    assert run.rounds == 20
    assert run.acceptance == 0
    assert run.tokens == plain.tokens


@pytest.mark.parametrize("name", DRAFTS)
def test_company_changes_nothing(name: str) -> None:
    prompts = [[1], [2, 3, 4], [5, 6, 5, 6, 5]]
    together = speculative_batch(prompts, TARGET, DRAFTS[name], 30, 3, rng(5), temperature=0.9)
    for prompt, child, run in zip(prompts, rng(5).spawn(3), together, strict=True):
        alone = speculative_generate(prompt, TARGET, DRAFTS[name], 30, 3, child, temperature=0.9)
        assert run == alone


def test_a_batch_shares_its_passes() -> None:
    before = TARGET.work.positions
    target = CachedDecoder(TARGET, Filters())
    target.after({0: ([1, 2, 3], 2), 1: ([4], 1)})
    assert target.passes == 1
    assert TARGET.work.positions - before == 4


def test_caches_are_rolled_back_to_what_holds() -> None:
    model = CachedDecoder(TARGET, Filters())
    model.after({0: ([1, 2, 3, 4], 3)})
    before = TARGET.work.positions
    rows = model.after({0: ([1, 2, 9], 1)})[0]
    assert TARGET.work.positions - before == 1  # 3 and 4 forgotten, 9 run
    np.testing.assert_allclose(rows, Filters().probs(TARGET.forward_full([1, 2, 9])[-1:]), rtol=0, atol=1e-12)


def test_it_stops_where_told() -> None:
    whole = TARGET.generate([1, 2], 30).new_tokens
    stop = whole[7]
    run = speculative_generate([1, 2], TARGET, TARGET, 30, 4, rng(), temperature=0, stop=[stop])
    assert run.new_tokens == TARGET.generate([1, 2], 30, stop=[stop]).new_tokens
    assert sum(run.accepted) <= len(run.new_tokens)


def test_tables_take_the_filters_too() -> None:
    table = np.array([[0.6, 0.4, 0.0], [0.1, 0.2, 0.7], [0.0, 1.0, 0.0]])
    run = speculative_generate(0, table, table, 6, 2, rng(), temperature=0)
    assert run.tokens == [0] * 7
    run = speculative_generate(1, table, np.full((3, 3), 1 / 3), 3, 2, rng(), top_k=1)
    assert run.tokens == [1, 2, 1, 2]


def test_a_round_yields_one_to_all() -> None:
    lengths = {len(speculative_round([1, 2], TARGET, DRAFTS["a smaller decoder"], 3, rng(seed))) for seed in range(40)}
    assert lengths <= {1, 2, 3, 4}
    assert len(lengths) > 1
    assert len(speculative_round(1, TARGET, TARGET, 3, rng())) == 4  # p == q: every draft passes


def test_up_to_the_last_position() -> None:
    short = TinyDecoder(max_len=20)
    run = speculative_generate([1], short, short, 20, 5, rng(), temperature=0)
    assert run.tokens == short.generate([1], 20).tokens
    with pytest.raises(CostModelError, match="1 prompt tokens and 21 new ones need 21 positions; max_len is 20"):
        speculative_generate([1], TARGET, short, 21, 5, rng())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: speculative_generate([], TARGET, TARGET, 3, 2, rng()), "prompt is empty"),
        (lambda: speculative_generate([1], TARGET, TARGET, -1, 2, rng()), "n_tokens must be a whole number"),
        (lambda: speculative_generate([1], TARGET, TARGET, 3, -2, rng()), "n_draft must be a whole number"),
        (lambda: speculative_generate([1], TARGET, np.eye(3), 3, 2, rng()), "share a vocabulary, got 16 and 3"),
        (lambda: speculative_generate([1], np.ones((2, 3)) / 3, np.eye(3), 3, 2, rng()), "must be V x V"),
        (lambda: speculative_generate([1], np.eye(3), np.ones((3, 3)), 3, 2, rng()), "must sum to 1"),
        (lambda: speculative_generate([1], TARGET, TARGET, 3, 2, rng(), temperature=-1), "temperature must be"),
        (lambda: speculative_generate([1], TARGET, TARGET, 3, 2, rng(), top_k=1.5), "top_k must be an integer or None"),
        (lambda: speculative_generate([1], TARGET, TARGET, 0, 2, rng(), min_p=2), "min_p must be between 0 and 1"),
        (lambda: speculative_generate([1], TARGET, EYES, 3, 2, rng()), "share a vocabulary, got 16 and 3"),
        (lambda: speculative_generate(3, np.eye(3), np.eye(3), 3, 2, rng()), "token 3 is outside the vocabulary"),
        (lambda: speculative_generate([0, -1], np.eye(3), np.eye(3), 3, 2, rng()), "token -1 is outside"),
        (lambda: speculative_generate([16], TARGET, TARGET, 0, 2, rng()), "token 16 is outside the vocabulary"),
        (lambda: speculative_generate([1.5], TARGET, TARGET, 3, 2, rng()), "non-empty sequence of integers"),
        (lambda: speculative_generate(1.5, TARGET, TARGET, 3, 2, rng()), "non-empty sequence of integers"),
        (lambda: speculative_batch([[1], [3]], np.eye(3), np.eye(3), 3, 2, rng()), "token 3 is outside"),
        (lambda: speculative_round(3, np.eye(3), np.eye(3), 2, rng()), "token 3 is outside the vocabulary"),
        (lambda: LookupDraft(2, 3), "an ending must have 1 to longest tokens"),
        (lambda: LookupDraft(0, 0), "longest must be an integer of at least 1, got 0"),
        (lambda: LookupDraft(2.5), "longest must be an integer of at least 1, got 2.5"),
        (lambda: bigram_table([0, 1], 2, smoothing=0), "smoothing must be a finite number above 0, got 0"),
        (lambda: bigram_table([0, 1], 2, smoothing=np.inf), "smoothing must be a finite number above 0, got inf"),
        (lambda: bigram_table([0, 2], 2), "token 2 is outside the vocabulary; ids are 0 to 1"),
        (lambda: bigram_table([0, -1], 2), "token -1 is outside the vocabulary"),
        (lambda: bigram_table([], 2), "tokens must be a non-empty sequence of integers"),
        (lambda: bigram_table([0], 0), "vocab must be an integer of at least 1, got 0"),
    ],
)
def test_bad_input_is_named_before_any_work(call: object, message: str) -> None:
    before = TARGET.work.positions
    with pytest.raises(CostModelError, match=message):
        call()
    assert TARGET.work.positions == before


def test_a_draft_that_knows_nobody_says_nothing() -> None:
    assert EYES.propose({}, {}, {}) == {}


def test_lookup_prefers_the_longest_and_latest_ending() -> None:
    guess = LookupDraft(3).guess
    assert guess([1, 2, 3, 7, 9, 2, 3, 8, 1, 2, 3], 2) == [7, 9]  # three tokens match, though two match later
    assert guess([1, 5, 1, 6, 1], 3) == [6, 1]  # the later of two
    assert guess([1, 2, 3], 4) == []
    assert guess([1], 4) == []
    assert guess([4, 4, 4, 4], 2) == [4]
