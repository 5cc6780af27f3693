from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import Decoder, TinyDecoder
from costmodel.lab.gradients import batch_logits, loss_and_gradient
from costmodel.lab.losses import Loss, cross_entropy, distillation

STEP, TOLERANCE = 1e-5, 1e-6  # of central differences in float64; the error relative to max(1, |gradient|)


def assert_slope(decoder: Decoder, tokens: np.ndarray, loss: Loss | None, rng: np.random.Generator) -> None:
    """The gradient agrees with central differences along coordinates and along one direction through all weights."""
    memory = decoder.weights.memory
    value, gradient = loss_and_gradient(decoder, tokens, loss)
    assert gradient.memory.shape == memory.shape
    original = memory.copy()
    coordinates = rng.choice(memory.size, size=min(12, memory.size), replace=False)
    everywhere = rng.normal(size=memory.size)
    directions = [np.eye(1, memory.size, k=coordinate)[0] for coordinate in coordinates]
    for direction in [*directions, everywhere / np.linalg.norm(everywhere)]:
        ends = []
        for sign in (1, -1):
            memory[:] = original + sign * STEP * direction
            ends.append(loss_and_gradient(decoder, tokens, loss)[0])
        memory[:] = original
        slope, expected = gradient.memory @ direction, (ends[0] - ends[1]) / (2 * STEP)
        assert abs(slope - expected) <= TOLERANCE * max(1, abs(slope))
    assert loss_and_gradient(decoder, tokens, loss)[0] == value  # the weights are as they were


SWITCHES = list(product([False, True], [False, True], [None, 1e4], [False, True], [1, 2, 4]))


@pytest.mark.parametrize(("gated", "norm_gain", "rope_theta", "tied", "kv_heads"), SWITCHES)
def test_every_switch(gated: bool, norm_gain: bool, rope_theta: float | None, tied: bool, kv_heads: int) -> None:
    decoder = TinyDecoder(
        vocab=11, d_model=8, n_heads=4, n_kv_heads=kv_heads, head_dim=2, d_ff=10, max_len=9, seed=kv_heads,
        gated=gated, norm_gain=norm_gain, rope_theta=rope_theta, tied=tied,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    assert_slope(decoder, rng.integers(0, 11, (3, 8)), None, rng)


@st.composite
def decoders(draw: st.DrawFn) -> TinyDecoder:
    kv_heads = draw(st.integers(1, 3))
    return TinyDecoder(
        vocab=draw(st.integers(2, 20)),
        d_model=draw(st.integers(4, 16)),
        n_heads=kv_heads * draw(st.integers(1, 3)),
        n_layers=draw(st.integers(1, 3)),
        max_len=draw(st.integers(8, 20)),
        seed=draw(st.integers(0, 10**6)),
        n_kv_heads=kv_heads,
        head_dim=draw(st.sampled_from([2, 4, 6])),
        d_ff=draw(st.integers(1, 20)),
        gated=draw(st.booleans()),
        norm_gain=draw(st.booleans()),
        rope_theta=draw(st.sampled_from([None, 1e4])),
        tied=draw(st.booleans()),
    )


# derandomized: a difference across the kink of a ReLU is not a slope, and one draw in some thousands would straddle one
@given(decoders(), st.integers(1, 4), st.integers(1, 8), st.sampled_from([None, 1.0, 2.5]))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_any_shape_and_loss(decoder: TinyDecoder, batch: int, length: int, temperature: float | None) -> None:
    rng = np.random.default_rng(batch * length)
    tokens = rng.integers(0, decoder.shape.vocab, (batch, length + 1))
    teacher = rng.normal(size=(batch, length, decoder.shape.vocab))
    assert_slope(decoder, tokens, temperature and distillation(teacher, temperature), rng)


@given(decoders(), st.integers(1, 3), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_batched_logits_are_the_decoders_own(decoder: TinyDecoder, batch: int, length: int) -> None:
    tokens = np.random.default_rng(length).integers(0, decoder.shape.vocab, (batch, length))
    expected = [decoder.forward_full(row.tolist()) for row in tokens]
    np.testing.assert_allclose(batch_logits(decoder, tokens), expected, rtol=0, atol=1e-10)


def test_precision_stays_and_nothing_is_counted() -> None:
    tiny = TinyDecoder(dtype=np.float32, gated=True, rope_theta=1e4)
    _, gradient = loss_and_gradient(tiny, np.array([[1, 2, 3]]))
    assert gradient.memory.dtype == batch_logits(tiny, np.array([[1, 2]])).dtype == np.float32
    assert tiny.work.flops == 0


def test_the_loss_is_the_mean_surprise() -> None:
    tiny, tokens = TinyDecoder(seed=3), np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    logits = np.array([tiny.forward_full(row[:-1]) for row in tokens])
    probs = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    surprises = [-np.log(probs[i, t, tokens[i, t + 1]]) for i in range(2) for t in range(3)]
    assert loss_and_gradient(tiny, tokens)[0] == pytest.approx(np.mean(surprises), rel=1e-12)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_distillation_is_the_scaled_divergence(temperature: float) -> None:
    rng = np.random.default_rng(1)
    teacher, student = rng.normal(size=(2, 2, 3, 5))
    p, q = (np.exp(logits / temperature) / np.exp(logits / temperature).sum(axis=-1, keepdims=True)
            for logits in (teacher, student))  # fmt: skip
    loss, _ = distillation(teacher, temperature)(student, np.zeros((2, 3), int))
    assert loss == pytest.approx(temperature**2 * (p * np.log(p / q)).sum(axis=-1).mean(), rel=1e-12)
    loss, gradient = distillation(teacher, temperature)(teacher, np.zeros((2, 3), int))
    assert loss == 0
    assert not gradient.any()


def test_huge_logits_do_not_overflow() -> None:
    loss, gradient = cross_entropy(np.array([[[1e6, 0.0]]]), np.array([[1]]))
    assert loss == 1e6
    np.testing.assert_array_equal(gradient, [[[1, -1]]])


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (np.array([1, 2, 3]), r"windows .* got shape \(3,\)"),
        (np.array([[1]]), "at least 2"),
        (np.array([[1, 99, 1]]), "0 to 15, got 1 to 99"),
        (np.array([[-1, 1]]), "0 to 15, got -1"),
        (np.array([[0.5, 1.0]]), "integers .* got float64"),
        (np.zeros((1, 66), int), "65 tokens are longer than max_len, 64"),
    ],
)
def test_refusals(tokens: np.ndarray, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        loss_and_gradient(TinyDecoder(), tokens)


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan")])
def test_a_distillation_has_a_temperature(temperature: float) -> None:
    with pytest.raises(CostModelError, match="temperature"):
        distillation(np.zeros((1, 1, 2)), temperature)
