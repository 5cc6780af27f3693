"""LLM.int8(), AWQ, GPTQ and quantized decoders: what each method restores, with the margin stated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.quantization import (
    Scheme,
    awq,
    changed_copy,
    copy_bytes,
    gptq,
    int8_multiply,
    layer_inputs,
    mxfp4,
    outlier_columns,
    output_error,
    pack,
    quantize,
    quantized_copy,
)
from costmodel.lab.quantization.groups import in_groups

SCHEMES = [Scheme(4), Scheme(3), Scheme(4, 32), Scheme(3, 32), Scheme(3, 24, symmetric=False), Scheme(2, 16)]


def layer(seed: int, tokens: int = 256, rows: int = 48, columns: int = 96) -> tuple[np.ndarray, np.ndarray]:
    """Weights, and correlated inputs of which four columns are thirty times as large."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(tokens, 12)) @ rng.normal(size=(12, columns)) + rng.normal(size=(tokens, columns))
    X[:, rng.choice(columns, 4, replace=False)] *= 30
    return rng.normal(size=(rows, columns)), X


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_both_methods_beat_rounding_to_nearest(scheme: Scheme, seed: int) -> None:
    W, X = layer(seed, tokens=1024)
    nearest = output_error(W, scheme.quantize(W).values(), X)
    assert output_error(W, gptq(W, X, scheme).values(), X) < 0.45 * nearest  # measured: 0.27 to 0.37
    assert output_error(W, awq(W, X, scheme).values(), X) < 0.75 * nearest  # measured: 0.26 to 0.64


@pytest.mark.parametrize("scheme", [Scheme(4), Scheme(3, 32)], ids=str)
def test_the_gain_carries_over_to_inputs_not_seen(scheme: Scheme) -> None:
    W, X = layer(5, tokens=2048)
    seen, held_out = X[:1024], X[1024:]
    nearest = output_error(W, scheme.quantize(W).values(), held_out)
    assert output_error(W, gptq(W, seen, scheme).values(), held_out) < 0.45 * nearest
    assert output_error(W, awq(W, seen, scheme).values(), held_out) < 0.75 * nearest


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([None, 0, 1, 5]), st.booleans())
def test_awq_is_never_worse_than_rounding(seed: int, bits: int, group: int | None, symmetric: bool) -> None:
    rng = np.random.default_rng(seed)
    W, X = rng.normal(size=(3, 7)), rng.normal(size=(4, 7)) * 10.0 ** rng.integers(-3, 3, 7)
    scheme = Scheme(bits, group, symmetric)
    nearest = output_error(W, scheme.quantize(W).values(), X)
    assert output_error(W, awq(W, X, scheme).values(), X) <= nearest * (1 + 1e-12)


@pytest.mark.parametrize("scheme", [Scheme(4), Scheme(3, 5), Scheme(3, 0), Scheme(2, 160, symmetric=False), Scheme(1)])
def test_gptq_equals_the_loop_of_the_paper(scheme: Scheme) -> None:
    W, X = layer(1, rows=6, columns=150)
    np.testing.assert_allclose(gptq(W, X, scheme).values(), textbook_gptq(W, X, scheme), rtol=1e-9, atol=1e-9)


def textbook_gptq(W: np.ndarray, X: np.ndarray, scheme: Scheme, damping: float = 0.01) -> np.ndarray:
    """Algorithm 1 without its blocks: every column's error goes to all later columns at once."""
    ones = np.ones_like(W)
    scale, zero = (
        None if found is None else found.repeat(scheme.group or W.shape[1], axis=1)[:, : W.shape[1], 0]
        for found in scheme.grid(in_groups(W, scheme.group), in_groups(ones, scheme.group))
    )
    if scheme.group == 0:
        scale = np.broadcast_to(scale[:, :1], W.shape)
    hessian = X.T @ X
    order = np.argsort(-np.diag(hessian))
    hessian = hessian[np.ix_(order, order)] + damping * np.diag(hessian).mean() * np.eye(len(hessian))
    upper = np.linalg.cholesky(np.linalg.inv(hessian), upper=True)
    W, rounded = W[:, order], np.empty_like(W)
    for i, j in enumerate(order):
        offset = 0 if zero is None else zero[:, j]
        codes = scheme.codes(W[:, i], scale[:, j], None if zero is None else offset)
        rounded[:, j] = scale[:, j] * (codes - offset)
        error = (W[:, i] - rounded[:, j]) / upper[i, i]
        W[:, i + 1 :] -= np.outer(error, upper[i, i + 1 :])
    return rounded


def test_gptq_with_nothing_to_compensate_is_rounding() -> None:
    W, X = layer(2)
    for inputs in (np.zeros_like(X), np.eye(W.shape[1])):  # dead inputs; inputs that never occur together
        np.testing.assert_array_equal(gptq(W, inputs, Scheme(3)).values(), Scheme(3).quantize(W).values())


@pytest.mark.parametrize("method", [gptq, awq])
def test_what_the_methods_refuse(method: object) -> None:
    W, X = layer(0)
    for bad_w, bad_x, message in (
        (W, X[:, 1:], "must be"),
        (W, X[:0], "must be"),
        (W, np.where(X > 3, np.nan, X), "X has a value"),
        (np.where(W > 2, np.inf, W), X, "W has a value"),
    ):
        with pytest.raises(CostModelError, match=message):
            method(bad_w, bad_x, Scheme(4))


def test_no_damping_adds_none() -> None:
    W, X = layer(3, tokens=512)
    expected = textbook_gptq(W, X, Scheme(3), damping=0)
    np.testing.assert_allclose(gptq(W, X, Scheme(3), damping=0).values(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda W, X: gptq(W, X, Scheme(4), damping=-0.1), "damping must be a finite number of at least 0, got -0.1"),
        (lambda W, X: gptq(W, X, Scheme(4), damping=np.inf), "damping must be a finite number of at least 0, got inf"),
        (
            lambda W, X: gptq(W, np.ones_like(X), Scheme(4), 0),
            "damping must be larger where X does not span all columns",
        ),
        (lambda W, X: gptq(W[:0], X, Scheme(4)), r"W must have at least one axis and one number, got shape \(0, 96\)"),
        (lambda W, X: awq(W[:0], X, Scheme(4)), r"W must have at least one axis and one number, got shape \(0, 96\)"),
        (lambda W, X: awq(W, X, Scheme(4), points=-1), "points must be an integer of at least 0, got -1"),
        (lambda W, X: output_error(W, W[1:], X), r"X \(tokens, columns\), got \(48, 96\), \(47, 96\) and \(256, 96\)"),
        (lambda W, X: output_error(W, W, X[:, 1:]), r"got \(48, 96\), \(48, 96\) and \(256, 95\)"),
        (lambda W, X: outlier_columns(X[0]), r"X must be \(tokens, columns\), got shape \(96,\)"),
        (lambda W, X: int8_multiply(X, W, np.nan), "threshold must be a number of at least 0, got nan"),
        (lambda W, X: layer_inputs(TinyDecoder(), []), "no sequences: give at least one of token ids"),
        (lambda W, X: changed_copy(TinyDecoder(), lambda *_: W), r"qkv of layer 0 must stay \(48, 16\), got"),
        (lambda W, X: copy_bytes(TinyDecoder(), Scheme(4), -1), "other_bits must be a finite number"),
    ],
)
def test_what_is_refused_by_name(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call(*layer(0))


def test_outliers_break_int8_and_two_columns_mend_it() -> None:
    rng = np.random.default_rng(0)
    W, X = rng.normal(size=(64, 256)), rng.normal(size=(128, 256))
    exact = X @ W.T
    error = lambda found, exact: np.linalg.norm(found - exact) / np.linalg.norm(exact)  # noqa: E731
    harmless = error(int8_multiply(X, W, None), exact)
    assert harmless < 0.013
    X[:, [7, 99]] = 60 * np.sign(X[:, [7, 99]])
    W[:, [7, 99]] *= 0.01  # they shout and say little: as in the paper, the rest of the row is what gets lost
    exact = X @ W.T
    broken, mended = (error(int8_multiply(X, W, threshold), exact) for threshold in (None, 6.0))
    assert outlier_columns(X).tolist() == [7, 99]
    assert broken > 10 * harmless
    assert mended < 1.1 * harmless


def test_int8_products_are_exact_in_integers() -> None:
    rng = np.random.default_rng(3)
    X, W = rng.integers(-127, 128, (5, 4000)).astype(float), rng.integers(-127, 128, (3, 4000)).astype(float)
    X[:, 0], W[:, 0] = 127, -127  # so that every scale is 1
    np.testing.assert_array_equal(int8_multiply(X, W, None), X @ W.T)
    with pytest.raises(CostModelError, match="largest fp16"):
        int8_multiply(np.full((1, 2), 1e6), np.ones((1, 2)))
    assert int8_multiply(np.full((1, 2), 8.0), np.ones((1, 2))).tolist() == [[16]]  # nothing but outliers


def test_a_copy_is_rounded_and_the_model_is_not() -> None:
    tiny = TinyDecoder(d_model=32, gated=True, norm_gain=True, n_kv_heads=1)
    before = tiny.weights.memory.copy()
    for method in ("nearest", "awq", "gptq"):
        copy = quantized_copy(tiny, 4, group=8, method=method, calibration=[range(9), range(5)])
        assert copy.shape == tiny.shape
        np.testing.assert_array_equal(tiny.weights.memory, before)
        np.testing.assert_array_equal(copy.weights.embedding, tiny.weights.embedding)
        np.testing.assert_array_equal(copy.weights.final_gain, tiny.weights.final_gain)
        for old, new in zip(tiny.weights.layers, copy.weights.layers, strict=True):
            for name in ("qkv", "output", "up", "down"):
                assert not np.array_equal(getattr(old, name).values, getattr(new, name).values)
        assert copy.generate(range(4), 3).positions_processed == 6
    rows = quantized_copy(tiny, 3).weights.layers[0].down.values.T
    assert all(len(np.unique(row)) <= 7 for row in rows)
    floats = changed_copy(tiny, lambda W, _: mxfp4(W))
    np.testing.assert_array_equal(floats.weights.layers[0].up.values, mxfp4(tiny.weights.layers[0].up.values.T).T)
    assert not np.array_equal(floats.weights.layers[0].up.values, tiny.weights.layers[0].up.values)
    with pytest.raises(CostModelError, match="needs calibration"):
        quantized_copy(tiny, method="gptq")
    with pytest.raises(CostModelError, match="method must be nearest, awq, gptq, got 'best'"):
        quantized_copy(tiny, method="best")


def test_many_bits_change_no_token() -> None:
    tiny = TinyDecoder()
    close = quantized_copy(tiny, 8, group=4, scale_bits=None)
    assert np.abs(close.forward_full(range(8)) - tiny.forward_full(range(8))).max() < 0.05
    assert close.generate(range(8), 20).tokens == tiny.generate(range(8), 20).tokens


def test_layer_inputs_are_what_was_multiplied() -> None:
    tiny = TinyDecoder()
    found = layer_inputs(tiny, [[1, 2, 3], [4, 5]])
    assert [{name: x.shape for name, x in inputs.items()} for inputs in found] == 2 * [
        {"qkv": (5, 16), "output": (5, 16), "up": (5, 16), "down": (5, 64)}
    ]
    alone = layer_inputs(tiny, [[4, 5]])
    np.testing.assert_allclose(found[1]["down"][3:], alone[1]["down"], atol=1e-12)
    assert tiny.work.flops == 0


def test_the_bytes_of_a_copy() -> None:
    tiny, scheme = TinyDecoder(), Scheme(4, 16, symmetric=False, scale_bits=16)
    packed = 0
    for weights in tiny.weights.layers:
        for name in ("qkv", "output", "up", "down"):
            packed += scheme.quantize(getattr(weights, name).values.T).nbytes
    matrices = 2 * (4 * 16 * 16 + 2 * 16 * 64)
    assert copy_bytes(tiny, scheme) == packed + 2 * (tiny.params - matrices)
    assert pack(quantize(np.ones((1, 5)), 4)[0], 4).nbytes == 3
