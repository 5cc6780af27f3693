from itertools import product

import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.beam import beam_search, log_softmax
from costmodel.lab.decoder import TinyDecoder


def log_prob(decoder: TinyDecoder, prompt: list[int], new: tuple[int, ...]) -> float:
    rows = log_softmax(decoder.forward_full([*prompt, *new]))
    return float(sum(rows[len(prompt) - 1 + i, token] for i, token in enumerate(new)))


def test_width_one_is_greedy() -> None:
    tiny = TinyDecoder(seed=3)
    assert beam_search(tiny, [1, 2, 3], 20, width=1)[0].tokens == tiny.generate([1, 2, 3], 20).tokens


def test_a_beam_wide_enough_finds_the_best_of_all() -> None:
    tiny = TinyDecoder(vocab=4, seed=1)
    everything = sorted((log_prob(tiny, [0, 1], new) for new in product(range(4), repeat=3)), reverse=True)
    found = beam_search(tiny, [0, 1], 3, width=64)
    np.testing.assert_allclose([beam.log_prob for beam in found], everything, rtol=0, atol=1e-10)


@pytest.mark.parametrize("width", [2, 5])
def test_probabilities_are_those_of_the_tokens(width: int) -> None:
    tiny = TinyDecoder(seed=2, rope_theta=1e4, n_kv_heads=1, gated=True)
    beams = beam_search(tiny, [1, 2, 3], 8, width=width)
    assert len({tuple(beam.tokens) for beam in beams}) == width
    for beam in beams:
        assert beam.log_prob == pytest.approx(log_prob(tiny, [1, 2, 3], tuple(beam.tokens[3:])), abs=1e-10)
    assert [b.log_prob for b in beams] == sorted((b.log_prob for b in beams), reverse=True)


def test_wider_can_beat_greedy() -> None:
    gains = []
    for seed in range(8):
        tiny = TinyDecoder(seed=seed)
        narrow, wide = (beam_search(tiny, [1], 6, width=width)[0].log_prob for width in (1, 8))
        gains.append(wide - narrow)
    assert max(gains) > 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: beam_search(TinyDecoder(), [1], 1, width=0), "width must be an integer of at least 1, got 0"),
        (lambda: beam_search(TinyDecoder(), [1], 1, width=1.5), "width must be an integer of at least 1, got 1.5"),
        (lambda: beam_search(TinyDecoder(), [1], 0, width=1), "n_new must be an integer of at least 1, got 0"),
        (lambda: beam_search(TinyDecoder(), [], 1, width=1), "non-empty sequence of integers"),
        (lambda: log_softmax([0.0, np.nan]), "a logit is NaN"),
        (lambda: log_softmax([0.0, np.inf]), r"a logit is \+inf"),
        (lambda: log_softmax([-np.inf, -np.inf]), "all logits are -inf"),
        (lambda: log_softmax([]), "at least one token"),
    ],
)
def test_impossible_searches_are_refused(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call()
