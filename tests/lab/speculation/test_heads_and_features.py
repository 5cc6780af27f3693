"""Drafts made of the target itself: heads that look ahead, features continued; both trained here, both exact."""

from itertools import product

import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.speculation import (
    FeatureDraft,
    MedusaHeads,
    medusa_generate,
    speculative_batch,
    speculative_generate,
    tree_nodes,
    tree_paths,
)
from costmodel.lab.speculation.regression import Regression
from tests.lab.speculation.test_exactness import assert_fits, counted, decoder_probs

TARGET = TinyDecoder(vocab=8, max_len=128)
TEXTS = [TARGET.generate([token], 40).tokens for token in range(8)]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def features() -> FeatureDraft:
    return FeatureDraft(TARGET, TEXTS)


@pytest.fixture(scope="module")
def heads() -> MedusaHeads:
    return MedusaHeads(TARGET, TEXTS, 3)


@pytest.mark.parametrize("prompt", [[1], [2, 3, 4], [7, 7, 0, 1, 5]])
def test_greedy_output_is_the_targets_own(features: FeatureDraft, heads: MedusaHeads, prompt: list[int]) -> None:
    plain = TARGET.generate(prompt, 50).tokens
    chained = speculative_generate(prompt, TARGET, features, 50, 4, rng(), temperature=0)
    branched = medusa_generate(prompt, TARGET, heads, 50, (3, 2, 1), rng(), temperature=0)
    assert chained.tokens == branched.tokens == plain
    for run in (chained, branched):
        assert sum(run.accepted) + run.rounds == 50
        assert run.tokens_per_pass > 1.5


def test_features_in_a_batch(features: FeatureDraft) -> None:
    prompts = [[1], [2, 3, 4], [5, 6]]
    together = speculative_batch(prompts, TARGET, features, 20, 3, rng(1))
    for prompt, child, run in zip(prompts, rng(1).spawn(3), together, strict=True):
        assert run == speculative_generate(prompt, TARGET, features, 20, 3, child)


def test_both_give_the_targets_sequences() -> None:
    """χ² on whole sequences of three tokens, as in test_exactness."""
    small, n = TinyDecoder(vocab=4, seed=1), 1_500
    texts = [small.generate([token], 30).tokens for token in range(4)]
    probs, draws = decoder_probs(small, [1, 2], 3, temperature=0.8), rng(2)
    chained = speculative_batch(
        [[1, 2]] * n, small, FeatureDraft(small, texts, width=32), 3, 2, rng(4), temperature=0.8
    )
    assert_fits(counted(np.array([run.new_tokens for run in chained]), 4), probs)
    heads = MedusaHeads(small, texts, 2, width=32)
    branched = [medusa_generate([1, 2], small, heads, 3, (2, 2), draws, temperature=0.8) for _ in range(n)]
    assert_fits(counted(np.array([run.new_tokens for run in branched]), 4), probs)


def test_a_wider_tree_accepts_no_less(heads: MedusaHeads) -> None:
    narrow, wide = (
        [medusa_generate([token], TARGET, heads, 60, sizes, rng(), temperature=0).rounds for token in range(8)]
        for sizes in ((1, 1, 1), (8, 8, 1))
    )
    assert sum(wide) < sum(narrow)


def test_a_tree_of_all_tokens_accepts_everything() -> None:
    tiny = TinyDecoder(vocab=3, max_len=64)
    heads = MedusaHeads(tiny, [list(path) for path in product(range(3), repeat=4)], 1, width=4)
    run = medusa_generate([1], tiny, heads, 21, (3,), rng(5))
    assert run.accepted == [0] + [1] * 10  # the first pass has no features yet


def test_rows_of_a_pass_are_paths_and_a_mask_would_run_nodes(heads: MedusaHeads) -> None:
    paths = tree_paths([[1, 2, 3], [4, 5]])
    assert len(paths) == 6
    assert (tree_nodes(paths), sum(1 + len(path) for path in paths)) == (10, 18)
    assert tree_nodes([()]) == 1
    tiny = TinyDecoder(vocab=8, max_len=128)
    tiny.weights.memory[...] = TARGET.weights.memory
    run = medusa_generate([1], tiny, heads, 3, (3, 2), rng(), temperature=0)
    depths = [6 * 3 if drafted == 2 else 3 * 2 if drafted else 1 for drafted in run.drafted]
    assert tiny.work.positions == sum(depths)


def test_what_cannot_be() -> None:
    other = FeatureDraft(TinyDecoder(vocab=8), TEXTS, width=4)
    with pytest.raises(CostModelError, match="only beside the decoder that it was trained on"):
        speculative_generate([1], TARGET, other, 5, 2, rng())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": (2, 2, 2, 2)}, "there are 3 heads for 4 depths"),
        ({"sizes": (2, 2, 2, 2), "n_tokens": 1}, "there are 3 heads for 4 depths"),  # of which none would be used
        ({"sizes": (2, 0)}, "branches at a depth must be an integer of at least 1, got 0"),
        ({"sizes": (2, -1)}, "branches at a depth must be an integer of at least 1, got -1"),
        ({"prompt": []}, "prompt is empty"),
        ({"prompt": [8]}, "token 8 is outside the vocabulary; ids are 0 to 7"),
        ({"prompt": [0.5]}, "non-empty sequence of integers"),
        ({"n_tokens": -1}, "n_tokens must be a whole number of at least 0, got -1"),
        ({"n_tokens": 129}, "1 prompt tokens and 129 new ones need 129 positions; max_len is 128"),
        ({"temperature": -1}, "temperature must be a finite number of at least 0, got -1"),
        ({"decoder": TinyDecoder(vocab=8, d_model=8)}, r"heads of D, V = \(16, 8\) do not fit a decoder of \(8, 8\)"),
        ({"decoder": TinyDecoder(vocab=9)}, r"heads of D, V = \(16, 8\) do not fit a decoder of \(16, 9\)"),
    ],
)
def test_trees_that_cannot_be_are_named_before_any_work(heads: MedusaHeads, change: dict, message: str) -> None:
    given = {"prompt": [1], "decoder": TARGET, "heads": heads, "n_tokens": 9, "sizes": (2, 2), "rng": rng()} | change
    before = given["decoder"].work.positions
    with pytest.raises(CostModelError, match=message):
        medusa_generate(**given)
    assert given["decoder"].work.positions == before


def test_a_tree_up_to_the_last_position(heads: MedusaHeads) -> None:
    run = medusa_generate([1], TARGET, heads, 128, (2, 2), rng(), temperature=0)
    assert run.tokens == TARGET.generate([1], 128).tokens


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MedusaHeads(TARGET, [], 2), "one text at least must have 4 tokens, the longest of 0 has 0"),
        (
            lambda: MedusaHeads(TARGET, [[1, 2, 3], [1]], 2),
            "one text at least must have 4 tokens, the longest of 2 has 3",
        ),
        (lambda: MedusaHeads(TARGET, TEXTS, -1), "n_heads must be a whole number of at least 0, got -1"),
        (lambda: MedusaHeads(TARGET, [[1, 8, 1]], 1), "token 8 is outside the vocabulary"),
        (
            lambda: MedusaHeads(TARGET, TEXTS, 1, width=4).candidates(np.zeros(16), (2, 2)),
            "there are 1 heads for 2 depths",
        ),
        (lambda: FeatureDraft(TARGET, []), "one text at least must have 2 tokens, the longest of 0 has 0"),
        (lambda: FeatureDraft(TARGET, [[1], [2]]), "one text at least must have 2 tokens, the longest of 2 has 1"),
        (lambda: FeatureDraft(TARGET, TEXTS, width=-1), "width must be an integer of at least 0, got -1"),
        (lambda: FeatureDraft(TARGET, TEXTS, penalty=-1), "penalty must be a finite number of at least 0, got -1"),
        (lambda: Regression(np.ones((3, 1)), np.ones(3), penalty=0), "penalty must be larger where features repeat"),
    ],
)
def test_what_cannot_be_trained_is_named(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call()


@pytest.mark.parametrize(("inputs", "outputs"), [(3, 2), (0, 0)])
def test_a_regression_needs_an_output_for_each_input(inputs: int, outputs: int) -> None:
    with pytest.raises(CostModelError, match=f"as many inputs as outputs, got {inputs} and {outputs}"):
        Regression(np.zeros((inputs, 1)), np.zeros(outputs))
