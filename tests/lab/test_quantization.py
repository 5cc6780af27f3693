"""Rounding, grids, packing: the published numbers, the reported bugs, and what must hold for every matrix."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from costmodel.common.errors import CostModelError
from costmodel.common.float_formats import FLOATS, FloatFormat
from costmodel.lab.quantization import (
    Scheme,
    dequantize,
    mxfp4,
    nvfp4,
    pack,
    quantization_error,
    quantize,
    relative_error,
    round_to_float,
    scale_and_minimum,
    unpack,
)
from costmodel.lab.quantization.groups import from_groups, in_groups
from costmodel.lab.quantization.rounding import settled_scale

FLOAT_TYPES = (np.float32, np.float64)
WIDTHS = st.integers(2, 8)


def matrices(dtype: type, limit: float = 1e30) -> st.SearchStrategy:
    """Small matrices of numbers of every size, zeros and subnormal numbers among them."""
    bound = float(dtype(limit))
    numbers = st.floats(-bound, bound, width=32 if dtype is np.float32 else 64)
    return arrays(dtype, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=numbers)


any_matrix = st.sampled_from(FLOAT_TYPES).flatmap(matrices)
schemes = st.builds(
    Scheme,
    bits=WIDTHS,
    group=st.sampled_from([None, 0, 1, 2, 3, 5, 100]),
    symmetric=st.booleans(),
    scale_bits=st.sampled_from([None, 16]),
)


def test_published_row() -> None:
    row = np.array([[0.5, -1.27, 0.02]])
    codes, scales = quantize(row)  # R-quant-int8
    assert codes.tolist() == [[50, -127, 2]]
    assert codes.dtype == np.int8
    assert scales.tolist() == [[pytest.approx(0.01, rel=1e-15)]]
    np.testing.assert_allclose(dequantize(codes, scales), row, rtol=1e-14)
    codes, scales = quantize(row, bits=4)  # R-quant-int4
    assert codes.tolist() == [[3, -7, 0]]
    assert scales.round(4).tolist() == [[0.1814]]
    assert (dequantize(codes, scales).round(3) + 0).tolist() == [[0.544, -1.27, 0]]


def test_published_gaussian() -> None:
    W = np.random.default_rng(0).normal(size=(4096, 4096)).astype(np.float32)
    errors = quantization_error(W), quantization_error(W, 4), quantization_error(W, 4, per_channel=False)
    assert errors == pytest.approx((0.0087, 0.157, 0.221), rel=0.02)  # R-quant-gaussian


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("group", [None, 0, 2])
def test_zeros_come_back_as_zeros(bits: int, symmetric: bool, group: int | None) -> None:
    found = Scheme(bits, group, symmetric).quantize(np.zeros((2, 5)))
    assert not found.values().any()
    assert np.isfinite(found.scales).all()
    assert (found.scales > 0).all() or bits == 1
    codes, scales = quantize(np.zeros((2, 5)), bits)
    assert not dequantize(codes, scales).any()
    assert quantization_error(np.zeros((2, 5)), bits) == 0
    assert bits == 1 or (not codes.any() and (scales > 0).all())


def test_a_zero_row_beside_others() -> None:
    codes, scales = quantize([[0.0, 0.0], [1.0, -2.0]])
    assert codes.tolist() == [[0, 0], [64, -127]]
    assert scales[0, 0] == 1


def test_zero_is_in_the_range() -> None:
    found = Scheme(4, symmetric=False).quantize(np.arange(10.5, 14.5, 0.5))  # mit-han-lab/llm-awq#193
    assert found.scales.round(4).tolist() == [[0.9333]]
    assert found.zeros.tolist() == [[0]]
    assert found.codes.tolist() == [11, 12, 12, 13, 13, 14, 14, 15]
    assert np.abs(found.values() - np.arange(10.5, 14.5, 0.5)).max() == pytest.approx(0.4333, abs=1e-4)


@pytest.mark.parametrize("value", [500.0, 9.0, -9.0])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_constant_comes_back(value: float, symmetric: bool) -> None:
    W = np.full((2, 6), value)  # harvard-edge/cs249r_book#1874, dropbox/hqq#159
    for group in (None, 0, 2, 4):
        np.testing.assert_allclose(Scheme(8, group, symmetric).quantize(W).values(), W, rtol=1e-14)
    np.testing.assert_allclose(dequantize(*quantize(W)), W, rtol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "use",
    [
        quantize,
        lambda W: quantize(W, 1),
        lambda W: quantize(W, per_channel=False),
        quantization_error,
        Scheme(4, 2).quantize,
        Scheme(4, 2, symmetric=False).quantize,
        Scheme(1, 2).quantize,
        Scheme(4, scale_bits=16).quantize,
        round_to_float,
        mxfp4,
        nvfp4,
    ],
)
def test_what_is_not_finite_is_refused(bad: float, use: object) -> None:
    with pytest.raises(CostModelError, match="NaN or infinite"):
        use(np.array([[1.0, 2.0, 3.0], [1.0, bad, 3.0]]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quantize([1.0], 0), "bits must be a whole number from 1 to 8, got 0"),
        (lambda: quantize([1.0], 9), "got 9"),
        (lambda: quantize([1.0], 4.5), "got 4.5"),
        (lambda: quantize([]), r"got shape \(0,\)"),
        (lambda: quantize(3.0), r"got shape \(\)"),
        (lambda: quantize(np.zeros((0, 3))), r"W must have at least one axis and one number, got shape \(0, 3\)"),
        (lambda: quantize(np.zeros((0, 3)), per_channel=False), r"got shape \(0, 3\)"),
        (lambda: quantization_error(np.zeros((0, 3))), r"got shape \(0, 3\)"),
        (lambda: Scheme(4, 2).quantize(np.zeros((0, 3))), r"got shape \(0, 3\)"),
        (lambda: mxfp4(np.zeros((0, 32))), r"got shape \(0, 32\)"),
        (lambda: nvfp4(np.zeros((0, 16))), r"got shape \(0, 16\)"),
        (lambda: round_to_float(np.zeros((0, 3))), r"x must have at least one axis and one number, got shape \(0, 3\)"),
        (lambda: relative_error(np.ones(3), np.ones(4)), r"W and Ŵ must have one shape, got \(3,\) and \(4,\)"),
        (lambda: relative_error(np.ones(3), np.ones(1)), r"W and Ŵ must have one shape, got \(3,\) and \(1,\)"),
        (lambda: dequantize(np.ones((2, 3), np.int8), np.ones((3, 1))), r"scales must be \(2, 1\) or one for all, got"),
        (lambda: Scheme(4).effective_bits(0), "columns must be an integer of at least 1, got 0"),
        (lambda: Scheme(4).effective_bits(8, 0), "rows must be an integer of at least 1, got 0"),
        (lambda: Scheme(4, group=-1), "group must be"),
        (lambda: Scheme(4, scale_bits=8), "scale_bits must be 16"),
        (lambda: Scheme(4).quantize(np.ones((2, 2, 2))), "one or two axes"),
        (lambda: pack(np.array([8], np.int8), 4), "lie between -8 and 7, got 8 to 8"),
        (lambda: pack(np.array([1.0]), 4), "int8 or uint8"),
        (lambda: pack(np.int8(3), 4), "codes must have at least one axis, got the number 3"),
        (lambda: unpack(np.zeros(3, np.uint8), 4, 3), r"take 2 bytes, got shape \(3,\)"),
        (lambda: unpack(np.uint8(3), 4, 2), r"take 1 bytes, got shape \(\)"),
        (lambda: unpack(np.zeros(3, np.uint8), 4, -6), "columns must be an integer of at least 0, got -6"),
        (lambda: unpack(np.zeros(3, np.uint8), 4, 5.5), "columns must be an integer of at least 0, got 5.5"),
        (lambda: scale_and_minimum(np.ones((1, 32)), group=0), "group must be an integer of at least 1, got 0"),
        (lambda: scale_and_minimum(np.ones((1, 32)), group=0.5), "group must be an integer of at least 1, got 0.5"),
        (lambda: scale_and_minimum(np.ones((0, 32))), r"got shape \(0, 32\)"),
        (lambda: round_to_float([1.0], "fp7"), "unknown floating-point format 'fp7'"),
    ],
)
def test_refusals(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call()


@given(any_matrix, schemes)
def test_error_is_at_most_half_a_step(W: np.ndarray, scheme: Scheme) -> None:
    found = scheme.quantize(W)
    step = np.repeat(found.scales, scheme.group or W.shape[1], axis=1)[:, : W.shape[1]].astype(np.float64)
    rounding = 4 * np.finfo(W.dtype).eps * np.abs(W)  # of the arithmetic itself
    assert (np.abs(found.values().astype(np.float64) - W) <= step / 2 + rounding).all()


@given(any_matrix, schemes)
@example(np.array([[1.0]], np.float32), Scheme(7, symmetric=False, scale_bits=16))
@example(np.array([[1.0]], np.float32), Scheme(8, scale_bits=16))
def test_quantizing_again_changes_nothing(W: np.ndarray, scheme: Scheme) -> None:
    once = scheme.quantize(W)
    on_its_grid = scheme.codes(
        in_groups(once.values().reshape(-1, W.shape[-1]), scheme.group),
        once.scales[..., np.newaxis],
        None if once.zeros is None else once.zeros[..., np.newaxis],
    )
    np.testing.assert_array_equal(from_groups(on_its_grid, W.shape), once.codes)
    twice = scheme.quantize(once.values())
    if scheme.symmetric:  # even with scales found anew, to the last bit
        np.testing.assert_array_equal(twice.values(), once.values())
    else:  # an end of the range may lie half a step off its grid: the range found anew is then smaller
        step = np.repeat(once.scales, scheme.group or W.shape[1], axis=1)[:, : W.shape[1]].astype(np.float64)
        assert (np.abs(twice.values().astype(np.float64) - once.values()) <= step).all()


@given(any_matrix, st.integers(1, 8), st.booleans())
def test_quantize_is_idempotent(W: np.ndarray, bits: int, per_channel: bool) -> None:
    codes, scales = quantize(W, bits, per_channel)
    again, same = quantize(dequantize(codes, scales), bits, per_channel)
    if bits > 1 or len(W[0]) < 9:
        np.testing.assert_array_equal(again * same, codes * scales)
    assert scales.dtype == W.dtype


@given(any_matrix)
def test_one_bit_keeps_signs_and_the_mean(W: np.ndarray) -> None:
    codes, scales = quantize(W, 1)
    assert set(np.unique(codes)) <= {-1, 1}
    np.testing.assert_array_equal(codes < 0, W < 0)
    smallest = np.finfo(W.dtype).smallest_subnormal * W.shape[1]  # below the normal numbers each term is rounded to it
    np.testing.assert_allclose(scales[:, 0], np.abs(W.astype(np.float64)).mean(axis=1), rtol=1e-5, atol=smallest)
    # of all signs times one number, the nearest: at most as far away as zeros are
    size = np.linalg.norm(W.astype(np.float64) / (np.abs(W).max() or 1))
    assert np.linalg.norm((W - codes * scales).astype(np.float64) / (np.abs(W).max() or 1)) <= size * (1 + 1e-5)


def test_one_and_two_bits_by_hand() -> None:
    assert quantize([3.0, -1.0, 0.0], 1)[0].tolist() == [1, -1, 1]
    assert quantize([3.0, -1.0, 0.5], 1)[1].tolist() == [1.5]
    codes, scales = quantize([3.0, -1.4, 1.6], 2)
    assert (codes.tolist(), scales.tolist()) == ([1, 0, 1], [3])
    two_levels = Scheme(1, symmetric=False).quantize(np.array([0.0, 1.0, 4.0]))
    assert two_levels.values().tolist() == [0, 0, 4]
    assert Scheme(2, symmetric=False).quantize(np.array([-1.0, 0.2, 2.0])).values().tolist() == [-1, 0, 2]


@pytest.mark.parametrize("steps", [1, 3, 7, 15, 31, 63, 127, 255])
def test_scales_settle_for_every_float32(steps: int) -> None:
    spans = (1 + np.arange(2**23, dtype=np.float32)[:: 1 if steps in (7, 127) else 64] / np.float32(2**23)) * steps
    scale = settled_scale(spans.astype(np.float32), steps)
    again = settled_scale(np.float32(steps) * scale, steps)
    np.testing.assert_array_equal(again, scale)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_the_ends_of_the_number_line(dtype: type) -> None:
    largest, tiny = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    for W in (np.array([[largest, -largest / 3]], dtype), np.array([[tiny, -tiny, 0]], dtype)):
        codes, scales = quantize(W)
        values = dequantize(codes, scales)
        assert np.isfinite(values).all()
        assert (np.abs(values / 2 - W / 2) <= scales / 2).all()
    with pytest.raises(CostModelError, match="overflows"):
        Scheme(8, symmetric=False).quantize(np.array([[largest, -largest]], dtype))


def test_ragged_and_single_groups() -> None:
    W = np.array([[1.0, 2.0, 3.0, 4.0, 5.0], [5.0, 4.0, 3.0, 2.0, 1.0]])
    ragged = Scheme(8, group=2).quantize(W)
    assert ragged.scales.shape == (2, 3)
    np.testing.assert_allclose(ragged.scales[:, -1] * 127, [5, 1])
    alone = Scheme(4, group=1).quantize(W)  # each its own largest
    np.testing.assert_allclose(alone.values(), W, rtol=1e-15)
    np.testing.assert_array_equal(Scheme(4, group=99).quantize(W).values(), Scheme(4).quantize(W).values())
    one_bit = Scheme(1, group=3).quantize(np.array([[1.0, 2.0, 3.0, 8.0]]))
    assert one_bit.scales.tolist() == [[2, 8]]  # what fills the ragged group does not count in its mean


@given(any_matrix, st.integers(2, 8))
def test_smaller_groups_are_never_coarser(W: np.ndarray, bits: int) -> None:
    W = np.where(W == 0, W.dtype.type(1e-3), W)  # a group of zeros has scale 1 by definition
    row, group, matrix = (Scheme(bits, g).quantize(W).scales for g in (None, 2, 0))
    assert (group <= row).all()
    assert (row <= matrix).all()


def test_smaller_groups_are_finer_where_sizes_differ() -> None:
    W = np.random.default_rng(0).normal(size=(4, 8))
    row, group, matrix = (Scheme(4, g).quantize(W).scales for g in (None, 2, 0))
    assert (group.shape, row.shape, matrix.size) == ((4, 4), (4, 1), 1)
    assert (group < row).any(axis=1).all()
    assert (row < matrix).sum() == 3


def test_ties_go_to_even() -> None:
    row = np.array([[127.0, 0.5, 1.5, 2.5, -0.5, -1.5]])
    assert quantize(row)[0].tolist() == [[127, 0, 2, 2, 0, -2]]


def test_the_threads_change_nothing() -> None:
    W = np.random.default_rng(1).normal(size=(5000, 1001)).astype(np.float32)
    by_parts = [quantize(part) for part in np.array_split(W, 7)]
    codes, scales = quantize(W)
    np.testing.assert_array_equal(codes, np.concatenate([c for c, _ in by_parts]))
    np.testing.assert_array_equal(scales, np.concatenate([s for _, s in by_parts]))


@given(st.integers(1, 8), st.booleans(), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_packing_and_back(bits: int, signed: bool, columns: int, seed: int) -> None:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    codes = np.random.default_rng(seed).integers(low, high + 1, (3, columns)).astype(np.int8 if signed else np.uint8)
    codes = np.where(codes < 0, -1, 1).astype(np.int8) if signed and bits == 1 else codes
    data = pack(codes, bits)
    assert data.nbytes == 3 * -(-columns * bits // 8)
    np.testing.assert_array_equal(unpack(data, bits, columns, signed), codes)


def test_bytes_in_memory() -> None:
    W = np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32)
    assert pack(quantize(W, 4)[0], 4).nbytes == W.size // 2
    scheme = Scheme(4, group=32, symmetric=False, scale_bits=16)
    found = scheme.quantize(W)
    assert found.nbytes == W.size // 2 + 512 * 2 + 512 // 2
    assert found.nbytes * 8 == W.size * scheme.effective_bits(256, 64)
    assert Scheme(4, group=0).effective_bits(10, 10) == 4 + Fraction(32, 100)
    assert Scheme(8, group=4).effective_bits(10) == 8 + Fraction(3 * 32, 10)  # a ragged group is a group


def every_number(form: FloatFormat) -> np.ndarray:
    """All non-negative numbers of a small format, from its definition."""
    fractions = np.arange(2**form.mantissa) / 2**form.mantissa
    normal = [2.0 ** (e - form.bias) * (1 + fractions) for e in range(1, 2**form.exponent)]
    numbers = np.concatenate([2.0 ** (1 - form.bias) * fractions, *normal])
    return numbers[numbers <= form.largest]


SMALL = [form for form in FLOATS.values() if form.bits <= 8]


@pytest.mark.parametrize("form", SMALL, ids=lambda form: form.name)
def test_small_floats_are_the_nearest(form: FloatFormat) -> None:
    numbers = every_number(form)
    assert numbers[-1] == form.largest
    assert numbers[1] == form.smallest
    assert numbers[numbers > 1][0] - 1 == form.step
    np.testing.assert_array_equal(round_to_float(numbers, form.name), numbers)
    middles = (numbers[1:] + numbers[:-1]) / 2
    even = np.where(np.arange(len(middles)) % 2 == 0, numbers[:-1], numbers[1:])  # codes count up from 0
    np.testing.assert_array_equal(round_to_float(middles, form.name), even)
    x = np.random.default_rng(0).uniform(-1.2, 1.2, 5000) * form.largest
    nearest = numbers[np.abs(np.abs(x)[:, np.newaxis] - numbers).argmin(axis=1)]
    np.testing.assert_array_equal(round_to_float(x, form.name), np.sign(x) * nearest)


def test_eight_bit_ranges() -> None:
    ends = {name: round_to_float([1e6], name).item() for name in FLOATS if name.startswith("fp8")}
    assert ends == {"fp8-e4m3fn": 448, "fp8-e4m3": 240, "fp8-e4m3fnuz": 240, "fp8-e5m2": 57344}
    assert round_to_float(np.array([1 / 3], np.float64), "fp32").item() == np.float32(1 / 3)
    assert round_to_float(np.array([1 / 3], np.float64), "fp16").item() == np.float16(1 / 3)


@pytest.mark.parametrize(("convert", "size"), [(mxfp4, 32), (nvfp4, 16)])
def test_block_floats(convert: object, size: int) -> None:
    rng = np.random.default_rng(0)
    W = rng.normal(size=(64, 3 * size + 5))
    once = convert(W)
    assert relative_error(W, once) < (0.13 if convert is mxfp4 else 0.11)
    assert not convert(np.zeros((2, 40))).any()
    W[0, :size] = 0  # a block of zeros beside others
    assert not convert(W)[0, :size].any()
    levels = np.unique(np.abs(once[0, :size]))
    assert len(levels) <= 8  # e2m1 has eight magnitudes
    if convert is mxfp4:
        np.testing.assert_array_equal(convert(once), once)


def test_finer_scales_help_nvfp4() -> None:
    W = np.random.default_rng(0).normal(size=(256, 256))
    assert relative_error(W, nvfp4(W)) < 0.9 * relative_error(W, mxfp4(W))


def test_a_scale_and_a_minimum() -> None:
    W = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    once = scale_and_minimum(W)
    assert all(len(np.unique(group)) <= 16 for group in once.reshape(-1, 32))
    np.testing.assert_array_equal(scale_and_minimum(once), once)
    assert relative_error(W, once) < 0.09
    assert not scale_and_minimum(np.zeros((1, 32))).any()
    for bad, message in ((np.ones((1, 33)), "multiple of the group"), (np.full((1, 32), 1e6), "beyond fp16")):
        with pytest.raises(CostModelError, match=message):
            scale_and_minimum(bad)
