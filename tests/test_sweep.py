"""Sweeps: labelled, the same numbers as single calls, lazily where asked."""

from dataclasses import replace

import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import ceiling

from costmodel import CostModelError, Deployment, accelerator, load
from costmodel.parallel import Parallel
from tests.test_sizing import H100, LLAMA

DENSE = st.sampled_from(["llama-2-7b", "llama-3-8b", "gemma-2-9b", "mistral-7b-v0.1", "qwen3-0.6b", "8b"])


@settings(max_examples=8)
@given(
    name=DENSE, weights=st.sampled_from(["bf16", "fp8", "int4", "mxfp4"]), tensor=st.sampled_from([1, 2, 4]),
    batch=st.lists(st.integers(1, 512).map(lambda n: 4 * n), min_size=1, max_size=3, unique=True),
    context=st.lists(st.integers(1, 50_000), min_size=1, max_size=3, unique=True),
)  # fmt: skip
def test_a_sweep_equals_single_calls_to_the_last_bit(
    name: str, weights: str, tensor: int, batch: list[int], context: list[int]
) -> None:
    d = Deployment(load(name), H100, weights=weights, parallel=Parallel(tensor=tensor))
    found = d.sweep(batch=batch, context=context, metrics=("latency", "throughput", "memory", "ttft"))
    assert found.latency.dims == ("batch", "context")
    assert found.ttft.dims == ("context",)
    for b in batch:
        for s in context:
            point, step = found.sel(batch=b, context=s), d.decode(b, s)
            assert float(point.memory) == step.memory_bytes
            assert float(point.ttft) == d.prefill(s).seconds
            assert float(point.latency) == step.seconds_per_token
            assert float(point.throughput) == step.tokens_per_s


@pytest.mark.parametrize("name", ["mixtral-8x7b", "gemma-3-27b-it", "deepseek-v3", "jamba-1.5-mini"])
def test_a_sweep_equals_sweeps_of_single_points(name: str) -> None:
    """To the last bit also where experts are expected values, which a decode step adds up in another order."""
    d = Deployment(load(name), H100.times(16), weights="fp8")
    batch, context = [1, 3, 64], [100, 5000]
    found = d.sweep(batch=batch, context=context)
    for b in batch:
        for s in context:
            alone, point = d.sweep(batch=b, context=s), found.sel(batch=b, context=s)
            assert all(float(alone[v]) == float(point[v]) for v in found)
            assert float(point.latency) == pytest.approx(d.decode(b, s).seconds_per_token, rel=1e-12)


def test_chunks_give_the_same_numbers() -> None:
    axes = {"batch": range(1, 101), "context": np.arange(1, 201) * 50}
    whole, chunked = LLAMA.sweep(**axes), LLAMA.sweep(**axes, chunks=3000)
    assert chunked.latency.chunks == ((15,) * 6 + (10,), (200,))
    xarray.testing.assert_identical(whole, chunked.compute())


def test_a_distributed_client_computes_the_chunks() -> None:
    from dask.distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None):
        found = LLAMA.sweep(batch=range(1, 101), context=[1024, 8192], chunks=50)
        best = float(found.throughput.where(found.memory <= H100.capacity).max())
    assert best == LLAMA.decode(100, 1024).tokens_per_s


def test_axes_units_and_the_deployment_are_labelled() -> None:
    found = LLAMA.sweep(batch=[1, 2], context=[1024], price=3.0, metrics=("latency", "dollars_per_million"))
    assert dict(found.sizes) == {"batch": 2, "context": 1}
    assert (found.latency.units, found.dollars_per_million.units, found.context.units) == ("s", "$", "tokens")
    assert (found.attrs["model"], found.attrs["accelerator"], found.attrs["weights"]) == (
        "llama-3-8b", "h100-sxm", "bf16",
    )  # fmt: skip
    assert float(found.price) == 3


def test_formats_accelerators_and_spreads_are_axes() -> None:
    spreads = [Parallel(), 2]
    found = LLAMA.sweep(accelerator=["h100-sxm", "h200-sxm"], weights=["bf16", "int4"], parallel=spreads, batch=[1, 8])
    assert found.latency.dims == ("accelerator", "weights", "parallel", "batch")
    assert "weights" not in found.attrs
    point = found.latency.sel(accelerator="h200-sxm", weights="int4", parallel="tensor 2", batch=8)
    d = Deployment(LLAMA.model, accelerator("h200-sxm"), weights="int4", parallel=Parallel(tensor=2))
    assert float(point) == d.decode(8, 1024).seconds_per_token


def test_numbers_of_hardware_and_model_are_axes() -> None:
    found = LLAMA.sweep(bandwidth=[3.35e12, 6.7e12], kv_heads=[1, 8], weight_bits=[4, 16], batch=4)
    at = found.sel(bandwidth=3.35e12, kv_heads=8, weight_bits=16)
    assert float(at.latency) == LLAMA.decode(4, 1024).seconds_per_token
    assert found.memory.dims == ("kv_heads", "weight_bits")
    small = Deployment(LLAMA.model, H100, weights="int4").decode(4, 1024)
    assert float(found.latency.sel(bandwidth=3.35e12, kv_heads=8, weight_bits=4)) == small.seconds_per_token


SPREADS = st.builds(
    lambda data, pipeline: Parallel(data=data, pipeline=pipeline), st.sampled_from([1, 2, 3, 8]),
    st.sampled_from([1, 2, 4]),
)  # fmt: skip


WIDE = DENSE.filter(lambda name: name != "8b")  # stages pass a width on, which that one does not state


@settings(max_examples=12)
@given(name=WIDE, spread=SPREADS, batch=st.lists(st.integers(1, 300), min_size=1, max_size=3, unique=True))
def test_groups_and_stages_share_any_batch_as_single_calls_do(name: str, spread: Parallel, batch: list[int]) -> None:
    """To the last bit, also where a batch is no multiple of those that share it."""
    d = Deployment(load(name), H100, parallel=replace(spread, pad=True))
    found, grid = d.sweep(batch=batch, context=1024), d.grid(batch, 1024)
    steps = [d.decode(b, 1024) for b in batch]
    assert found.latency.values.tolist() == [step.seconds_per_token for step in steps]
    assert found.throughput.values.tolist() == [step.tokens_per_s for step in steps]
    assert found.memory.values.tolist() == [step.memory_bytes for step in steps]
    assert grid["seconds_per_token"].tolist() == pytest.approx([step.seconds_per_token for step in steps], rel=1e-14)
    assert grid["memory_bytes"].tolist() == [step.memory_bytes for step in steps]


def test_one_device_has_no_steps() -> None:
    assert not any(formula.has(ceiling) for formula in LLAMA.formulas.values())


def test_each_device_holds_a_whole_head_at_least() -> None:
    d = Deployment(LLAMA.model, H100, parallel=Parallel(tensor=16))
    found = d.sweep(kv_heads=[1, 2, 4, 8, 16], batch=64, context=8192).latency
    assert found.values.tolist() == [d.decode(64, 8192).seconds_per_token] * 5


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"speed": [1]}, "unknown axis 'speed'"), ({"batch": [0]}, "batch must be whole numbers, at least 1, got 0"),
        ({"batch": [1.5]}, "batch must be whole numbers"), ({"batch": []}, "batch must be a number or a sequence"),
        ({"batch": "8"}, "batch must be a number or a sequence"), ({"bandwidth": [-1.0]}, "bandwidth must be above 0"),
        ({"batch": [1], "metrics": ("speed",)}, "unknown metric 'speed'"),
        ({"batch": [1], "chunks": 0}, "chunks must be a whole number of points, at least 1, got 0"),
        ({"weights": ["int5"]}, "unknown number format 'int5'"),
        ({"weights": []}, r"weights must be a name or a sequence of names, got \[\]"),
        ({"utilisation": [0.5, 2.0], "price": 3.0}, r"utilisation must be above 0 and at most 1, got 2\.0"),
        ({"weights": ["bf16", "int4"], "weight_bits": [16, 4]}, "weights and weight_bits say the same thing twice"),
        ({"weights": "int4", "bits": 4}, "weights and weight_bits say the same thing twice"),
        ({"cache": ["bf16"], "cache_bits": 16}, "cache and cache_bits say the same"),
        ({"activations": "bf16", "activation_bits": 16}, "activations and activation_bits say the same"),
        ({"kv_heads": [8, 3]}, r"query heads \(32\) must be a multiple of key/value heads \(3\)"),
        ({"kv_heads": [64]}, r"query heads \(32\) must be a multiple of key/value heads \(64\)"),
        ({"bandwidth": [float("inf")]}, "bandwidth must be above 0 and finite, got inf"),
        ({"contxt": [1]}, r"unknown axis 'contxt'; did you mean context\?"),
        ({"batch": [[1], [1, 2]]}, "batch must be a number or a sequence"),
        ({"metrics": "latency"}, r"metrics must be a sequence, such as \['latency'\], got 'latency'"),
        ({"weights": [None, "int4"]}, r"weights must be a name or a sequence of names, got \[None, 'int4'\]"),
        ({"cache": -0.5}, "cache|bytes per element"),
        ({"accelerator": []}, r"accelerator must be a name or a sequence of names, got \[\]"),
    ],
)  # fmt: skip
def test_bad_axes_are_named(axes: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        LLAMA.sweep(**axes)


def test_an_axis_of_one_choice_is_that_choice() -> None:
    one = LLAMA.sweep(batch=[1, 4], context=1024, weights="fp8")
    assert (
        one["latency"].values.tolist()
        == LLAMA.sweep(batch=[1, 4], context=1024, weights=["fp8"])["latency"].values.ravel().tolist()
    )


def test_a_format_may_be_bytes_of_an_element() -> None:
    found = LLAMA.sweep(weights=[0.5, "bf16"], batch=[1, 8])
    assert found.weights.values.tolist() == ["0.5", "bf16"]
    assert found.latency.values[0].tolist() == LLAMA.sweep(weights="int4", batch=[1, 8]).latency.values.tolist()
    assert LLAMA.sweep(weights=0.5, batch=1).memory == found.memory.values[0, 0]
