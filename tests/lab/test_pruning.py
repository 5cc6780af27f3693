import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.pruning import prune, strongest

AGREEMENT = 1e-10  # float64, absolute


@st.composite
def decoders(draw: st.DrawFn, **fixed: object) -> TinyDecoder:
    kv_heads = draw(st.integers(1, 3))
    switches = {
        "gated": draw(st.booleans()), "norm_gain": draw(st.booleans()), "tied": draw(st.booleans()),
        "rope_theta": draw(st.sampled_from([None, 1e4])),
    }  # fmt: skip
    return TinyDecoder(
        vocab=draw(st.integers(2, 20)), d_model=draw(st.integers(2, 16)), n_heads=kv_heads * draw(st.integers(1, 3)),
        n_layers=draw(st.integers(1, 3)), max_len=16, seed=draw(st.integers(0, 10**6)), n_kv_heads=kv_heads,
        head_dim=draw(st.sampled_from([2, 4])), d_ff=draw(st.integers(2, 20)), **(switches | fixed),
    )  # fmt: skip


def some(draw: st.DrawFn, size: int) -> np.ndarray:
    return np.array(sorted(draw(st.sets(st.integers(0, size - 1), min_size=1))))


def text(decoder: TinyDecoder) -> list[int]:
    return np.random.default_rng(0).integers(0, decoder.shape.vocab, 12).tolist()


@given(decoders())
@settings(max_examples=60, deadline=None)
def test_keeping_everything_is_the_identity_bit_for_bit(decoder: TinyDecoder) -> None:
    s = decoder.shape
    whole = prune(
        decoder, layers=range(s.n_layers), heads=[range(s.n_kv_heads)] * s.n_layers,
        neurons=[range(s.d_ff)] * s.n_layers, channels=range(s.d_model),
    )  # fmt: skip
    assert whole.shape == decoder.shape
    assert np.array_equal(whole.weights.memory, decoder.weights.memory)
    assert not np.shares_memory(whole.weights.memory, decoder.weights.memory)
    assert np.array_equal(whole.forward_full(text(decoder)), decoder.forward_full(text(decoder)))


@given(decoders(), st.data())
@settings(max_examples=60, deadline=None)
def test_heads_and_neurons_that_add_nothing_leave_no_trace(decoder: TinyDecoder, data: st.DataObject) -> None:
    s = decoder.shape
    heads, neurons = some(data.draw, s.n_kv_heads), some(data.draw, s.d_ff)
    for layer in decoder.weights.layers:
        groups = layer.output.values.reshape(s.n_kv_heads, -1, s.d_model)
        assert np.shares_memory(groups, layer.output.values)
        groups[np.setdiff1d(range(s.n_kv_heads), heads)] = 0
        layer.down.values[np.setdiff1d(range(s.d_ff), neurons)] = 0
    smaller = prune(decoder, heads=[heads] * s.n_layers, neurons=[neurons] * s.n_layers)
    assert (smaller.shape.n_kv_heads, smaller.shape.d_ff) == (len(heads), len(neurons))
    assert smaller.shape.n_heads * s.n_kv_heads == s.n_heads * len(heads)
    np.testing.assert_allclose(
        smaller.forward_full(text(decoder)), decoder.forward_full(text(decoder)), rtol=0, atol=AGREEMENT
    )


@given(decoders(norm_gain=True), st.data())
@settings(max_examples=60, deadline=None)
def test_channels_that_are_always_zero_leave_no_trace(decoder: TinyDecoder, data: st.DataObject) -> None:
    channels = some(data.draw, decoder.shape.d_model)
    gone, weights = np.setdiff1d(range(decoder.shape.d_model), channels), decoder.weights
    weights.embedding[:, gone] = 0
    if weights.positions is not None:
        weights.positions[:, gone] = 0
    for layer in weights.layers:
        layer.output.values[:, gone] = 0
        layer.down.values[:, gone] = 0
    smaller = prune(decoder, channels=channels)
    assert smaller.shape.d_model == len(channels)
    np.testing.assert_allclose(
        smaller.forward_full(text(decoder)), decoder.forward_full(text(decoder)), rtol=1e-9, atol=AGREEMENT
    )


@given(decoders(), st.data())
@settings(max_examples=30, deadline=None)
def test_layers_that_add_nothing_leave_no_trace(decoder: TinyDecoder, data: st.DataObject) -> None:
    layers = some(data.draw, decoder.shape.n_layers)
    for gone in set(range(decoder.shape.n_layers)) - set(layers.tolist()):
        decoder.weights.layers[gone].output.values[...] = 0
        decoder.weights.layers[gone].down.values[...] = 0
    smaller = prune(decoder, layers=layers)
    assert np.array_equal(smaller.forward_full(text(decoder)), decoder.forward_full(text(decoder)))


def test_each_layer_keeps_its_own_parts() -> None:
    tiny = TinyDecoder(n_heads=4, head_dim=4)
    smaller = prune(tiny, heads=[[0, 2], [1, 3]], neurons=[range(3), range(7, 10)])
    for new, old, heads, neurons in zip(
        smaller.weights.layers, tiny.weights.layers, ([0, 2], [1, 3]), (range(3), range(7, 10)), strict=True
    ):
        for step in ("query", "key", "value"):
            expected = old.qkv.part(step).reshape(16, 4, 4)[:, heads].reshape(16, 8)
            np.testing.assert_array_equal(new.qkv.part(step), expected)
        np.testing.assert_array_equal(new.up.values, old.up.values[:, neurons])
        np.testing.assert_array_equal(new.down.values, old.down.values[neurons])


def test_the_strongest_are_kept_in_order() -> None:
    assert strongest(np.array([1.0, 3.0, 2.0, 3.0]), 2).tolist() == [1, 3]
    assert strongest(np.array([0.0, 0.0, 0.0]), 2).tolist() == [0, 1]
    with pytest.raises(CostModelError, match="keep must be 1 to 3, got 4"):
        strongest(np.zeros(3), 4)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ({"layers": [0, 2]}, r"layers must be rising indices from 0 to 1, got \[0, 2\]"),
        ({"layers": [1, 0]}, "rising"),
        ({"layers": [0, 0]}, "rising"),
        ({"layers": []}, "rising"),
        ({"layers": [-1]}, "rising"),
        ({"layers": [0.5]}, "rising"),
        ({"heads": [[0]]}, "heads must be equally many for each of 2 layers"),
        ({"neurons": [[0], [0, 1]]}, "neurons must be equally many"),
        ({"channels": [0]}, "norm_gain"),
    ],
)
def test_refusals(kept: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        prune(TinyDecoder(), **kept)
