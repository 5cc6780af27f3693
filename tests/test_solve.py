"""Turning a deployment round: an unknown from a target, and why there is none."""

import sys
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import CostModelError, Deployment, accelerator, load, stated_model
from costmodel.exact import exact
from costmodel.parallel import Parallel
from costmodel.sizing.heads import with_kv_heads
from costmodel.sizing.levers import LEVERS, METRICS, Use, formula
from costmodel.symbols import S
from tests.test_sizing import H100, LLAMA

DEPLOYMENTS = st.builds(
    lambda m, h, w, c, t: Deployment(load(m), accelerator(h), weights=w, cache=c, parallel=Parallel(tensor=t)),
    st.sampled_from(["llama-2-7b", "llama-3-8b", "gemma-2-9b", "mixtral-8x7b", "mistral-7b-v0.1"]),
    st.sampled_from(["h100-sxm", "a100-sxm-80gb", "l40s"]),
    st.sampled_from(["bf16", "fp8", "int4"]), st.sampled_from(["bf16", "fp8"]), st.sampled_from([1, 2, 4]),
)  # fmt: skip
ASKED = st.sampled_from(
    [(metric, lever) for metric in METRICS for lever in LEVERS if lever not in ("utilisation", "activation_bits")]
)


@settings(max_examples=40)
@given(d=DEPLOYMENTS, asked=ASKED, batch=st.integers(1, 300), context=st.integers(64, 20_000))
def test_solving_undoes_evaluating(d: Deployment, asked: tuple[str, str], batch: int, context: int) -> None:
    """The metric at the root is the target; where the metric moves with the lever, the root is where it came from."""
    metric, name = asked
    use = Use(batch, context, prompt=777, price=Fraction(5, 2), utilisation=Fraction(1, 2))
    lever = LEVERS[name]
    now = lever.now(d, use)
    if now is None:
        return
    values = formula(metric, d, use, [lever])
    if not values.has(lever.symbol):
        return
    at = lambda x: float(values.subs(lever.symbol, exact(x)))  # noqa: E731
    target = at(now)
    given_ = {key: getattr(use, key) for key in ("batch", "context", "prompt", "price", "utilisation") if key != name}
    try:
        found = d.solve(name, **{metric: target}, **given_)
    except CostModelError as error:  # flat here, and every other value meets it as well
        assert "every" in str(error)
        assert at(now * 1.01) == at(now * 0.99) == target
        return
    root = (found.exact if found.exact is not None else float(found)) / lever.scale
    assert at(root) == pytest.approx(target, rel=1e-9)
    slope = (at(float(now) * 1.0001) - at(float(now) * 0.9999)) / target
    if abs(slope) > 1e-5:
        assert float(found) / lever.scale == pytest.approx(float(now), rel=1e-6)


QUESTIONS = [
    ("batch", {"latency": 0.020, "context": 8192}), ("batch", {"throughput": 1000}), ("batch", {"memory": 80e9}),
    ("context", {"latency": 0.010, "batch": 16}), ("prompt", {"ttft": 0.5}), ("bandwidth", {"latency": 0.003}),
    ("peak", {"ttft": 0.1, "prompt": 8192}), ("bits", {"latency": 0.003}),
    ("cache_bits", {"latency": 0.010, "batch": 32, "context": 8192}),
    ("kv_heads", {"latency": 0.010, "batch": 64, "context": 8192}), ("replicas", {"throughput": 10_000, "batch": 16}),
    ("price", {"dollars_per_million": 0.2, "batch": 64}), ("bandwidth", {"joules_per_token": 0.1, "batch": 32}),
    ("utilisation", {"dollars_per_million": 0.2, "batch": 64, "price": 3}),
]  # fmt: skip


@pytest.mark.parametrize(("unknown", "asked"), QUESTIONS)
def test_closed_form_and_bracketed_root_agree(unknown: str, asked: dict) -> None:
    closed = LLAMA.solve(unknown, method="closed form", **asked)
    bracketed = LLAMA.solve(unknown, method="bracketed root", **asked)
    assert float(bracketed) == pytest.approx(float(closed), rel=1e-12)
    assert (closed.usable == bracketed.usable) or closed.usable == pytest.approx(bracketed.usable)
    assert (closed.method, bracketed.method) == ("closed form", "bracketed root")
    assert closed.exact is not None
    assert bracketed.exact is None


@pytest.mark.parametrize("context", [100, 1024, 8192])
@pytest.mark.parametrize("name", ["llama-3-8b", "mixtral-8x7b", "gemma-2-9b"])
def test_the_usable_batch_meets_it_and_one_more_does_not(name: str, context: int) -> None:
    d = Deployment(load(name), H100.times(2))
    found = d.solve("batch", latency=0.020, context=context)
    inside, outside = (d.decode(batch, context).seconds_per_token for batch in (found.usable, found.usable + 1))
    assert inside <= 0.020 < outside
    assert found.fits == d.fits(found.usable, context)


def test_a_whole_root_stays_whole() -> None:
    for batch in (1, 7, 16, 59, 200):
        step = LLAMA.decode(batch, 4096)
        assert LLAMA.solve("batch", latency=step.seconds_per_token, context=4096).usable == batch
        assert LLAMA.solve("batch", throughput=step.tokens_per_s, context=4096).usable == batch
        assert LLAMA.solve("batch", memory=step.memory_bytes, context=4096).usable == batch


def test_usable_values_are_those_one_can_have() -> None:
    heads = LLAMA.solve("kv_heads", latency=0.010, batch=64, context=8192)
    assert (2 < heads < 4, heads.usable) == (True, 2)  # 3 heads would not divide 32
    bits = LLAMA.solve("bits", latency=0.003)
    assert (8 < bits < 16, bits.usable) == (True, "fp8")
    assert LLAMA.solve("replicas", throughput=100).usable == 1
    assert LLAMA.solve("bandwidth", latency=0.003).usable == float(LLAMA.solve("bandwidth", latency=0.003))


def test_solved_bandwidth_and_bits_do_what_they_promise() -> None:
    faster = replace(H100, bandwidth=float(LLAMA.solve("bandwidth", latency=0.003)))
    assert Deployment(LLAMA.model, faster).decode(1, 1024).seconds_per_token == pytest.approx(0.003)
    width = Fraction(float(LLAMA.solve("bits", latency=0.003))) / 8
    assert Deployment(LLAMA.model, H100, weights=width).decode(1, 1024).seconds_per_token == pytest.approx(0.003)


@pytest.mark.parametrize("spread", [Parallel(pipeline=4), Parallel(data=3, pad=True)])
def test_a_shared_batch_counts_in_multiples(spread: Parallel) -> None:
    d, ways = Deployment(LLAMA.model, accelerator("l40s"), parallel=spread), spread.data * spread.pipeline
    found = d.solve("batch", latency=0.020, context=1024)
    assert found.usable % ways == 0
    step = lambda batch: d.decode(batch, 1024).seconds_per_token  # noqa: E731
    assert step(found.usable) <= 0.020 < step(found.usable + 1)
    with pytest.raises(CostModelError, match=rf"no batch meets .*: {ways} share it, and {ways} sequences are too many"):
        d.solve("batch", latency=step(1) * 0.9999)


def test_several_targets_are_met_together() -> None:
    both = LLAMA.solve("batch", latency=0.020, throughput=4000)
    assert both == LLAMA.solve("batch", latency=0.020)
    assert LLAMA.decode(both.usable, 1024).tokens_per_s >= 4000
    with pytest.raises(CostModelError, match=r"no batch meets both: latency 0.005 s allows at most .*, throughput"):
        LLAMA.solve("batch", latency=0.005, throughput=20_000)


@pytest.mark.parametrize(
    ("unknown", "asked", "message"),
    [
        ("batch", {"latency": 0.002}, r"no batch reaches 2 ms: reading the weights alone takes 4.48 ms"),
        ("bandwidth", {"latency": 0.0003, "batch": 64}, r"no bandwidth reaches 300 µs: the arithmetic alone takes"),
        ("peak", {"latency": 0.002}, r"no peak reaches 2 ms: reading the weights alone takes 4.48 ms"),
        ("peak", {"latency": 0.0047, "context": 8192}, r"no peak .*: reading weights and caches takes 4.8 ms"),
        ("batch", {"throughput": 1e6}, r"no batch reaches 1 Mtoken/s: the most is 24 ktoken/s"),
        ("batch", {"memory": 8e9}, r"no batch reaches 8 GB: the weights alone take 16.1 GB"),
        ("kv_heads", {"latency": 0.001}, r"no number of KV heads reaches 1 ms: reading the weights alone takes"),
        ("batch", {"dollars_per_million": 0.01, "price": 3}, r"no batch reaches \$0.01: the least is \$0.03473"),
        ("batch", {"ttft": 1}, r"ttft does not depend on batch here"),
        ("batch", {"dollars_per_million": 1}, "dollars need a price"),
        ("batch", {}, rf"^nothing to solve for: give a target, one of {', '.join(METRICS)}$"),
        ("batch", {"latency": "x"}, r"^latency must be a number from -1e\+45 to 1e\+45, got 'x'$"),
        ("batch", {"latency": 0}, r"^latency must be positive, got 0$"),
        ("utilisation", {"dollars_per_million": 0.03, "price": 3, "batch": 256}, r"^no utilisation reaches \$0.03: "),
        ("batch", {"latency": -1}, r"latency must be positive, got -1"),
        ("batch", {"latency": S}, r"latency must be positive, got S"),
        ("batch", {"latency": 1, "batch": 3}, r"batch is the unknown"),
        ("batch", {"latency": 1, "speed": 3}, r"unknown condition 'speed'"),
        ("batch", {"latency": 1, "contxt": 3}, r"unknown condition 'contxt'; did you mean context\?"),
        ("speed", {"latency": 1}, r"unknown lever 'speed'"),
        ("batch", {"latency": 1, "method": "guess"}, r"method must be one of auto, closed form, bracketed root"),
    ],
)
def test_no_solution_says_why(unknown: str, asked: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        LLAMA.solve(unknown, **asked)


def test_what_a_model_lacks_is_said() -> None:
    with pytest.raises(CostModelError, match="no closed form in batch"):
        Deployment(load("mixtral-8x7b"), H100.times(2)).solve("batch", latency=0.02, method="closed form")
    with pytest.raises(CostModelError, match=r"kv_heads can be turned where .* mamba-2.8b-hf has none"):
        Deployment(load("mamba-2.8b-hf"), H100, weights="bf16").solve("kv_heads", latency=0.02)
    with pytest.raises(CostModelError, match=r"every context meets latency 1 s: it is at most"):
        Deployment(load("mistral-7b-v0.1"), H100).solve("context", latency=1, batch=8)


def test_a_calibrated_forecast_is_solved_alike() -> None:
    d = Deployment(load("llama-3-8b"), H100, calibrated=True)
    step = d.decode(24, 2048)
    assert d.solve("batch", latency=step.seconds_per_token, context=2048).usable == 24
    assert d.solve("batch", latency=0.02).usable < LLAMA.solve("batch", latency=0.02).usable  # slower than the bound
    with pytest.raises(CostModelError, match=r"weight_bits cannot be turned in a calibrated forecast"):
        d.solve("bits", latency=0.02)


def test_scaling_book_batch() -> None:
    """R-scalingbook's 13B on 8 TPU v5e takes 20.30 ms at batch 16: so 20.30 ms lead back to 16."""
    model = stated_model(params=13 * 10**9, L=40, K=40, H=128)
    chips = Deployment(model, accelerator("tpu-v5e").times(8), textbook=True)
    assert float(chips.solve("batch", latency=0.0203, context=8192)) == pytest.approx(16, rel=5e-3)


@pytest.mark.parametrize("past", [-10, -1, 0, 1, 10])
def test_each_side_of_the_ridge_has_its_own_closed_form(past: int) -> None:
    """Close to the ridge both branches have a root within the bracket: only one of them is the formula there."""
    last = max(n for n in range(300, 400) if LLAMA.prefill(n).bound == "memory")
    found = LLAMA.solve("prompt", ttft=LLAMA.prefill(last + past).seconds, method="closed form")
    assert (found.usable, float(found)) == (last + past, pytest.approx(last + past, rel=1e-12))
    last = max(n for n in range(350, 450) if LLAMA.decode(n, 64).bound == "memory")
    step = LLAMA.decode(last + past, 64).seconds_per_token
    assert LLAMA.solve("batch", latency=step, context=64, method="closed form").usable == last + past


def test_one_sequence_is_the_least() -> None:
    """Also where the root is one to the last bit, in closed form."""
    step = LLAMA.decode(1, 1024)
    for target in ({"latency": step.seconds_per_token}, {"memory": step.memory_bytes}):
        assert LLAMA.solve("batch", method="closed form", **target).usable == 1
        assert LLAMA.solve("batch", method="bracketed root", **target).usable == 1
    with pytest.raises(CostModelError, match="no batch reaches"):
        LLAMA.solve("batch", latency=step.seconds_per_token * (1 - 1e-6))
    assert LLAMA.solve("batch", throughput=step.tokens_per_s / 2).usable == 1  # the root is below one


@pytest.mark.parametrize("heads", [1, 2, 8, 32])
def test_the_most_heads_that_meet_it(heads: int) -> None:
    step = Deployment(with_kv_heads(LLAMA.model, heads), H100).decode(64, 8192)
    asked = {"batch": 64, "context": 8192, "latency": step.seconds_per_token}
    assert LLAMA.solve("kv_heads", **asked).usable == heads
    assert LLAMA.solve("kv_heads", **asked | {"latency": step.seconds_per_token * 1.2}).usable == heads
    assert LLAMA.solve("kv_heads", **asked | {"latency": 1}).usable == 32  # 385 by the formula; there are no more


@pytest.mark.parametrize("context", [7, 123_457, 3_000_000])
def test_long_contexts_stay_whole(context: int) -> None:
    step = LLAMA.decode(1, context)
    for method in ("closed form", "bracketed root"):
        assert LLAMA.solve("context", latency=step.seconds_per_token, method=method).usable == context
        assert LLAMA.solve("context", memory=step.memory_bytes, method=method).usable == context


def test_groups_share_a_batch_and_nothing_else() -> None:
    groups = Deployment(LLAMA.model, H100, parallel=Parallel(data=3, pad=True))
    assert groups.solve("context", latency=groups.decode(6, 1000).seconds_per_token, batch=6).usable == 1000
    few = groups.solve("batch", throughput=3000)
    assert (14 < few < 15, few.usable) == (True, 15)
    assert groups.solve("batch", throughput=10).usable == 3


def test_a_plateau_says_how_high_it_is() -> None:
    d = Deployment(load("mistral-7b-v0.1"), H100)
    step = d.decode(8, 4096)  # its window: no cache grows further
    most = f"every context meets latency 1 s: it is at most {step.seconds_per_token:.4g} s whatever it is"
    least = f"every context meets throughput 1 token/s: it is at least {step.tokens_per_s:.4g} token/s whatever it is"
    for target, sentence in (({"latency": 1}, most), ({"throughput": 1}, least)):
        with pytest.raises(CostModelError) as why:
            d.solve("context", batch=8, **target)
        assert str(why.value) == sentence


def test_the_root_is_the_exact_one_rounded_once() -> None:
    for price in range(1, 40):
        found = LLAMA.solve("price", dollars_per_million=Fraction(price, 7), batch=64)
        assert float(found) == float(found.exact)


def test_a_root_without_a_closed_form_needs_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    sentence = r"^a root without a closed form needs the package 'scipy': pip install 'costmodel\[studies\]'$"
    with pytest.raises(CostModelError, match=sentence):
        LLAMA.solve("batch", latency=0.02, method="bracketed root")


def test_a_solution_in_words() -> None:
    assert repr(LLAMA.solve("prompt", ttft=LLAMA.prefill(344).seconds)) == "prompt 344 tokens (closed form)"
    assert repr(LLAMA.solve("bits", latency=0.003)) == "weight_bits 10.5641 bit, usable fp8 (closed form)"
