"""The output is distributed as the target's own: χ² on whole sequences, seeds fixed, α = 0.001.

A correct rule exceeds the limit in one of a thousand seeds; a wrong one does by orders of magnitude (last test).
"""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import chi2

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.sampling import candidates
from costmodel.lab.speculation import (
    RoundSimulator,
    expected_tokens_per_round,
    long_run,
    speculative_batch,
    speculative_generate,
    speculative_round,
    tokens_per_round,
)

TARGET = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])  # R-spec-exact
DRAFT = np.array([[0.3, 0.3, 0.4], [0.2, 0.5, 0.3], [0.6, 0.2, 0.2]])
LENGTH, GAMMA, SIGNIFICANCE = 4, 3, 1e-3


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_table(seed: int, size: int, zeros: float) -> np.ndarray:
    """Rows with each entry 0 with probability `zeros`, one at least above."""
    draws = rng(seed)
    table = draws.random((size, size)) * (draws.random((size, size)) >= zeros)
    table[np.arange(size), draws.integers(size, size=size)] += 0.1
    return table / table.sum(axis=1, keepdims=True)


def shifted(table: np.ndarray) -> np.ndarray:
    return np.roll(table, 1, axis=1)


CASES = {
    "the reference pair": (TARGET, DRAFT),
    "equal": (TARGET, TARGET),
    "zeros in both": (random_table(1, 4, 0.5), random_table(2, 4, 0.5)),
    "more zeros": (random_table(3, 5, 0.7), random_table(4, 5, 0.7)),
    "disjoint supports": (np.eye(3)[[1, 2, 0]] * 0.5 + np.eye(3) * 0.5, np.eye(3)[[2, 0, 1]]),
    "a certain draft": (TARGET, np.eye(3)),
    "a certain target": (np.eye(3)[[1, 2, 0]], DRAFT),
}


def sequence_probs(table: np.ndarray, start: int, length: int) -> np.ndarray:
    """Probability of every sequence of so many tokens after `start`, in counting order."""
    probs = []
    for tokens in product(range(len(table)), repeat=length):
        path = (start, *tokens)
        probs.append(np.prod([table[a, b] for a, b in pairwise(path)]))
    return np.array(probs)


def assert_fits(counts: np.ndarray, probs: np.ndarray) -> None:
    """Nothing impossible was drawn, and χ² is below its 1 - α quantile."""
    assert counts[probs == 0].sum() == 0
    possible = probs > 0
    assert chi_square(counts[possible], probs[possible]) <= limit(possible.sum() - 1)


def chi_square(counts: np.ndarray, probs: np.ndarray) -> float:
    expected = counts.sum() * probs
    return float(((counts - expected) ** 2 / expected).sum())


def limit(freedom: int) -> float:
    return float(chi2.isf(SIGNIFICANCE, freedom)) if freedom else 0.0


def counted(tokens: np.ndarray, vocab: int) -> np.ndarray:
    length = tokens.shape[1]
    return np.bincount(tokens @ vocab ** np.arange(length - 1, -1, -1), minlength=vocab**length)


@pytest.mark.parametrize("name", CASES)
def test_a_million_rounds_give_the_targets_sequences(name: str) -> None:
    target, draft = CASES[name]
    n = 1_000_000 if name == "the reference pair" else 200_000
    tokens, rounds = RoundSimulator(target, draft, GAMMA).sequences(0, LENGTH, n, rng(1))
    assert rounds >= n
    assert_fits(counted(tokens, len(target)), sequence_probs(target, 0, LENGTH))


@pytest.mark.parametrize("name", CASES)
def test_the_loop_gives_the_targets_sequences(name: str) -> None:
    target, draft = CASES[name]
    draws = rng(2)
    runs = [speculative_generate(0, target, draft, 3, 2, draws).new_tokens for _ in range(3_000)]
    assert_fits(counted(np.array(runs), len(target)), sequence_probs(target, 0, 3))


def test_first_tokens_of_20_000_rounds() -> None:
    draws = rng(0)
    first = [speculative_round(0, TARGET, DRAFT, 3, draws)[0] for _ in range(20_000)]
    assert_fits(np.bincount(first, minlength=3), TARGET[0])  # R-spec-exact


def test_simulator_and_loop_have_one_distribution_of_rounds() -> None:
    """Not only the tokens: how many each round yields, and which."""
    draws = rng(3)
    loop = [speculative_round(0, TARGET, DRAFT, 2, draws) for _ in range(20_000)]
    tokens, counts = RoundSimulator(TARGET, DRAFT, 2).rounds(np.zeros(1_000_000, int), rng(4))
    outputs = sorted({tuple(new) for new in loop})
    place = {new: i for i, new in enumerate(outputs)}
    padded = np.array([[*new, *[-1] * (3 - len(new))] for new in outputs])
    assert ((tokens >= 0).sum(axis=1) == counts).all()
    theirs = np.array([(tokens == row).all(axis=1).sum() for row in padded])
    assert theirs.sum() == len(tokens)
    ours = np.bincount([place[tuple(new)] for new in loop], minlength=len(outputs))
    both, total = ours + theirs, len(loop) + len(tokens)
    expected = np.array([both * len(loop) / total, both * len(tokens) / total])
    found = float(((np.array([ours, theirs]) - expected) ** 2 / expected).sum())
    assert found <= limit(len(outputs) - 1)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("gamma", [0, 1, 4])
def test_tokens_per_round_are_those_expected(name: str, gamma: int) -> None:
    """Within five standard errors of the exact mean, from every start."""
    target, draft = CASES[name]
    simulator, n = RoundSimulator(target, draft, gamma), 20_000
    for start, mean in enumerate(tokens_per_round(target, draft, gamma)):
        _, counts = simulator.rounds(np.full(n, start), rng(start))
        assert abs(counts.mean() - mean) <= 5 * gamma / 2 / np.sqrt(n)  # γ/2 is the largest deviation
        assert 1 - 1e-12 <= mean <= gamma + 1 + 1e-12


def test_equal_rows_give_the_closed_form() -> None:
    p, q = np.tile(TARGET[0], (3, 1)), np.tile(DRAFT[0], (3, 1))
    rate, alpha = long_run(p, q, 4)
    assert alpha == pytest.approx(0.8)
    assert rate == pytest.approx(expected_tokens_per_round(0.8, 4), rel=1e-12)


def test_the_long_run_is_what_a_long_run_does() -> None:
    exact, _ = long_run(TARGET, DRAFT, 3)
    _, rounds = RoundSimulator(TARGET, DRAFT, 3).sequences(0, 400, 1_000, rng(5))
    assert 400_000 / rounds == pytest.approx(exact, rel=5e-3)


def decoder_probs(decoder: TinyDecoder, prompt: list[int], length: int, **settings: object) -> np.ndarray:
    """Probability of every continuation, by asking the decoder for each."""
    vocab, probs = decoder.shape.vocab, []
    for tokens in product(range(vocab), repeat=length):
        logits, probability = decoder.forward_full([*prompt, *tokens]), 1.0
        for row, token in zip(logits[len(prompt) - 1 :], tokens, strict=False):
            ids, kept = candidates(row, **settings)
            probability *= float(kept[ids == token].sum())
        probs.append(probability)
    return np.array(probs)


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.7, "top_k": 3}, {"temperature": 1.5, "top_p": 0.8}], ids=str
)
def test_two_decoders_give_the_targets_sequences(settings: dict) -> None:
    target, draft = TinyDecoder(vocab=4, seed=1), TinyDecoder(vocab=4, d_model=8, n_layers=1, seed=2)
    prompt, n = [1, 2], 1_500
    runs = speculative_batch([prompt] * n, target, draft, 3, 2, rng(6), **settings)
    counts = counted(np.array([run.new_tokens for run in runs]), 4)
    assert_fits(counts, decoder_probs(target, prompt, 3, **settings))


def test_a_wrong_rule_is_caught() -> None:
    """Replacing from p in place of the residual: the same test sees it."""

    class Wrong(RoundSimulator):
        def __init__(self) -> None:
            super().__init__(TARGET, DRAFT, GAMMA)
            self._replace = self._bonus

    tokens, _ = Wrong().sequences(0, LENGTH, 100_000, rng(1))
    probs = sequence_probs(TARGET, 0, LENGTH)
    assert chi_square(counted(tokens, 3), probs) > 5 * limit(len(probs) - 1)


@pytest.mark.parametrize("use", [RoundSimulator, tokens_per_round, long_run])
def test_tables_of_different_words_are_refused(use: object) -> None:
    with pytest.raises(CostModelError, match=r"tables must have one shape, got \(3, 3\) and \(2, 2\)"):
        use(TARGET, np.full((2, 2), 0.5), 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.rounds(np.array([0, 3]), rng()), "token 3 is outside the vocabulary; ids are 0 to 2"),
        (lambda s: s.rounds(np.array([-1]), rng()), "token -1 is outside the vocabulary"),
        (lambda s: s.rounds(np.zeros(2), rng()), "sequence of integers"),
        (lambda s: s.sequences(3, 2, 5, rng()), "token 3 is outside the vocabulary"),
        (lambda s: s.sequences(0, -1, 5, rng()), "n_tokens must be a whole number of at least 0, got -1"),
        (lambda s: s.sequences(0, 2, 1.5, rng()), "n must be a whole number of at least 0, got 1.5"),
    ],
)
def test_starts_and_counts_that_cannot_be_are_named(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call(RoundSimulator(TARGET, DRAFT, 2))


def test_no_round_at_all() -> None:
    tokens, counts = RoundSimulator(TARGET, DRAFT, 2).rounds(np.zeros(0, int), rng())
    assert (tokens.shape, counts.shape) == ((0, 3), (0,))
