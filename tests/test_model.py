"""Substituting numbers into the symbolic model equals building the model from numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Integer, simplify

from costmodel import load, stated_model, transformer
from costmodel.common.errors import CostModelError
from costmodel.symbols import B, D, F, H, K, L, N, P, S, T, V

SIZES = st.fixed_dictionaries(
    {"V": st.integers(1, 300), "D": st.integers(1, 64), "F": st.integers(1, 200), "G": st.integers(1, 8)}
    | {"K": st.integers(1, 8), "H": st.integers(1, 32), "L": st.integers(1, 6)}
)
SHAPES = SIZES.map(lambda s: {k: v for k, v in s.items() if k != "G"} | {"N": s["K"] * s["G"]})
SWITCHES = st.fixed_dictionaries(
    {name: st.booleans() for name in ("norms", "gated", "tied_head", "qkv_bias", "out_bias", "mlp_bias", "qk_norm")}
)
PASSES = st.fixed_dictionaries(
    {"causal": st.booleans(), "elementwise": st.booleans(), "head": st.sampled_from(["last", "all"])}
)

TINY_SIZES = {"V": 10, "D": 4, "F": 6, "N": 2, "K": 1, "H": 2, "L": 3}
TINY = transformer(**TINY_SIZES)


@given(shape=SHAPES, switches=SWITCHES, options=PASSES, batch=st.integers(1, 9), context=st.integers(1, 99))
def test_symbols_then_numbers_equals_numbers(
    shape: dict, switches: dict, options: dict, batch: int, context: int
) -> None:
    numeric, symbolic = transformer(**shape, **switches), transformer(**switches)
    at = shape | {"B": batch, "S": context}
    bound = {symbol: at[symbol.name] for symbol in (V, D, F, N, K, H, L, B, S)}
    assert numeric.params == symbolic.params.subs(bound)
    assert numeric.matrix_params == symbolic.matrix_params.subs(bound)
    assert numeric.cache_elements(context) == symbolic.cache_elements(S).subs(bound)
    for run in ("decode", "prefill"):
        ours = getattr(numeric, run)(batch, context, **options)
        theirs = getattr(symbolic, run)(B, S, **options).subs(bound)
        assert (ours.flops, ours.bytes) == (theirs.flops, theirs.bytes)
        assert isinstance(ours.flops, int)
        assert isinstance(theirs.flops, Integer)


@given(shape=SHAPES, switches=SWITCHES)
def test_the_rows_of_a_ledger_read_every_parameter_once(shape: dict, switches: dict) -> None:
    model = transformer(**shape, **switches)
    read = model.prefill(1, 1).elements("weight")
    unread = (shape["V"] - 1) * shape["D"]  # all but one row of the embedding, which is gathered
    assert read + unread - (shape["V"] * shape["D"] if switches["tied_head"] else 0) == model.params


@given(shape=SHAPES)
def test_totals_are_the_sums_of_rows(shape: dict) -> None:
    ledger = transformer(**shape).decode(3, 50)
    assert ledger.flops == sum(row.count * row.op.flops for row in ledger.rows)
    assert ledger.bytes == sum(row.count * row.op.bytes for row in ledger.rows)


def test_textbook_parameter_count() -> None:
    expected = 2 * V * D + 3 * D * F * L + (2 * D * N * H + 2 * D * K * H) * L
    assert simplify(transformer(norms=False).params - expected) == 0
    assert simplify(transformer().matrix_params - expected) == 0
    assert simplify(transformer().params - expected - (2 * L + 1) * D) == 0


def test_causal_prefill_of_the_whole_model() -> None:
    full, causal = (transformer().prefill(B, S, causal=causal).flops for causal in (False, True))
    assert simplify(full - causal - 2 * B * L * N * H * S * (S - 1)) == 0


def test_decode_reads_the_head_but_not_the_table() -> None:
    llama = load("llama-2-13b")
    read = llama.decode(1, 1).elements("weight") * 2
    assert read == llama.weight_bytes() - 2 * (32000 - 1) * 5120
    assert f"{llama.weight_bytes() / 1e9:.2f} {read / 1e9:.2f}" == "26.03 25.70"


def test_one_forward_pass_is_about_two_flops_per_parameter_and_token() -> None:
    model = load("llama-2-13b")
    work = model.prefill(1, 1).flops
    assert work / (2 * (model.params - 32000 * 5120)) == pytest.approx(1, rel=1e-3)


def test_blocks_that_differ_are_named_in_the_rows() -> None:
    mixed = transformer(V=10, D=8, F=16, N=2, K=1, H=4, L=3, windows=[(None, 1), (5, 2)])
    assert mixed.decode(1, 50)["local: scores"].count == 2
    assert mixed.decode(1, 50)["global: scores"].count == 1
    assert mixed.cache_elements(50) == 2 * 4 * (50 + 2 * 5)


def test_stated_model_has_one_weights_row() -> None:
    ledger = load("8b").decode(1, 1024)
    assert [row.name for row in ledger.rows if row.op.reads[0].role == "weight"] == ["weights"]
    assert ledger["weights"].bytes == 16 * 10**9
    assert load("8b").params == 8 * 10**9
    assert stated_model().decode().flops == 2 * B * stated_model().params


@pytest.mark.parametrize("size", ["V", "D", "F", "N", "K", "H", "L", "max_len"])
def test_sizes_are_checked(size: str) -> None:
    with pytest.raises(CostModelError, match=rf"^{size} must be a whole number\b.*\b1\b.*, got 0$"):
        transformer(**{size: 0})


def test_sizes_end_where_no_model_reaches() -> None:
    assert transformer(**TINY_SIZES | {"V": 2**31}).params > 4 * 2**32
    with pytest.raises(CostModelError, match=r"^V must be a whole number from 1 to 2,147,483,648, got 2147483649$"):
        transformer(V=2**31 + 1)


@pytest.mark.parametrize("size", ["params", "L", "K", "H"])
def test_sizes_of_a_stated_model_are_checked(size: str) -> None:
    with pytest.raises(CostModelError, match=rf"^{size} must be a whole number"):
        stated_model(**{size: 8e9})


def test_contexts_and_widths_are_checked() -> None:
    assert TINY.cache_elements(0) == 0
    with pytest.raises(CostModelError, match=r"^context must be a whole number, at least 0, got -1$"):
        TINY.cache_elements(-1)
    for width in (-1, 65):
        with pytest.raises(CostModelError, match=rf"^bytes per element must be a number from 0 to 64, got {width}$"):
            TINY.weight_bytes(width)
    assert TINY.weight_bytes(64) == 64 * TINY.params
    assert TINY.weight_bytes("int4") * 4 == TINY.weight_bytes() == TINY.weight_bytes(2)


def test_a_format_that_is_not_known_is_asked_for() -> None:
    asks = "; give the weight format explicitly, for example weights='int4' (--weights int4)"
    with pytest.raises(CostModelError) as bare:
        transformer(dtype=None, name="odd").stored_dtype()
    assert str(bare.value) == "odd states no weight format" + asks
    with pytest.raises(CostModelError) as noted:
        transformer(dtype=None, notes=("packed in a way of its own", "two")).weight_bytes()
    assert str(noted.value) == "packed in a way of its own" + asks


def test_what_a_model_is_called_is_kept() -> None:
    about = {"name": "mine", "family": "ours", "dtype": "fp8", "positions": 9, "notes": ("a guess",)}
    for model in (transformer(tied_head=True, **about), stated_model(**about)):
        assert {key: getattr(model, key) for key in about} == about
    assert [transformer(tied_head=tied).tied_head for tied in (True, False)] == [True, False]


def test_residual_additions_ride_along_with_the_writes_they_follow() -> None:
    quiet, counted = (TINY.decode(5, 7, elementwise=on) for on in (False, True))
    added = [row for row in counted.rows if "residual" in row.name]
    assert [row.name for row in added] == ["attention residual", "mlp residual"]
    assert [(row.count, row.op.flops, row.op.bytes) for row in added] == [(3, 5 * 4, 0)] * 2
    assert [row.op.flops for row in quiet.rows if "residual" in row.name] == [0, 0]
    assert counted.bytes == quiet.bytes


def test_prompt_letter_flows_through() -> None:
    assert transformer().prefill(1, P).flops.has(P)
    assert not transformer().prefill(1, P).flops.has(S, T)


ADDED = {  # each switch of `transformer`, and the parameters it adds to the tiny one
    "norms": (False, -(2 * 3 + 1) * 4),
    "gated": (False, -3 * 4 * 6),
    "tied_head": (True, -10 * 4),
    "qkv_bias": (True, 3 * (2 * 2 + 2 * 1 * 2)),
    "out_bias": (True, 3 * 4),
    "mlp_bias": (True, 3 * (6 + 6 + 4)),
    "qk_norm": (True, 3 * 2 * 2),
    "norm_gain": (False, -(2 * 3 + 1) * 4),
    "max_len": (16, 16 * 4),
}


@pytest.mark.parametrize("switch", ADDED)
def test_what_each_switch_adds(switch: str) -> None:
    value, added = ADDED[switch]
    assert TINY.params == 2 * 10 * 4 + 3 * (2 * 4 * 2 * 2 + 2 * 4 * 1 * 2 + 3 * 4 * 6) + 7 * 4
    assert transformer(**TINY_SIZES, **{switch: value}).params - TINY.params == added


def test_rows_of_a_model_are_named() -> None:
    rows = [row.name for row in transformer(**TINY_SIZES).decode(1, 1).rows]
    assert rows[:2] == ["embedding", "attention norm"]
    assert rows[-2:] == ["last norm", "unembedding"]
    assert "mlp norm" in rows
    assert "query RoPE" in rows
    positioned = transformer(**TINY_SIZES, max_len=16)
    assert [row.name for row in positioned.decode(1, 1).rows][:2] == ["embedding", "positions"]
    assert "query RoPE" not in [row.name for row in positioned.decode(1, 1).rows]
