"""Exact derivatives on the branch that binds, against finite differences of plain formulas."""

from collections.abc import Callable
from dataclasses import replace
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Max, Min, Rational, floor

from costmodel import CostModelError, Deployment, accelerator, load, stated_model, transformer
from costmodel.evaluate import compile_formulas
from costmodel.hardware import SYMBOLIC_ACCELERATOR
from costmodel.parallel import Parallel
from costmodel.sizing.branches import binding_branch, branches
from costmodel.sizing.levers import LEVERS, METRICS, Use, formula
from costmodel.symbols import B, S
from tests.test_sizing import H100, LLAMA
from tests.test_solve import DEPLOYMENTS

STEP = 1e-4


@settings(max_examples=8)
@given(
    d=DEPLOYMENTS, metric=st.sampled_from(["latency", "ttft", "throughput", "memory", "dollars_per_million"]),
    batch=st.integers(1, 300), context=st.integers(64, 20_000),
)  # fmt: skip
def test_elasticities_are_finite_differences(d: Deployment, metric: str, batch: int, context: int) -> None:
    """Central differences of the logarithm, step 1e-4, to 1e-6; a kink between them is left out."""
    where = {"batch": batch, "context": context, "prompt": 777, "price": 3, "utilisation": Rational(1, 2)}
    found = d.elasticities(metric=metric, **where)
    use, levers = Use(**where), [LEVERS[name] for name in found.levers]
    compiled = compile_formulas([formula(metric, d, use, levers)], [one.symbol for one in levers])
    at = [float(one.now(d, use)) for one in levers]
    value = lambda i, by: float(compiled(*(x * (by if j == i else 1) for j, x in enumerate(at)))[0])  # noqa: E731
    for i, one in enumerate(levers):
        low, here, high = (log(value(i, 1 + by)) for by in (-STEP, 0, STEP))
        if abs((high - here) - (here - low)) < STEP * 1e-3:  # no kink between the two
            slope = (high - low) / log((1 + STEP) / (1 - STEP))
            assert found[one.name] == pytest.approx(slope, abs=1e-6), one.name


def test_the_strongest_lever_comes_first() -> None:
    found = LLAMA.elasticities(batch=64, context=8192)
    sizes = [abs(value) for value in found.levers.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert (found.first, found["bandwidth"], found["peak"]) == ("bandwidth", -1, 0)
    assert found["cache_bits"] > found["weight_bits"] > 0  # many long conversations: the cache weighs more
    assert (found.bound, found.tie) == ("memory", False)
    assert LLAMA.elasticities(batch=1, context=128)["weight_bits"] > 0.99


def test_a_percent_more_bandwidth_buys_a_percent() -> None:
    faster = replace(H100, bandwidth=H100.bandwidth * 1.01)
    before, after = (Deployment(LLAMA.model, d).decode(8, 4096).seconds_per_token for d in (H100, faster))
    assert (after / before - 1) * 100 == pytest.approx(LLAMA.elasticities(8, 4096)["bandwidth"], rel=0.011)


def test_at_a_tie_both_branches_are_given() -> None:
    model = stated_model(params=10**9, L=1, K=1, H=1)
    even = replace(H100, peaks={"bf16": 10**12}, bandwidth=10**12)
    device = replace(even, bandwidth=even.bandwidth * model.decode(1, 1).bytes, peaks={"bf16": 10**12 * 2 * 10**9})
    found = Deployment(model, device).elasticities(1, 1)
    assert found.tie
    assert found.bound == "memory and compute alike"
    assert {found["bandwidth"], found.other["bandwidth"]} == {0, -1}
    assert {found["peak"], found.other["peak"]} == {0, -1}
    assert "on the other branch" in str(found)
    assert "step" not in str(found)


def test_a_step_of_the_formula_is_no_tie_of_memory_and_compute() -> None:
    """At S = W a window just fills: more context costs nothing more, and the step stays bound by memory."""
    d = Deployment(load("mistral-7b-v0.1"), H100)
    found = d.elasticities(1, 4096)
    assert (found.tie, found.bound) == (True, "memory")
    assert (found["context"], found.other["context"] > 0) == (0, True)
    assert str(found).startswith("latency 0.00440699 s, bound by memory, at a step of its formula\n")
    assert "step" not in str(d.elasticities(1, 4095))
    assert d.elasticities(1, 4096, metric="memory").bound == ""


def test_the_interconnect_is_a_lever_where_devices_talk() -> None:
    d = Deployment(load("llama-3-70b"), accelerator("h100-sxm"), parallel=Parallel(tensor=4))
    found = d.elasticities(batch=16, context=4096)
    step = d.decode(16, 4096)
    assert found["interconnect"] == pytest.approx(-step.timing.communication_seconds / step.seconds_per_token)
    assert "interconnect" not in LLAMA.elasticities(16, 4096).levers


@pytest.mark.parametrize("metric", ["latency", "ttft", "throughput", "memory"])
@pytest.mark.parametrize("batch", [1, 3, 64])
@pytest.mark.parametrize("spread", [Parallel(data=8), Parallel(pipeline=4), Parallel(tensor=2, data=2, pipeline=2)])
def test_the_value_is_that_of_a_batch_which_is_no_multiple(metric: str, batch: int, spread: Parallel) -> None:
    d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), parallel=spread)
    found = d.elasticities(batch, 1024, metric=metric)
    assert found.value == pytest.approx(float(METRICS[metric].formula(d, Use(batch, 1024))), rel=1e-15)
    if metric == "latency" and spread.tensor == 1:  # nothing is summed but what the fullest device reads
        wider = replace(d, accelerator=replace(d.accelerator, bandwidth=d.accelerator.bandwidth * (1 + STEP)))
        slope = log(wider.decode(batch, 1024).seconds_per_token / found.value) / log(1 + STEP)
        assert found["bandwidth"] == pytest.approx(slope, abs=1e-4)


@pytest.mark.parametrize("metric", ["latency", "ttft", "throughput", "memory"])
@pytest.mark.parametrize("tensor", [1, 2, 8, 16, 32])
def test_the_value_is_what_the_deployment_answers(metric: str, tensor: int) -> None:
    """Fewer key/value heads than devices included: none holds less than one."""
    d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), parallel=Parallel(tensor=tensor))
    found = d.elasticities(64, 8192, metric=metric)
    assert found.value == pytest.approx(float(METRICS[metric].formula(d, Use(64, 8192))), rel=1e-15)
    assert (found["kv_heads"] == 0) == (tensor > 8)


def test_at_a_kink_the_first_branch_holds_on_as_levers_grow() -> None:
    assert binding_branch(Max(1, B / 8), {B: 8}) == (B / 8, True)
    assert binding_branch(Max(1, B / 8), {B: 8}, last=True) == (1, True)
    assert binding_branch(Min(4096, S), {S: 4096}) == (4096, True)


def test_a_calibrated_forecast_has_weaker_levers() -> None:
    """Overheads that no lever reaches: bandwidth moves a forecast by less than a percent for each percent."""
    d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), calibrated=True)
    found = d.elasticities(batch=16, context=4096)
    assert -1 < found["bandwidth"] < -0.5
    assert "weight_bits" not in found.levers
    slope = log(
        replace(d, accelerator=replace(d.accelerator, bandwidth=d.accelerator.bandwidth * (1 + STEP))).decode(16, 4096)
        .seconds_per_token / d.decode(16, 4096).seconds_per_token
    ) / log(1 + STEP)  # fmt: skip
    assert found["bandwidth"] == pytest.approx(slope, abs=1e-3)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: Deployment(LLAMA.model, SYMBOLIC_ACCELERATOR).elasticities(), "bandwidth must be a number to be"),
        (lambda: Deployment(transformer(), H100).elasticities(), "kv_heads must be a number to be turned"),
        (lambda: Deployment(transformer(K=8), H100).elasticities(), "taken at numbers, and D has none"),
        (lambda: LLAMA.elasticities(metric="dollars_per_million", price=0), "dollars_per_million is 0 here"),
    ],
)  # fmt: skip
def test_symbols_and_nothing_are_refused_by_name(ask: Callable, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        ask()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"replicas": 2}, "unknown condition 'replicas'; "),
        ({"promt": 2}, r"unknown condition 'promt'; did you mean prompt\?"),
        ({"zzz": 2}, "unknown condition 'zzz'; known: batch, context, price, prompt, utilisation"),
        ({"metric": "latancy"}, r"unknown metric 'latancy'; did you mean latency\?"),
        ({"batch": B}, "batch must be a number to be turned by a percent, got B"),
        ({"price": "3"}, "price must be a number from 0 to .*, got '3'"),
        ({"metric": "dollars_per_million", "price": 3, "utilisation": 2}, "utilisation must be above 0 and at most 1"),
    ],
)
def test_bad_conditions_are_named(where: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        LLAMA.elasticities(**where)


def test_branches_of_nested_maxima() -> None:
    assert set(branches(Max(B, 2) + Max(B, S), B)) == {2 * B, B + S, B + 2, S + 2}
    assert list(branches(Max(S, 3), B)) == [Max(S, 3)]


def test_between_its_steps_a_floor_is_constant() -> None:
    assert binding_branch(3 * floor(B / 4) + S, {B: 9, S: 2}) == (6 + S, False)


def test_the_ranking_shows_itself_in_a_notebook() -> None:
    found = LLAMA.elasticities(batch=1, context=1024)
    assert found._repr_html_() == found.table()._repr_html_()
    assert found._repr_html_().count("<tr>") > 3


@pytest.mark.parametrize("tensor", [1, 2])
@pytest.mark.parametrize("weights", ["bf16", "fp8", "int8", "int4"])
@pytest.mark.parametrize("hardware", ["h100-sxm", "rtx-4090", "l40s", "a100-sxm-80gb", "t4"])
def test_levers_of_a_forecast_start_from_the_forecast(hardware: str, weights: str, tensor: int) -> None:
    """Its arithmetic is that which such weights get: the peak that is turned, swept or solved for is that one's."""
    spread = Parallel(tensor=tensor)
    d = Deployment(LLAMA.model, accelerator(hardware), weights=weights, calibrated=True, parallel=spread)
    first, step = d.prefill(1000), d.decode(64, 1000)
    assert first.peak == step.timing.peak == d.peak == LEVERS["peak"].now(d, Use())
    for metric, seconds in (("ttft", first.seconds), ("latency", step.seconds_per_token)):
        assert d.elasticities(64, 1000, metric=metric).value == pytest.approx(seconds, rel=1e-14)
        swept = d.sweep(batch=64, context=1000, metrics=[metric])[metric]
        assert float(swept) == pytest.approx(seconds, rel=1e-14)
    assert d.solve("peak", ttft=first.seconds, prompt=1000) == pytest.approx(d.peak)
    assert first.seconds >= first.compute_seconds  # no faster than its own arithmetic allows


def test_the_arithmetic_of_a_forecast() -> None:
    made = lambda name, weights, **more: Deployment(  # noqa: E731
        LLAMA.model, accelerator(name), weights=weights, calibrated=True, **more
    )
    cards = ("h100-sxm", "a100-sxm-80gb", "v100-sxm2-32gb")
    assert [made(card, "fp8").arithmetic for card in cards] == ["fp8", "int8", "fp16"]
    assert [made("h100-sxm", bits).arithmetic for bits in ("bf16", "int4")] == ["bf16", "bf16"]
    assert made("t4", "bf16").arithmetic == Deployment(LLAMA.model, accelerator("t4")).arithmetic == "fp16"
    assert made("rtx-4090", "int4").peak == accelerator("rtx-4090").fp16_accumulate
    assert made("h100-sxm", "fp8").decode(1, 1000).timing.ridge == accelerator("h100-sxm").ridge("fp8")
    assert made("h100-sxm", "fp8", parallel=Parallel(tensor=4)).peak == accelerator("h100-sxm").peak("fp8")
    assert Deployment(LLAMA.model, accelerator("h100-sxm"), weights="fp8").peak == accelerator("h100-sxm").peak()


def test_the_links_of_a_forecast_are_not_turned() -> None:
    """Their constants belong to kinds of links: it was a TypeError of a relation without a truth value."""
    d = Deployment(LLAMA.model, accelerator("h100-sxm"), calibrated=True, parallel=Parallel(tensor=4))
    assert "interconnect" not in d.elasticities(64, 1000).levers
    with pytest.raises(CostModelError, match=r"^interconnect cannot be turned in a calibrated forecast: its constants"):
        d.solve("interconnect", latency=0.02)
    with pytest.raises(CostModelError, match=r"^calibrated needs an interconnect in numbers: its constants"):
        d.sweep(interconnect=[1e9, 1e11])
