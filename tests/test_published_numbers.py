"""The series' headline numbers, each by two routes: the familiar function, and the deployment's own expressions."""

import pytest
from sympy import nsimplify, simplify

from costmodel import (
    Deployment,
    accelerator,
    arithmetic_intensity,
    bottleneck,
    compute_transformer_stats,
    decode_seconds_per_token,
    kv_cache_bytes,
    kv_cache_bytes_per_token,
    llama2_13b_config,
    load,
    max_concurrent_requests,
    prefill_seconds,
    ridge_point,
    transformer,
    weight_bytes,
)
from costmodel.common.errors import CostModelError
from costmodel.common.formats import number_format
from costmodel.symbols import B, D, F, H, K, L, N, S, V, memory_bandwidth

CLASS = accelerator("h100-class")
EIGHT = Deployment(load("8b"), CLASS, textbook=True)
SIXTEEN_HEADS = {"V": 32000, "D": 5120, "F": 13824, "N": 40, "H": 128, "L": 40}


def llama(kv_heads: int = 40) -> Deployment:
    return Deployment(transformer(**SIXTEEN_HEADS, K=kv_heads), accelerator("h100-sxm"), textbook=True)


def test_r_ridge() -> None:
    assert f"{ridge_point(989e12):.2f}" == f"{accelerator('h100-sxm').ridge():.2f}" == "295.22"
    assert f"{ridge_point():.2f}" == f"{CLASS.ridge():.2f}" == "298.51"


def test_r_prefill() -> None:
    assert f"{1e3 * prefill_seconds(8e9, 1000):.1f}" == f"{1e3 * EIGHT.prefill(1000).seconds:.1f}" == "16.0"


def test_r_decode() -> None:
    assert f"{1e3 * decode_seconds_per_token(8e9):.3f}" == "4.776"
    weights_alone = EIGHT.weight_bytes / CLASS.bandwidth
    assert f"{1e3 * weights_alone:.3f}" == "4.776"
    assert f"{1 / weights_alone:.0f}" == "209"


@pytest.mark.parametrize(("batch", "percent"), [(1, "0.335"), (64, "21.4")])
def test_r_utilisation(batch: int, percent: str) -> None:
    digits = len(percent.split(".")[1])
    assert f"{100 * arithmetic_intensity(batch) / ridge_point():.{digits}f}" == percent
    step = transformer(V=1, D=10**9, F=10**9, N=1, K=1, H=1, L=1).decode(batch, 1)
    assert f"{100 * step.intensity / CLASS.ridge():.{digits}f}" == percent


def test_bottleneck_turns_at_the_ridge() -> None:
    assert [bottleneck(n) for n in (1, 298, 299, 1000)] == ["memory-bound"] * 2 + ["compute-bound"] * 2
    assert bottleneck(75, bits=4) == "compute-bound"


@pytest.mark.parametrize(("bits", "fmt", "gigabytes"), [(16, "bf16", 140), (4, "int4", 35)])
def test_r_weights(bits: int, fmt: str, gigabytes: int) -> None:
    assert weight_bytes(70 * 10**9, bits) == load("70b").weight_bytes(fmt) == gigabytes * 10**9


def test_r_kv() -> None:
    assert kv_cache_bytes_per_token(32, 8, 128) == load("llama-3-8b").cache_bytes(1) == 131_072
    assert kv_cache_bytes(32_000, 32, 8, 128) == load("llama-3-8b").cache_bytes(32_000) == 4_194_304_000
    for kv_heads, gigabytes in ((32, "67.109"), (8, "16.777")):
        assert f"{kv_cache_bytes(128_000, 32, kv_heads, 128) / 1e9:.3f}" == gigabytes
    assert kv_cache_bytes(128_000, 32, 32, 128) > 64e9 > 3 * kv_cache_bytes(128_000, 32, 8, 128)
    assert kv_cache_bytes(1000, 32, 8, 128, batch=3) == 3 * kv_cache_bytes(1000, 32, 8, 128)
    assert kv_cache_bytes(S, L, K, H, batch=B) == 4 * B * S * L * K * H


def test_r_concurrent() -> None:
    assert max_concurrent_requests(80, 16, 32_000, 32, 8, 128) == 15
    assert EIGHT.largest_batch(32_000) == 15
    assert not EIGHT.fits(16, 32_000)
    assert max_concurrent_requests(80, 90, 32_000, 32, 8, 128) == 0
    assert max_concurrent_requests(80, 16, 32_000, 32, 8, 128, bits=8) == 30
    assert max_concurrent_requests(4.194304, 0, 32_000, 32, 8, 128) == 1  # fits exactly, beside no weights
    assert max_concurrent_requests(20.194304, 16, 32_000, 32, 8, 128) == 1


def test_r_llama2_13b_parameters_and_cache() -> None:
    params, *_ = compute_transformer_stats(llama2_13b_config())
    assert params == llama().params == 13_015_449_600
    assert load("llama-2-13b").params == 13_015_864_320
    assert llama().weight_bytes == 26_030_899_200
    assert llama().cache_bytes(1024) == 838_860_800


def test_r_llama2_13b_latency_is_a_formula_in_the_batch() -> None:
    latency = compute_transformer_stats(llama2_13b_config())[2]
    assert str(latency) == "0.000250406208955224*B + 0.00777041767164179"
    exact = llama().decode(B, 1024).seconds_per_token
    assert simplify(nsimplify(latency, rational=True) - exact).subs(B, 1000) < 1e-15


ROWS = [
    (40, 1, 26_869_760_000, 0.00802082388059702, 124.675471608232),
    (40, 64, 79_717_990_400, 0.0237964150447761, 2689.48074235449),
    (40, 256, 240_779_264_000, 0.0718744071641791, 3561.76850843767),
    (8, 64, 33_412_874_240, 0.00997399231044776, 6416.68832378785),
    (8, 256, 65_625_128_960, 0.0195895907343284, 13068.1647958776),
]


@pytest.mark.parametrize(("kv_heads", "batch", "memory", "latency", "throughput"), ROWS)
def test_r_llama2_13b_and_r_gqa(kv_heads: int, batch: int, memory: int, latency: float, throughput: float) -> None:
    stats = compute_transformer_stats(llama2_13b_config({K: kv_heads, B: batch}))
    assert stats[1] == memory
    assert [float(x) for x in stats[2:]] == pytest.approx([latency, throughput], rel=1e-13)
    step = llama(kv_heads).decode(batch, 1024)
    assert step.memory_bytes == memory
    assert [step.seconds_per_token, step.tokens_per_s] == pytest.approx([latency, throughput], rel=1e-13)


def test_r_llama2_13b_and_r_gqa_fit() -> None:
    assert [llama(k).fits(b, 1024) for k, b in ((40, 64), (40, 256), (8, 256))] == [True, False, True]
    assert llama(8).params == 11_337_728_000


def test_stats_stay_formulas_in_what_is_open() -> None:
    params, memory, latency, throughput = compute_transformer_stats({})
    assert simplify(params - (2 * V * D + 3 * D * F * L + (2 * D * N * H + 2 * D * K * H) * L)) == 0
    assert simplify(memory - 2 * params - 4 * B * S * L * K * H) == 0
    assert simplify(latency - memory / memory_bandwidth) == 0
    assert simplify(throughput - B / latency) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weight_bytes(-1), "params must be a number from 1e-15 to .*, got -1"),
        (lambda: weight_bytes(8, "int4"), "bits must be a number from 1e-15 to .*, got 'int4'"),
        (lambda: kv_cache_bytes(1, 1, 1, 1, batch=-1), "batch must be a whole number, at least 0, got -1"),
        (lambda: kv_cache_bytes(1, 1, 1, 1, batch=2.5), r"batch must be a whole number, at least 0, got 2\.5"),
        (lambda: kv_cache_bytes(-1, 1, 1, 1), "context must be a whole number, at least 0, got -1"),
        (lambda: kv_cache_bytes(1, 0, 1, 1), "L must be a whole number, at least 1, got 0"),
        (lambda: kv_cache_bytes_per_token(1, 1, 1, bits=0), "bits must be a number from 1e-15 to .*, got 0"),
        (lambda: max_concurrent_requests("80", 16, 1, 1, 1, 1), "gpu_gb must be a number from 0 to .*, got '80'"),
        (lambda: max_concurrent_requests(80, -1, 1, 1, 1, 1), "weights_gb must be a number from 0 to .*, got -1"),
        (lambda: max_concurrent_requests(float("nan"), 1, 1, 1, 1, 1), "gpu_gb must be a number from 0 to .*, got nan"),
        (lambda: max_concurrent_requests(80, 16, S, 1, 1, 1), "context must be an integer of at least 1, got S"),
        (lambda: max_concurrent_requests(80, 16, 1, 0, 1, 1), "layers must be an integer of at least 1, got 0"),
        (lambda: max_concurrent_requests(80, 16, 1, 1, 1, 1, bits=0), "bits must be a number from 1e-15 to .*, got 0"),
        (lambda: arithmetic_intensity(0), "tokens_in_parallel must be a number from 1e-15 to .*, got 0"),
        (lambda: arithmetic_intensity(1, bits=0), "bits must be a number from 1e-15 to .*, got 0"),
        (lambda: ridge_point(0), "flops_per_second must be a number from 1e-15 to .*, got 0"),
        (lambda: ridge_point(1, 0), "bytes_per_second must be a number from 1e-15 to .*, got 0"),
        (lambda: bottleneck(B), "tokens_in_parallel must be a number from 1e-15 to .*, got B"),
        (lambda: decode_seconds_per_token("8b"), "params must be a number from 1e-15 to .*, got '8b'"),
        (lambda: decode_seconds_per_token(8, 16, 0), "bytes_per_second must be a number from 1e-15 to .*, got 0"),
        (lambda: prefill_seconds(8, 0), "n_tokens must be a number from 1e-15 to .*, got 0"),
        (lambda: prefill_seconds(8, 1, 0), "flops_per_second must be a number from 1e-15 to .*, got 0"),
        (lambda: llama2_13b_config({"K": 0}), "K must be a number from 1e-15 to .*, got 0"),
        (lambda: compute_transformer_stats({"B": "1 + 1"}), "B must be a number or a formula, got the text '1 . 1'"),
    ],
)
def test_bad_numbers_are_named(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call()


def test_overrides_do_not_leak_into_the_next_call() -> None:
    llama2_13b_config({K: 8})
    assert llama2_13b_config()[K] == 40


def test_r_formats() -> None:
    sizes = {name: float(number_format(name).bytes) for name in ("fp32", "bf16", "fp8", "int8", "int4")}
    assert sizes == {"fp32": 4, "bf16": 2, "fp8": 1, "int8": 1, "int4": 0.5}


def test_correction_embedding_is_gathered() -> None:
    """26.03 GB of weights are stored, 25.70 GB read per decode step."""
    d = Deployment(load("llama-2-13b"), accelerator("h100-sxm"))
    read = d.model.decode(1, 1).elements("weight") * 2
    assert (f"{d.weight_bytes / 1e9:.2f}", f"{read / 1e9:.2f}") == ("26.03", "25.70")
