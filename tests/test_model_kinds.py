"""Latents, experts, constant state, borrowed caches: their counts, and the identities that tie them to plain layers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import simplify

from costmodel import Deployment, accelerator, load, transformer
from costmodel.common.errors import CostModelError
from costmodel.layers import (
    Attention,
    GatedDelta,
    LatentAttention,
    LinearAttention,
    Mamba,
    Mamba2,
    Mlp,
    Moe,
    distinct_experts,
)
from costmodel.model import Block, Model
from costmodel.operation import SYMBOLIC
from costmodel.passes import ForwardPass
from costmodel.symbols import A, B, C, D, E, F, H, K, L, N, R, S, T, b_kv

DECODE = ForwardPass(tokens=1)
H100 = accelerator("h100-sxm")


def test_mla_caches_latent_and_rotary_part_once() -> None:
    """R-mla: 512 + 64 = 576 numbers per token and layer, from 16,384 keys and as many values."""
    assert simplify(LatentAttention().cache_elements(S) - (C + R) * S) == 0
    deepseek = load("deepseek-v2-lite").blocks[0][0].layers[1]
    assert deepseek.cache_elements(1) == 512 + 64 == 576
    assert load("deepseek-v3").cache_bytes(1) == 61 * 576 * 2 == 70_272
    plain = Attention(heads=128, kv_heads=128, head_width=128).cache_elements(1)
    assert plain == 2 * 16_384


@given(shape=st.tuples(*[st.integers(1, 6)] * 8), seed=st.integers(0, 99))
def test_absorbed_and_expanded_latents_give_the_same_result(shape: tuple, seed: int) -> None:
    heads, tokens, latent, rotary, key, value, width, _ = shape
    rng = np.random.default_rng(seed)
    latents, turned = rng.normal(size=(tokens, latent)), rng.normal(size=(tokens, rotary))
    q, q_turned = rng.normal(size=(heads, key)), rng.normal(size=(heads, rotary))
    up_key, up_value = rng.normal(size=(heads, key, latent)), rng.normal(size=(heads, latent, value))
    out = rng.normal(size=(heads, value, width))

    def softmax(x: np.ndarray) -> np.ndarray:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    position = q_turned @ turned.T
    keys, values = np.einsum("sc,nhc->nsh", latents, up_key), np.einsum("sc,ncu->nsu", latents, up_value)
    expanded = np.einsum("ns,nsu,nud->d", softmax(np.einsum("nh,nsh->ns", q, keys) + position), values, out)
    absorbed_q = np.einsum("nh,nhc->nc", q, up_key)
    mixed = softmax(absorbed_q @ latents.T + position) @ latents
    np.testing.assert_allclose(np.einsum("nc,ncu,nud->d", mixed, up_value, out), expanded, rtol=1e-9, atol=1e-9)


def test_absorbing_pays_in_decode_and_not_in_prefill() -> None:
    absorbed, expanded = (LatentAttention(7168, 128, 512, 64, 128, 128, 1536, absorbed=form) for form in (True, False))
    decode, prefill = ForwardPass(1, 1, 4096), ForwardPass(1, 4096, 4096)
    assert absorbed.ledger(decode).flops < expanded.ledger(decode).flops / 10
    assert absorbed.ledger(prefill).flops > expanded.ledger(prefill).flops
    assert absorbed.ledger(decode).bytes < expanded.ledger(decode).bytes
    automatic = LatentAttention(7168, 128, 512, 64, 128, 128, 1536)
    assert automatic.ledger(decode).flops == absorbed.ledger(decode).flops
    assert automatic.ledger(prefill).flops == expanded.ledger(prefill).flops


@pytest.mark.parametrize(("context", "last"), [(300, 125), (8192, 168), (100_000, 170)])
@pytest.mark.parametrize("model", ["deepseek-v2-lite", "deepseek-v3"])
def test_a_few_tokens_absorb_and_many_expand(model: str, context: int, last: int) -> None:
    """C·(H + U)/(2·C − H − U) is 170.7; sooner in a short context, which has fewer old tokens to expand."""
    layer = next(part for part in load(model).blocks[0][0].layers if isinstance(part, LatentAttention))
    forms = [replace(layer, absorbed=form) for form in (True, False, None)]
    for tokens in (1, 2, 17, last - 1, last, last + 1, last + 2, 299):
        absorbed, expanded, chosen = (form.ledger(ForwardPass(1, tokens, context)) for form in forms)
        assert (absorbed.flops <= expanded.flops) is (tokens <= last)
        assert chosen.rows == (absorbed if tokens <= last else expanded).rows


def test_without_numbers_the_form_is_that_of_long_contexts_or_of_a_prefill() -> None:
    layer = LatentAttention(7168, 128, 512, 64, 128, 128, 1536)
    absorbed, expanded = (replace(layer, absorbed=form) for form in (True, False))
    for tokens, form in ((1, absorbed), (170, absorbed), (171, expanded), (T, expanded)):
        assert layer.ledger(ForwardPass(B, tokens, S)).rows == form.ledger(ForwardPass(B, tokens, S)).rows
    one_of_one = ForwardPass(1, 1, 1)
    assert layer.ledger(one_of_one).rows == absorbed.ledger(one_of_one).rows
    letters, few = LatentAttention(), ForwardPass(B, 4, S)
    assert letters.ledger(few).rows == replace(letters, absorbed=False).ledger(few).rows


def test_every_latent_weight_is_read_in_either_form() -> None:
    for form in (True, False):
        layer = LatentAttention(absorbed=form, query_latent=F)
        read = layer.ledger(DECODE).elements("weight")
        assert simplify(read - LatentAttention(query_latent=F).params) == 0


def test_latent_attention_reads_its_cache_once() -> None:
    read = LatentAttention().ledger(DECODE).sized(SYMBOLIC)["scores"].op
    assert simplify(read.reads[1].bytes(SYMBOLIC) - B * S * (C + R) * b_kv) == 0


def test_borrowed_keys_and_values_halve_the_capacity_and_not_the_traffic() -> None:
    own, borrowing = Attention(), Attention(borrows_kv=True)
    assert borrowing.cache_elements(S) == 0
    assert simplify(own.core(DECODE).bytes - borrowing.core(DECODE).bytes) == 0
    assert simplify(own.params - borrowing.params - 2 * D * K * H) == 0
    pairs = Model(((Block((own,)), L), (Block((borrowing,)), L)))
    assert simplify(pairs.cache_elements(S) - transformer().cache_elements(S)) == 0


def test_one_expert_is_a_dense_mlp() -> None:
    one, dense = Moe(Mlp(64, 128), 1, 1), Mlp(64, 128)
    forward = ForwardPass(3, 5, 9)
    routed = one.ledger(forward)
    assert routed.flops - routed["router"].flops == dense.ledger(forward).flops
    assert routed.bytes - routed["router"].bytes == dense.ledger(forward).bytes
    assert one.params - 64 == dense.params == one.active_params - 64


def test_all_experts_are_stored_and_the_chosen_ones_read() -> None:
    moe = Moe()
    assert simplify(moe.params - (3 * D * F * E + D * E)) == 0
    assert simplify(moe.active_params - (3 * D * F * A + D * E)) == 0
    few, many = Moe(Mlp(64, 128), 8, 2), ForwardPass(1000, 1, 9)
    assert few.ledger(ForwardPass(1, 1, 1)).elements("weight") == few.active_params
    assert few.ledger(many).elements("weight") == pytest.approx(few.params)
    with pytest.raises(CostModelError, match=r"experts per token \(16\) exceed the experts \(8\)"):
        Moe(Mlp(), 8, 16)


@given(experts=st.integers(1, 64), tokens=st.integers(1, 50), data=st.data())
def test_expected_experts_lie_between_active_and_all(experts: int, tokens: int, data: st.DataObject) -> None:
    active = data.draw(st.integers(1, experts))
    found = distinct_experts(experts, active, tokens)
    assert active * (1 - 1e-12) <= found <= experts
    assert distinct_experts(experts, active, 1) == pytest.approx(active)


def test_expected_experts_equal_a_simulation() -> None:
    rng, experts, active, tokens = np.random.default_rng(0), 16, 2, 12
    draws = rng.random((20_000, tokens, experts)).argsort(-1)[..., :active].reshape(20_000, -1)
    distinct = np.mean([len(np.unique(row)) for row in draws[:4000]])
    assert distinct == pytest.approx(distinct_experts(experts, active, tokens), rel=0.01)


def test_experts_in_traffic_of_a_real_model() -> None:
    mixtral = Deployment(load("mixtral-8x7b"), accelerator("h200-sxm"))
    one, many = (mixtral.model.decode(b, 1024).elements("weight") for b in (1, 64))
    assert one < 13e9 < 46e9 < many < 46.8e9
    assert mixtral.grid([1, 64], 1024)["seconds_per_token"][0] == pytest.approx(
        mixtral.decode(1, 1024).seconds_per_token
    )


@pytest.mark.parametrize(
    "layer",
    [Mamba(64, 128, 16, 4, 4), Mamba2(64, 8, 16, 16, 2, 4), GatedDelta(64, 2, 4, 8, 8, 4), LinearAttention(64, 4, 16)],
    ids=lambda x: type(x).__name__,
)
def test_constant_state_does_not_grow_and_is_read_and_written(layer: object) -> None:
    assert layer.cache_elements(1) == layer.cache_elements(10**6) > 0
    ledger = layer.ledger(ForwardPass(3, 1, 10**6))
    assert ledger.elements("state") == 2 * 3 * layer.cache_elements(1)
    assert ledger.bytes == layer.ledger(ForwardPass(3, 1, 5)).bytes
    assert layer.params == ledger.elements("weight")
    assert layer.matrix_params <= layer.params


def test_hybrids_keep_a_fixed_part_and_a_slope() -> None:
    """Public reports: cache was charged on every layer, and the state left out."""
    jamba = load("jamba-1.5-mini")
    slope = jamba.cache_elements(1001) - jamba.cache_elements(1000)
    assert slope == 4 * 2 * 8 * 128 == 8_192
    assert jamba.cache_elements(32_768) - 32_768 * slope == 4_587_520
    assert Deployment(load("mamba-2.8b-hf"), H100).longest_context(1) is None


def test_an_8_bit_cache_does_not_shrink_the_state() -> None:
    """A public report: fp8 key/value caches were said to halve the memory of hybrids."""
    jamba = load("jamba-1.5-mini")
    assert jamba.cache_bytes(32_768) == 546_045_952
    assert jamba.cache_bytes(32_768, cache="fp8") == 277_610_496
    assert Deployment(jamba, H100, cache="fp8").cache_bytes(32_768) == 277_610_496


def test_local_layers_keep_their_window_and_global_ones_everything() -> None:
    gemma = load("gemma-3-27b-it")
    assert gemma.cache_elements(32_768) == 2 * 16 * 128 * (10 * 32_768 + 52 * 1024)
    assert [count for _, count in gemma.blocks] == [52, 10]


def test_windowed_layers_are_not_charged_the_whole_context() -> None:
    """A public report on a 31B model: 50 sliding layers (W 1,024, 16 heads of 256) and 10 global (4 heads of 512)."""
    local, everywhere = Attention(5376, 32, 16, 256, window=1024), Attention(5376, 32, 4, 512)
    model = Model(((Block((local,)), 50), (Block((everywhere,)), 10)))
    assert model.cache_elements(32_768) == 1_761_607_680
    assert 50 * local.cache_elements(1) * 32_768 + 10 * everywhere.cache_elements(32_768) == 14_763_950_080


def test_formulas_of_every_architecture_bind_to_its_numbers() -> None:
    for name in (
        "mixtral-8x7b",
        "deepseek-v3",
        "jamba-1.5-mini",
        "qwen3.5-35b-a3b",
        "gemma-2-9b",
        "gpt-oss-20b",
        "gpt2",
    ):
        d = Deployment(load(name), H100.times(16), weights="bf16")
        found = d.grid([1, 7], [100, 5000])
        for i, (batch, context) in enumerate(((1, 100), (7, 5000))):
            step = d.decode(batch, context)
            assert found["seconds_per_token"][i] == pytest.approx(step.seconds_per_token, rel=1e-9), name
            assert found["memory_bytes"][i] == pytest.approx(step.memory_bytes, rel=1e-12), name
        assert d.prefill(1000).seconds > 0


def test_prefill_and_decode_of_symbols_and_numbers_agree() -> None:
    sizes = {D: 32, N: 4, C: 8, R: 2, H: 6, B: 3, S: 11, T: 5}
    numeric = LatentAttention(32, 4, 8, 2, 6, 6, absorbed=False).ledger(ForwardPass(3, 5, 11))
    symbolic = LatentAttention(absorbed=False).ledger(ForwardPass()).subs(sizes)
    assert (numeric.flops, numeric.bytes) == (symbolic.flops, symbolic.bytes)


def test_matrices_are_what_is_left_without_gains() -> None:
    latent = LatentAttention(64, 4, latent=16, rotary=8, key_width=12, value_width=10, query_latent=20)
    assert latent.params - latent.matrix_params == 16 + 20
    assert LatentAttention(64, 4, latent=16, rotary=8, key_width=12, value_width=10).matrix_params > 0
    moe = Moe(Mlp(64, 96), 8, 2, shared=Mlp(64, 32), shared_gate=True)
    assert moe.matrix_params == 8 * 3 * 64 * 96 + 64 * 8 + 3 * 64 * 32 + 64
    assert Moe(Mlp(64, 96), 8, 2).matrix_params == 8 * 3 * 64 * 96 + 64 * 8
