import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel import Deployment, accelerator, load, stated_model, transformer
from costmodel.common.errors import CostModelError
from costmodel.parallel import Parallel
from costmodel.parallel.device import device_pass
from costmodel.roofline import model_flops_utilisation
from costmodel.symbols import B, S

H100 = accelerator("h100-sxm")
LLAMA = Deployment(load("llama-3-8b"), H100)
MODELS = st.sampled_from(["llama-2-7b", "llama-3-8b", "llama-3-70b", "mistral-7b-v0.1", "8b", "qwen3-0.6b"])
FORMATS = st.sampled_from(["bf16", "fp8", "int4", "mxfp4"])
DEPLOYMENTS = st.builds(
    lambda m, w, c, r, n: Deployment(load(m), H100.times(n), weights=w, cache=c, reserve=r),
    MODELS, FORMATS, FORMATS, st.sampled_from([0, 0.1, 0.25]), st.integers(1, 4),
)  # fmt: skip


@given(deployment=DEPLOYMENTS, context=st.integers(1, 300_000))
def test_largest_batch_fits_and_one_more_does_not(deployment: Deployment, context: int) -> None:
    batch = deployment.largest_batch(context)
    assert batch == 0 or deployment.fits(batch, context)
    assert not deployment.fits(batch + 1, context)


@given(deployment=DEPLOYMENTS, batch=st.integers(1, 500))
def test_longest_context_fits_and_one_more_does_not(deployment: Deployment, batch: int) -> None:
    context = deployment.longest_context(batch)
    if context is None:
        assert deployment.fits(batch, 10**15)
    else:
        assert context == 0 or deployment.fits(batch, context)
        assert not deployment.fits(batch, context + 1)


@given(deployment=DEPLOYMENTS, batch=st.integers(1, 2000), context=st.integers(1, 100_000))
def test_wall_names_what_does_not_fit(deployment: Deployment, batch: int, context: int) -> None:
    wall = deployment.wall(batch, context)
    assert (wall is None) == deployment.fits(batch, context)
    assert (wall == "weights") == (deployment.weight_bytes > deployment.usable_bytes)


@given(deployment=DEPLOYMENTS, batch=st.integers(1, 2000), context=st.integers(1, 100_000), textbook=st.booleans())
def test_compiled_grid_equals_single_answers(deployment: Deployment, batch: int, context: int, textbook: bool) -> None:
    deployment = Deployment(deployment.model, H100, weights="int4", textbook=textbook)
    grid, step = deployment.grid([batch], [context]), deployment.decode(batch, context)
    assert grid["seconds_per_token"][0] == pytest.approx(step.seconds_per_token, rel=1e-12)
    assert grid["tokens_per_s"][0] == pytest.approx(step.tokens_per_s, rel=1e-12)
    assert grid["memory_bytes"][0] == pytest.approx(step.memory_bytes, rel=1e-9)  # bytes round up to whole ones


def test_grid_broadcasts() -> None:
    found = LLAMA.grid(np.arange(1, 5)[:, None], np.array([1024, 8192]))
    assert {name: a.shape for name, a in found.items()} == dict.fromkeys(found, (4, 2))


def test_memory_is_weights_and_caches() -> None:
    assert LLAMA.memory_bytes(16, 8192) == 16_060_522_496 + 16 * 8192 * 131_072
    assert LLAMA.memory_bytes(B, S) == 16_060_522_496 + 131_072 * B * S


def test_a_window_makes_the_context_unbounded() -> None:
    mistral = Deployment(load("mistral-7b-v0.1"), H100)
    assert mistral.longest_context(1) is None
    assert mistral.largest_batch(4096) == mistral.largest_batch(10**6)
    assert isinstance(mistral.longest_context(200), int)


def test_weights_that_do_not_fit() -> None:
    llama = Deployment(load("llama-3-70b"), H100)
    assert (llama.wall(1, 1), llama.largest_batch(1024), llama.longest_context(1)) == ("weights", 0, 0)


def test_reserve_is_exact() -> None:
    assert Deployment(load("8b"), H100, reserve=0.1).usable_bytes == 72 * 10**9
    assert Deployment(load("8b"), H100, reserve=Fraction(1, 10)).usable_bytes == 72 * 10**9
    for reserve in (1, -0.1, 2, float("nan")):
        with pytest.raises(CostModelError, match="reserve must be at least 0 and below 1, got"):
            Deployment(load("8b"), H100, reserve=reserve)


def test_weights_and_cache_have_their_own_formats() -> None:
    d = Deployment(load("llama-2-70b"), H100.times(2), weights="fp8", cache="bf16")
    assert d.weight_bytes == 68_976_648_192
    assert d.cache_bytes(1) == 327_680
    assert Deployment(load("8b"), H100, weights="int4").weight_bytes == 4 * 10**9


def test_fewer_weight_bits_change_traffic_but_not_the_peak() -> None:
    wide, narrow = (Deployment(load("llama-3-8b"), H100, weights=w) for w in ("bf16", "int4"))
    assert narrow.prefill(8192).compute_seconds == wide.prefill(8192).compute_seconds
    assert 3 < wide.decode(1, 1).seconds_per_token / narrow.decode(1, 1).seconds_per_token < 4


def test_latency_grows_and_throughput_gains_less_and_less() -> None:
    steps = [LLAMA.decode(b, 4096) for b in (1, 8, 64, 512)]
    assert all(a.seconds_per_token < b.seconds_per_token for a, b in itertools.pairwise(steps))
    gains = [b.tokens_per_s / a.tokens_per_s for a, b in itertools.pairwise(steps)]
    assert all(1 < later < earlier for earlier, later in itertools.pairwise(gains))


def test_decode_is_memory_bound_and_prefill_compute_bound() -> None:
    assert LLAMA.decode(1, 1024).bound == "memory"
    assert LLAMA.prefill(4096).bound == "compute"


@pytest.mark.parametrize("batch", [0, -1, 1.5, True, "2", None, float("nan")])
def test_bad_arguments_are_named(batch: object) -> None:
    for ask in (lambda b: LLAMA.decode(b, 1024), LLAMA.longest_context):
        with pytest.raises(CostModelError, match="batch must be a whole number, at least 1, got"):
            ask(batch)


def test_symbolic_model_and_numeric_accelerator_mix() -> None:
    step = Deployment(transformer(), H100).decode(1, S)
    assert step.seconds_per_token.has(S)


@pytest.mark.parametrize(
    ("kv_heads", "published"),
    [
        (40, {1: 4.98, 8: 12.13, 16: 20.30, 32: 36.65, 64: 69.33, 240: 249.09}),
        (8, {1: 4.17, 8: 5.60, 16: 7.23, 32: 10.50, 64: 17.04, 240: 52.99}),
    ],
)
def test_scaling_book_13b(kv_heads: int, published: dict[int, float]) -> None:
    """R-scalingbook: 13B in bf16 on 8 TPU v5e at S = 8192, within 0.3 % (inference chapter of the book)."""
    model = stated_model(params=13 * 10**9, L=40, K=kv_heads, H=128)
    chips = Deployment(model, accelerator("tpu-v5e").times(8), textbook=True)
    for batch, milliseconds in published.items():
        assert chips.decode(batch, 8192).seconds_per_token * 1e3 == pytest.approx(milliseconds, rel=3e-3)


def test_a_calibrated_forecast_knows_no_stages() -> None:
    with pytest.raises(CostModelError, match="calibrated knows tensor parallelism and replicas"):
        Deployment(load("llama-3-8b"), accelerator("h100-sxm"), parallel=Parallel(pipeline=2), calibrated=True)


def test_the_textbook_multiplies_with_what_a_token_uses() -> None:
    """Of a mixture all experts are stored, read and counted as memory; a token works in two of eight."""
    mixtral, chips = load("mixtral-8x7b"), H100.times(8)
    d = Deployment(mixtral, chips, textbook=True)
    used = mixtral.matrix_params - 32 * 6 * 3 * 4096 * 14336  # six idle experts in each of 32 layers
    assert d.prefill(1000).seconds == 2 * used * 1000 / chips.peak() == pytest.approx(3.256e-3, rel=1e-4)
    assert d.decode(4, 10).timing.flops == 2 * used * 4
    share = model_flops_utilisation(params=used, tokens=1000, seconds=d.prefill(1000).seconds, accelerator=chips)
    assert share == 1
    assert d.decode(1, 10).memory_bytes > 2 * mixtral.matrix_params
    dense = Deployment(load("llama-3-8b"), H100, textbook=True)
    assert dense.prefill(1000).flops == 2 * dense.model.matrix_params * 1000
    halves = [layer for block, _ in device_pass(mixtral, Parallel(tensor=2)).blocks for layer in block.layers]
    assert sum(x.active_matrix_params for x in halves) < sum(x.matrix_params for x in halves)


def test_the_textbook_prefills_at_the_peak() -> None:
    d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), textbook=True)
    assert (d.prefill(1, 16).bound, d.decode(4096, 16).bound) == ("compute", "memory")
