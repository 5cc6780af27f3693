import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.language import entropy_rate, sample
from costmodel.lab.losses import cross_entropy
from costmodel.lab.training import distil, mean_loss, train
from costmodel.lab.weights import DecoderWeights, allocate


def small(seed: int = 0, **switches: object) -> TinyDecoder:
    return TinyDecoder(vocab=32, n_heads=2, n_layers=1, d_ff=32, seed=seed, rope_theta=1e4, gated=True, **switches)


def test_it_learns_the_language_but_never_beyond_its_entropy() -> None:
    text, held_out, tiny = sample(20_000), sample(6_000, seed=1), small(d_model=32, norm_gain=True, dtype=np.float32)
    before = mean_loss(tiny, held_out)
    losses = train(tiny, text, steps=200, batch=16, rate=1e-2)
    after = mean_loss(tiny, held_out)
    assert before > np.log(32) - 0.5
    assert entropy_rate() < after < 1.6  # a unigram model of this language has 3.0
    assert np.mean(losses[-20:]) == pytest.approx(after, abs=0.1)


def test_deterministic_by_seed() -> None:
    text = sample(2_000)
    runs = [small(), small(), small()]
    for tiny, seed in zip(runs, (0, 0, 1), strict=True):
        train(tiny, text, steps=5, batch=4, seed=seed)
    assert np.array_equal(runs[0].weights.memory, runs[1].weights.memory)
    assert not np.array_equal(runs[0].weights.memory, runs[2].weights.memory)


def test_the_first_step_of_adam_moves_every_weight_by_the_rate() -> None:
    tiny, text = small(), sample(2_000)
    before = tiny.weights.memory.copy()
    train(tiny, text, steps=1, batch=8, rate=1e-3)
    moved = np.abs(tiny.weights.memory - before)
    np.testing.assert_allclose(moved[moved > 0], 1e-3, rtol=1e-3)  # m̂/√v̂ is the gradient's sign, but for ε


def test_passes_use_the_projected_weights_and_the_full_ones_are_updated() -> None:
    tiny, text = small(), sample(2_000)
    full, seen = tiny.weights.memory.copy(), []

    def coarse(weights: DecoderWeights) -> DecoderWeights:
        used = allocate(tiny.shape)
        used.memory[:] = np.round(weights.memory * 8) / 8
        seen.append(used.memory.copy())
        return used

    losses = train(tiny, text, steps=2, batch=4, rate=1e-3, project=coarse)
    np.testing.assert_array_equal(seen[0], np.round(full * 8) / 8)
    assert len(losses) == len(seen) == 2
    assert np.abs(tiny.weights.memory - full).max() < 2.1e-3  # small steps from the full weights, not from the grid


def test_imitating_a_teacher_needs_no_right_answers() -> None:
    teacher, student, noise = small(seed=1), small(seed=2), np.random.default_rng(0).integers(0, 32, 4_000)
    losses = train(student, noise, steps=300, batch=8, rate=1e-2, loss=distil(teacher))
    assert losses[-1] < 0.2 * losses[0]
    assert train(teacher, noise, steps=1, batch=8, loss=distil(teacher)) == [0.0]


def test_a_loss_is_chosen_for_each_batch() -> None:
    shapes = []

    def noted(windows: np.ndarray) -> object:
        shapes.append(windows.shape)
        return cross_entropy

    text = sample(500)
    assert train(small(), text, steps=2, batch=3, length=9, loss=noted) == train(
        small(), text, steps=2, batch=3, length=9
    )
    assert shapes == [(3, 10), (3, 10)]


def test_mean_loss_does_not_depend_on_the_batch() -> None:
    tiny, text = small(), sample(1_000)
    assert mean_loss(tiny, text, batch=1) == pytest.approx(mean_loss(tiny, text, batch=999), rel=1e-12)


def test_progress_is_told() -> None:
    told = []
    train(small(), sample(100), steps=3, batch=1, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps must be at least 1"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"length": 0}, "length must be at least 1"),
        ({"rate": 0.0}, "rate must be above 0"),
        ({"length": 100}, "at least 101 ids"),
    ],
)
def test_refusals(change: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        train(small(), sample(100), **({"steps": 1} | change))
    with pytest.raises(CostModelError, match="at least 33 ids"):
        mean_loss(small(), sample(32))
