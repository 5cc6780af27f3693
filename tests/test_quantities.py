"""Every formula is homogeneous in its units, and binding it equals building it from numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Add, Max, Min, Rational, floor

from costmodel import Deployment, accelerator, attention, load, mlp, transformer
from costmodel.common.errors import CostModelError, UnknownNameError
from costmodel.parallel import Parallel
from costmodel.quantities import ALSO, QUANTITIES, SYMBOLIC_DEPLOYMENT, At, quantity
from costmodel.symbols import NOTATION, B, M, P, S, b_w, capacity, memory_bandwidth, peak

# Exponents of (byte, second); FLOPs and tokens are counts.
UNITS = {
    "": (0, 0), "FLOP": (0, 0), "byte": (1, 0), "s": (0, 1), "FLOP/byte": (-1, 0), "token/s": (0, -1),
    "byte/s": (1, -1), "FLOP/s": (0, -1), "$": (0, 0), "$/s": (0, -1),
}  # fmt: skip
BYTE, SECOND = Rational(3), Rational(7)  # as if bytes and seconds were a third and a seventh of what they are


def value(formula: object, scaled: bool) -> Rational:
    """The formula at fixed rational points, with every symbol re-expressed in the smaller units if asked."""
    point = {}
    for i, line in enumerate(NOTATION.values()):
        byte, second = UNITS[line.unit]
        point[line.symbol] = Rational(5 * i + 11, i + 2) * (BYTE**byte * SECOND**second if scaled else 1)
    return formula.subs(point)


def homogeneous(formula: object, unit: str) -> bool:
    byte, second = UNITS[unit]
    formula = formula.replace(Max, Add).replace(Min, Add)  # every branch must have the unit, not only the larger
    return value(formula, scaled=True) == value(formula, scaled=False) * BYTE**byte * SECOND**second


@pytest.mark.parametrize("name", QUANTITIES)
def test_quantities_are_homogeneous_in_their_units(name: str) -> None:
    assert homogeneous(QUANTITIES[name].formula(), QUANTITIES[name].unit)


def test_every_ledger_row_is_homogeneous() -> None:
    whole = transformer(qkv_bias=True, out_bias=True, mlp_bias=True, qk_norm=True)
    for ledger in (attention(), mlp(), mlp(gated=False), whole.decode(), whole.prefill()):
        for row in ledger.sized().rows:
            assert row.flops == 0 or homogeneous(row.flops, "FLOP"), row.name
            assert row.bytes == 0 or homogeneous(row.bytes, "byte"), row.name


@pytest.mark.parametrize(
    ("formula", "unit"),
    [
        (B * S * b_w + B * S, "byte"),
        (Max(S / peak, S / memory_bandwidth), "s"),
        (b_w / memory_bandwidth, "byte"),
        (S * b_w**2, "byte"),
    ],
)
def test_the_dimension_test_can_fail(formula: object, unit: str) -> None:
    assert not homogeneous(formula, unit)


@given(
    name=st.sampled_from(sorted(QUANTITIES)),
    shape=st.tuples(*[st.integers(1, 9)] * 6),
    at=st.tuples(st.integers(1, 9), st.integers(1, 30), st.integers(1, 30), st.integers(1, 9)),
)
def test_binding_the_formula_equals_the_value(name: str, shape: tuple, at: tuple) -> None:
    V, D, F, K, G, H = shape
    sizes = {"V": V, "D": D, "F": F, "N": K * G, "K": K, "H": H, "L": 3}
    h100 = accelerator("h100-sxm")
    direct = QUANTITIES[name].of(Deployment(transformer(**sizes), h100, weights="fp8"), At(*at))
    bound = sizes | dict(zip("BSPM", at, strict=True)) | {"b_w": 1, "b_kv": 2, "b_a": 2}
    bound |= {"peak": h100.peak(), "memory_bandwidth": h100.bandwidth, "capacity": h100.capacity}
    formula = QUANTITIES[name].formula().subs({NOTATION[k].symbol: v for k, v in bound.items()})
    assert float(direct) == pytest.approx(float(formula), rel=1e-12)
    if isinstance(direct, int):
        assert direct == formula


def test_formulas_use_only_the_letters_they_need() -> None:
    assert quantity("ridge").formula().free_symbols == {peak, memory_bandwidth}
    assert {s.name for s in quantity("cache-bytes").formula().free_symbols} == {"S", "L", "K", "H", "b_kv"}
    assert {P, M} <= quantity("naive-flops").formula().free_symbols
    assert SYMBOLIC_DEPLOYMENT.params.free_symbols == SYMBOLIC_DEPLOYMENT.model.params.free_symbols


def test_the_keys_of_size_are_names_too() -> None:
    for other, name in ALSO.items():
        assert quantity(other.replace("-", "_")) is QUANTITIES[name]
        assert other not in QUANTITIES


def test_largest_batch_is_a_floor_and_never_below_none() -> None:
    formula = quantity("largest-batch").formula()
    assert isinstance(formula, Max)
    (whole,) = formula.atoms(floor)
    assert formula == Max(0, whole)
    assert whole.args[0].has(capacity)
    none_fits = Deployment(load("llama-3-70b"), accelerator("h100-sxm"))
    in_letters = quantity("largest-batch").of(none_fits, At(context=S))
    assert in_letters.subs(S, 8192) == none_fits.largest_batch(8192) == 0
    groups = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), parallel=Parallel(data=2))
    assert quantity("largest-batch").of(groups, At(context=S)).subs(S, 8192) == groups.largest_batch(8192) == 118
    llama = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    assert quantity("largest-batch").of(llama, At(context=8192)) == llama.largest_batch(8192) == 59


@pytest.mark.parametrize(("model", "feed_forward", "attended"), [
    ("mixtral-8x7b", 32 * (2 * 6 * 4096 * 14336 + 2 * 4096 * 8), 32 * 4 * 1000 * 4096),  # 2 experts and a router
    ("deepseek-v3", 18 * 7168 * 18432 + 58 * (54 * 7168 * 2048 + 2 * 7168 * 256), 61 * 2 * 1000 * 128 * (576 + 512)),
    ("jamba-1.5-mini", 16 * 6 * 4096 * 14336 + 16 * (2 * 6 * 4096 * 14336 + 2 * 4096 * 16), 4 * 4 * 1000 * 4096),
    ("llama-3-8b", 32 * 6 * 4096 * 14336, 32 * 4 * 1000 * 4096),
])  # fmt: skip
def test_every_kind_of_attention_and_feed_forward_layer_counts(model: str, feed_forward: int, attended: int) -> None:
    d, at = Deployment(load(model), accelerator("h100-sxm")), At(1, 1000)
    assert quantity("mlp-flops").of(d, at) == feed_forward
    assert quantity("attention-flops").of(d, at) == attended
    assert quantity("mlp-intensity").of(d, at) * quantity("mlp-bytes").of(d, at) == pytest.approx(feed_forward)


@pytest.mark.parametrize(("model", "name", "what"), [
    ("8b", "mlp-bytes", "feed-forward"), ("8b", "attention-flops", "attention"),
    ("mamba-2.8b-hf", "mlp-flops", "feed-forward"), ("mamba-2.8b-hf", "attention-intensity", "attention"),
])  # fmt: skip
def test_what_a_model_has_none_of_is_refused(model: str, name: str, what: str) -> None:
    with pytest.raises(CostModelError, match=rf"^{model} has no {what} layers of known sizes$"):
        quantity(name).of(Deployment(load(model), accelerator("h100-sxm")), At(1, 1000))


def test_unknown_quantity_suggests() -> None:
    with pytest.raises(UnknownNameError, match="unknown quantity 'latencies'; did you mean latency"):
        quantity("latencies")
