from collections import Counter
from itertools import pairwise, product
from math import isclose, log, prod, sqrt

import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.language import (
    IDS,
    NOUNS,
    RULES,
    VOCABULARY,
    entropy,
    entropy_rate,
    mean_length,
    sample,
    token_ids,
    words,
)  # fmt: skip


def sentences(part: str = "sentence") -> dict[tuple[str, ...], list[float]]:
    """Every text that a part can become, with the probability of each way to become it."""
    if part not in RULES:
        return {(part,): [1.0]}
    texts: dict[tuple[str, ...], list[float]] = {}
    for p, parts in RULES[part]:
        for choice in product(*(sentences(inner).items() for inner in parts)):
            text = tuple(word for words_, _ in choice for word in words_)
            ways = [p * prod(combination) for combination in product(*(ways for _, ways in choice))]
            texts.setdefault(text, []).extend(ways)
    return texts


def test_probabilities_sum_to_one_and_words_are_words() -> None:
    for choices in RULES.values():
        assert isclose(sum(p for p, _ in choices), 1, abs_tol=1e-12)
    said = {name for choices in RULES.values() for _, parts in choices for name in parts if name not in RULES}
    assert said == set(VOCABULARY)
    assert len(VOCABULARY) == len(set(VOCABULARY)) == 32


@pytest.mark.parametrize("part", ["aside 1 2", "act 0 3", "more 1 0", "anyone", "animal 0 1"])
def test_entropy_is_that_of_all_texts(part: str) -> None:
    texts = sentences(part)
    probabilities = [p for ways in texts.values() for p in ways]
    assert all(len(ways) == 1 for ways in texts.values())  # one parse each: the chain rule holds
    assert entropy(part) == pytest.approx(-sum(p * log(p) for p in probabilities), rel=1e-12)
    assert mean_length(part) == pytest.approx(sum(len(text) * ways[0] for text, ways in texts.items()), rel=1e-12)


def test_sentences_are_as_frequent_as_their_probability() -> None:
    ids = sample(400_000, seed=1)
    ends = np.flatnonzero(ids == IDS["."])
    said = Counter(tuple(ids[a + 1 : b].tolist()) for a, b in pairwise([-1, *ends.tolist()]))
    n = len(ends)
    # the animals sleep: subject 1/8, no adjective .6, no aside .6, no object .5, no never .8, no more .7
    for text, p in {"the cats sleep": 0.6 * 0.7, "many dogs run": 0.4 * 0.7, "the bird sings": 0.5 * 0.8}.items():
        p *= 0.6 * 0.6 * 0.5 * 0.8 * 0.7 / 8
        assert abs(said[tuple(token_ids(text))] / n - p) < 4 * sqrt(p / n)  # four deviations
    assert len(ids) / n == pytest.approx(mean_length(), rel=0.01)


def test_every_pronoun_agrees_with_its_subject() -> None:
    number = {form: n for pair in NOUNS for n, form in enumerate(pair)}
    for sentence in words(sample(50_000, seed=2)).split(" . ")[:-1]:
        subject = next(word for word in sentence.split() if word in number)
        if " and " in sentence:
            assert ("they" in sentence.split()) == bool(number[subject])


def test_the_same_seed_is_the_same_text_and_a_longer_one_continues_it() -> None:
    np.testing.assert_array_equal(sample(500, 3), sample(900, 3)[:500])
    assert not np.array_equal(sample(500, 3), sample(500, 4))
    assert token_ids(words(sample(40))) == sample(40).tolist()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([2, 99], "token 99 is outside the vocabulary; ids are 0 to 31"),
        ([-1], "token -1 is outside the vocabulary; ids are 0 to 31"),
        ([1.0], "tokens must be a non-empty sequence of integers"),
        ([[1, 2], [3]], r"tokens must be a non-empty sequence of integers, got \[\[1, 2\], \[3\]\]"),
    ],
)
def test_ids_without_a_word_are_refused(ids: list, message: str) -> None:
    assert words([]) == ""
    with pytest.raises(CostModelError, match=message):
        words(ids)


def test_refusals() -> None:
    with pytest.raises(CostModelError, match="no word 'elephant'"):
        token_ids("the elephant")
    for wrong in (0, 2.5):
        with pytest.raises(CostModelError, match=f"n_tokens must be an integer of at least 1, got {wrong}"):
            sample(wrong)


def test_entropy_rate_is_in_nats_per_token() -> None:
    assert entropy_rate() == pytest.approx(10.988639 / 8.26, rel=1e-6)
