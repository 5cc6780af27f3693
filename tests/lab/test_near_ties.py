import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.near_ties import next_token, plant_near_tie

PROMPT, COMPANY = [1, 2, 3], [[4, 5, 6], [7, 8], [9, 4, 5, 6]]


def decoder(seed: int, dtype: type) -> TinyDecoder:
    return TinyDecoder(d_model=64, seed=seed, dtype=dtype)


@pytest.mark.parametrize(("dtype", "gap"), [(np.float32, 1e-4), (np.float64, 1e-12)])
def test_the_two_differ_by_rounding_alone(dtype: type, gap: float) -> None:
    tiny = decoder(0, dtype)
    first, second = plant_near_tie(tiny, PROMPT, np.random.default_rng(0))
    logits = tiny.forward_full(PROMPT)[-1]
    assert abs(logits[first] - logits[second]) < gap
    assert sorted(np.argsort(logits)[-2:].tolist()) == sorted((first, second))


def test_company_flips_a_near_tie_and_nothing_else() -> None:
    """Among 40 planted ties some flip; without one, none does."""
    flips = 0
    for seed in range(40):
        tiny = decoder(seed, np.float32)
        assert next_token(tiny, PROMPT) == next_token(tiny, PROMPT, COMPANY)
        pair = plant_near_tie(tiny, PROMPT, np.random.default_rng(seed))
        alone, together = next_token(tiny, PROMPT), next_token(tiny, PROMPT, COMPANY)
        assert {alone, together} <= set(pair)
        flips += alone != together
    assert flips > 0


def test_a_prompt_of_every_token_leaves_none() -> None:
    with pytest.raises(CostModelError, match="uses all 16 tokens"):
        plant_near_tie(TinyDecoder(), range(16), np.random.default_rng(0))
