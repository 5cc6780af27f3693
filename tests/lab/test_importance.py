from functools import cache

import numpy as np
import pytest

from costmodel.lab.decoder import Decoder, TinyDecoder
from costmodel.lab.gradients import batch_logits
from costmodel.lab.importance import (
    channel_importance,
    head_importance,
    layer_influence,
    loss_without_layer,
    neuron_importance,
)
from costmodel.lab.language import sample
from costmodel.lab.pruning import prune, strongest
from costmodel.lab.training import distil, mean_loss, train
from costmodel.lab.weights import random_weights

TOKENS = np.random.default_rng(0).integers(0, 16, (4, 12))


@pytest.mark.parametrize("gated", [False, True])
def test_what_adds_nothing_has_no_importance(gated: bool) -> None:
    tiny = TinyDecoder(n_heads=6, n_kv_heads=3, head_dim=4, n_layers=3, gated=gated, norm_gain=True)
    layers = tiny.weights.layers
    layers[1].output.values[8:16] = 0  # the second key/value head's group
    layers[1].down.values[5] = 0
    layers[2].output.values[...] = 0
    layers[2].down.values[...] = 0
    heads, neurons, influence = (f(tiny, TOKENS) for f in (head_importance, neuron_importance, layer_influence))
    assert heads[1, 1] == neurons[1, 5] == 0
    assert (heads[0] > 0).all()
    assert (neurons[1, :5] > 0).any()
    assert influence[2] == pytest.approx(0, abs=1e-12)
    assert (influence[:2] > 1e-3).all()


def test_a_score_is_what_removal_takes_from_the_stream() -> None:
    """With one layer, the last stream without a part is the stream less what the part adds."""
    tiny = TinyDecoder(n_layers=1, n_heads=4, head_dim=4)

    def stream(decoder: Decoder) -> np.ndarray:
        seen = []
        batch_logits(decoder, TOKENS, lambda name, _, x: seen.append(x) if name == "stream" else None)
        return seen[-1]

    neurons = neuron_importance(tiny, TOKENS)
    for gone in (3, 20):
        without = prune(tiny, neurons=[[i for i in range(64) if i != gone]])
        lost = stream(tiny) - stream(without)
        assert neurons[0, gone] == pytest.approx(np.sqrt((lost**2).sum(axis=-1).mean()), rel=1e-9)
    tiny.weights.layers[0].down.values[...] = 0  # attention alone
    heads = head_importance(tiny, TOKENS)
    for gone in range(4):
        without = prune(tiny, heads=[[i for i in range(4) if i != gone]])
        lost = stream(tiny) - stream(without)
        assert heads[0, gone] == pytest.approx(np.sqrt((lost**2).sum(axis=-1).mean()), rel=1e-9)


def test_a_channel_that_is_always_zero_has_no_importance() -> None:
    tiny = TinyDecoder(norm_gain=True)
    tiny.weights.embedding[:, 7] = tiny.weights.positions[:, 7] = 0
    for layer in tiny.weights.layers:
        layer.output.values[:, 7] = layer.down.values[:, 7] = 0
    scores = channel_importance(tiny, TOKENS)
    assert scores.shape == (16,)
    assert scores[7] == 0
    assert (np.delete(scores, 7) > 0).all()


def test_loss_without_a_layer_is_the_loss_of_the_rest() -> None:
    tiny, text = TinyDecoder(n_layers=3), np.random.default_rng(1).integers(0, 16, 200)
    losses = loss_without_layer(tiny, text)
    assert losses[1] == mean_loss(prune(tiny, layers=[0, 2]), text)
    assert losses.shape == (3,)


@cache
def trained() -> TinyDecoder:
    decoder = TinyDecoder(
        vocab=32, d_model=32, n_heads=4, n_layers=2, d_ff=64, gated=True, norm_gain=True, rope_theta=1e4,
        dtype=np.float32,
    )  # fmt: skip
    train(decoder, sample(30_000), steps=150, batch=16, rate=1e-2)
    return decoder


def test_repair_beats_the_cut_and_a_fresh_start() -> None:
    """Recipe for recipe, the same few tokens and steps; each margin is at most half of what is seen."""
    parent, few, held_out = trained(), sample(2_000, seed=3), sample(6_000, seed=1)
    calibration = sample(1_024, seed=2).reshape(-1, 32)
    kept = {
        "heads": strongest(head_importance(parent, calibration), 2),
        "neurons": strongest(neuron_importance(parent, calibration), 24),
    }
    cut, distilled, plain = (prune(parent, **kept) for _ in range(3))
    fresh = Decoder(cut.shape, random_weights(cut.shape, seed=5))
    train(distilled, few, steps=60, batch=16, rate=5e-3, loss=distil(parent))
    train(plain, few, steps=60, batch=16, rate=5e-3)
    train(fresh, few, steps=60, batch=16, rate=1e-2)
    original, before, repaired, by_text, scratch = (
        mean_loss(decoder, held_out) for decoder in (parent, cut, distilled, plain, fresh)
    )
    assert original < repaired < by_text < scratch
    assert repaired < before - 0.3
    assert repaired < scratch - 0.1


def test_importance_beats_chance() -> None:
    """The loss right after the cut, against the mean and the best of five random choices of as many neurons."""
    parent, held_out = trained(), sample(6_000, seed=1)
    scores = neuron_importance(parent, sample(1_024, seed=2).reshape(-1, 32))
    by_score = mean_loss(prune(parent, neurons=strongest(scores, 24)), held_out)
    rng = np.random.default_rng(0)
    by_chance = [mean_loss(prune(parent, neurons=strongest(rng.random(scores.shape), 24)), held_out) for _ in range(5)]
    assert by_score < min(by_chance)
    assert by_score < np.mean(by_chance) - 0.1
