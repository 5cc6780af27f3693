import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.language import entropy_rate, sample
from costmodel.lab.losses import cross_entropy, distillation
from costmodel.lab.timing import measured_seconds
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
    np.testing.assert_allclose(moved, 1e-3, rtol=1e-3)  # m̂/√v̂ is the gradient's sign, but for ε


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

    def nothing(weights: DecoderWeights) -> DecoderWeights:
        used = allocate(tiny.shape)
        used.memory[:] = 0 * weights.memory
        return used

    assert train(tiny, text, steps=1, batch=4, project=nothing) == [pytest.approx(np.log(32))]  # all logits 0


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
        ({"steps": 0}, "steps must be an integer of at least 1, got 0"),
        ({"batch": 0}, "batch must be an integer of at least 1, got 0"),
        ({"length": 0}, "length must be an integer of at least 1, got 0"),
        ({"length": 8.5}, "length must be an integer of at least 1, got 8.5"),
        ({"rate": 0.0}, "rate must be a finite number above 0, got 0.0"),
        ({"rate": np.inf}, "rate must be a finite number above 0, got inf"),
        ({"rate": np.nan}, "rate must be a finite number above 0, got nan"),
        ({"length": 100}, "at least 101 ids"),
        ({"length": 65}, "length must be 1 to max_len, 64, got 65"),
        ({"tokens": np.array([1] * 99 + [32])}, "token 32 is outside the vocabulary; ids are 0 to 31"),
        ({"tokens": np.ones(100)}, "tokens must be a non-empty sequence of integers"),
        ({"loss": distil(TinyDecoder())}, "token ids must be 0 to 15"),
        ({"loss": distil(TinyDecoder(vocab=33))}, r"the teacher's shape, \(32, 32, 33\), got \(32, 32, 32\)"),
        (
            {"loss": distil(small(seed=1), np.inf)},
            "temperature of a distillation must be a finite number above 0, got inf",
        ),
    ],
)
def test_refusals_change_nothing(change: dict, message: str) -> None:
    tiny = small()
    before = tiny.weights.memory.copy()
    with pytest.raises(CostModelError, match=message):
        train(tiny, **({"tokens": sample(100), "steps": 1} | change))
    np.testing.assert_array_equal(tiny.weights.memory, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_loss(small(), sample(32)), "at least 33 ids"),
        (lambda: mean_loss(small(), sample(32), length=0), "length must be an integer of at least 1, got 0"),
        (lambda: mean_loss(small(), sample(99), length=65), "length must be 1 to max_len, 64, got 65"),
        (lambda: mean_loss(small(), sample(99), batch=0), "batch must be an integer of at least 1, got 0"),
        (lambda: mean_loss(small(), sample(99), batch=1.5), "batch must be an integer of at least 1, got 1.5"),
        (lambda: mean_loss(small(), sample(99) - 1), "token -1 is outside the vocabulary"),
        (lambda: distillation(np.zeros((1, 1, 2)), -1.0), "must be a finite number above 0, got -1.0"),
        (lambda: distillation(np.zeros((1, 1, 2)))(np.zeros((1, 1, 3)), np.zeros((1, 1), int)), "the teacher's shape"),
        (lambda: measured(rounds=0), "rounds must be an integer of at least 1, got 0"),
        (lambda: measured(prompt=0), "prompt must be an integer of at least 1, got 0"),
        (lambda: measured(context=1), "context must be an integer of at least 2, got 1"),
        (lambda: measured(context=65), "must be at most max_len, 64, got 4 and 65"),
        (lambda: measured(TinyDecoder(vocab=7)), "vocabulary must have at least 8 tokens, got 7"),
    ],
)
def test_what_cannot_be_measured_is_named(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call()


def measured(decoder: TinyDecoder | None = None, **sizes: int) -> dict:
    tiny = decoder or TinyDecoder()
    try:
        return measured_seconds(tiny, **({"prompt": 4, "context": 3} | sizes))
    finally:
        assert tiny.work.positions == 0  # refused before anything ran
