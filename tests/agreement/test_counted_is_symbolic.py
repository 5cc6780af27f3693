"""The two towers meet: what the decoder counts as it multiplies equals what the ledger says, exactly."""

from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import cached_flops, naive_flops, transformer
from costmodel.generation import cached_positions, naive_positions
from costmodel.lab.decoder import TinyDecoder
from costmodel.model import Model
from costmodel.passes import ForwardPass
from costmodel.symbols import NOTATION, B, M, P, S

WHOLE = {"causal": False, "head": "all"}  # as the decoder works: whole score matrices, logits at every position


@st.composite
def shapes(draw: st.DrawFn) -> dict:
    K = draw(st.integers(1, 4))
    H = 2 * draw(st.integers(1, 6))  # rotary positions need an even width
    return {
        "V": draw(st.integers(2, 40)),
        "D": draw(st.integers(1, 32)),
        "F": draw(st.integers(1, 64)),
        "N": K * draw(st.integers(1, 4)),
        "K": K,
        "H": H,
        "L": draw(st.integers(1, 4)),
    }


SWITCHES = st.fixed_dictionaries({name: st.booleans() for name in ("gated", "tied", "norm_gain", "rotary")})


def pair(shape: dict, switches: dict, max_len: int = 64) -> tuple[TinyDecoder, Model]:
    """The same shape in both towers."""
    counted = TinyDecoder(
        vocab=shape["V"], d_model=shape["D"], n_heads=shape["N"], n_layers=shape["L"], max_len=max_len,
        n_kv_heads=shape["K"], head_dim=shape["H"], d_ff=shape["F"], gated=switches["gated"], tied=switches["tied"],
        norm_gain=switches["norm_gain"], rope_theta=1e4 if switches["rotary"] else None,
    )  # fmt: skip
    return counted, transformer(**shape, **symbolic_switches(switches, max_len))


def symbolic_switches(switches: dict, max_len: int = 64) -> dict:
    return {
        "gated": switches["gated"],
        "tied_head": switches["tied"],
        "norm_gain": switches["norm_gain"],
        "max_len": None if switches["rotary"] else max_len,
    }


def in_numbers(formula: object, **values: int) -> int:
    return formula.subs({NOTATION[name].symbol: value for name, value in values.items()})


@settings(max_examples=200)
@given(shape=shapes(), switches=SWITCHES, prompt=st.integers(1, 20), generated=st.integers(1, 20))
def test_a_whole_answer_in_both_modes(shape: dict, switches: dict, prompt: int, generated: int) -> None:
    decoder, model = pair(shape, switches)
    tokens = [i % shape["V"] for i in range(prompt)]
    slow, fast = (decoder.generate(tokens, generated, use_cache=kept) for kept in (False, True))
    assert slow.flops == naive_flops(model, prompt, generated, **WHOLE)
    assert fast.flops == cached_flops(model, prompt, generated, **WHOLE)
    assert slow.positions_processed == naive_positions(prompt, generated)
    assert fast.positions_processed == cached_positions(prompt, generated)
    assert decoder.params == model.params


@settings(max_examples=25)
@given(shape=shapes(), switches=SWITCHES, prompt=st.integers(1, 12), generated=st.integers(1, 12))
def test_the_closed_forms_in_letters(shape: dict, switches: dict, prompt: int, generated: int) -> None:
    decoder, _ = pair(shape, switches)
    letters = transformer(**symbolic_switches(switches))
    tokens, at = [i % shape["V"] for i in range(prompt)], shape | {"P": prompt, "M": generated}
    for kept, total in ((False, naive_flops), (True, cached_flops)):
        counted = decoder.generate(tokens, generated, use_cache=kept).flops
        assert counted == in_numbers(total(letters, P, M, **WHOLE), **at)
    assert decoder.params == in_numbers(letters.params, **shape)


@settings(max_examples=100)
@given(shape=shapes(), switches=SWITCHES, past=st.integers(0, 20), tokens=st.integers(1, 10), batch=st.integers(1, 4))
def test_one_pass_row_by_row(shape: dict, switches: dict, past: int, tokens: int, batch: int) -> None:
    decoder, model = pair(shape, switches)
    caches = [decoder.new_cache() for _ in range(batch)]
    if past:
        decoder.forward_batch([[i % shape["V"] for i in range(past)]] * batch, caches)
    before = dict(decoder.work.flops_by_step)
    decoder.forward_batch([[1] * tokens] * batch, caches)
    counted = {step: flops - before.get(step, 0) for step, flops in decoder.work.flops_by_step.items()}
    ledger = model.forward(ForwardPass(batch, tokens, past + tokens, **WHOLE))
    assert counted == {row.name: row.flops for row in ledger.rows if row.flops}


@given(shape=shapes(), lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_ragged_rows_cost_what_their_sequences_cost(shape: dict, lengths: list[int]) -> None:
    decoder, model = pair(shape, dict.fromkeys(("gated", "tied", "norm_gain", "rotary"), True))
    decoder.forward_batch([[1] * n for n in lengths])
    assert decoder.work.flops == sum(model.prefill(1, n, **WHOLE).flops for n in lengths)
    assert decoder.work.positions == sum(lengths)


@given(shape=shapes(), context=st.integers(1, 64))
def test_the_cache_holds_what_the_model_says(shape: dict, context: int) -> None:
    decoder, model = pair(shape, dict.fromkeys(("gated", "tied", "norm_gain", "rotary"), False))
    cache = decoder.new_cache(capacity=context)
    assert cache.nbytes == model.cache_bytes(context, cache=8)  # float64
    assert model.cache_elements(S).subs(S, context) == model.cache_elements(context)


def test_symbols_and_batch_agree_on_one_decode_step() -> None:
    decoder, model = pair({"V": 16, "D": 16, "F": 64, "N": 2, "K": 2, "H": 8, "L": 2}, dict.fromkeys(
        ("gated", "tied", "norm_gain", "rotary"), False))  # fmt: skip
    caches = [decoder.new_cache() for _ in range(3)]
    decoder.forward_batch([[1] * 10] * 3, caches)
    before = decoder.work.flops
    decoder.forward_batch([[2]] * 3, caches)
    assert decoder.work.flops - before == model.decode(B, S, **WHOLE).flops.subs({B: 3, S: 11})
