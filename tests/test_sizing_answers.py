"""What the answers say and cost, by hand, on a card and a model with round numbers: words, tables, defaults, money."""

import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from sympy import Max, Min, Rational, ceiling, floor

from costmodel import (
    Accelerator,
    CostModelError,
    Deployment,
    Load,
    Model,
    Slo,
    accelerator,
    compare,
    load,
    pareto,
    plan,
    stated_model,
)
from costmodel.layers import Attention, Mlp
from costmodel.model import Block
from costmodel.parallel import Parallel
from costmodel.sizing.branches import binding_branch, branches
from costmodel.sizing.choice import Choice, Plan
from costmodel.sizing.elasticities import Elasticities
from costmodel.sizing.heads import kv_heads, query_heads, with_kv_heads
from costmodel.sizing.levers import LEVERS, METRICS, Lever, Use, lever, metric
from costmodel.sizing.money import dollars, dollars_per_million, joules_per_token
from costmodel.sizing.pareto import point
from costmodel.sizing.plan import busy_seconds
from costmodel.sizing.plan import choice as made
from costmodel.sizing.sweep import about
from costmodel.sizing.words import as_spread, format_words, spread_words, titled
from costmodel.symbols import B, S, b_kv, b_w, utilisation
from tests.test_sizing import H100, LLAMA

# 1e9 parameters at 2 bytes; each token keeps 2·500·1000 elements of 2 bytes, so a sequence of 1,000 tokens 2 GB.
MODEL = stated_model(params=10**9, L=1, K=500, H=1000, name="round")
CARD = Accelerator("card", capacity=12 * 10**9, bandwidth=10**12, peaks={"bf16": 10**14}, tdp=500, interconnect=10**11)
D = Deployment(MODEL, CARD)
BARE = Model(((Block((Mlp(8, 16),)), 1),), name="bare")  # nothing is cached


def seconds(batch: int, context: int) -> Fraction:
    """Weights, the cache read, and one token of cache written, at 1 TB/s."""
    return Fraction(2 * 10**9 + batch * 2 * 10**6 * (context + 1), 10**12)


def test_the_round_numbers_are_round() -> None:
    assert D.decode(3, 999).seconds_per_token == pytest.approx(float(seconds(3, 999)), rel=1e-12)
    assert (D.weight_bytes, D.cache_bytes(1000)) == (2 * 10**9, 2 * 10**9)
    assert D.largest_batch(1000) == 5
    assert D.longest_context(1) == 5000


def test_dollars_of_what_is_read_and_written() -> None:
    written = seconds(3, 999) / 3 * 36 / 3600 * 10**6 * 2  # at $36 an hour, half the time at work
    read = Fraction(2 * 10**9 + 2 * 50 * 2 * 10**6, 10**12)  # 50 tokens: too few for the arithmetic to take longer
    cost = dollars_per_million(D, 36, batch=3, context=999, prompt=50, utilisation=0.5)
    assert cost["output"] == pytest.approx(float(written), rel=1e-12)
    assert cost["input"] == pytest.approx(float(read / 50 * 36 / 3600 * 10**6 * 2), rel=1e-12)
    use = Use(3, 999, prompt=50, price=36, utilisation=Fraction(1, 2))
    assert float(metric("joules_per_token").formula(D, use)) == pytest.approx(
        joules_per_token(D, batch=3, context=999, utilisation=0.5)
    )
    assert float(metric("dollars_per_million").formula(D, use)) == pytest.approx(cost["output"], rel=1e-12)
    assert float(metric("dollars_per_million_input").formula(D, use)) == pytest.approx(cost["input"], rel=1e-12)


def test_money_and_energy_where_nothing_else_is_said() -> None:
    assert dollars_per_million(D, 36) == dollars_per_million(D, 36, batch=1, context=1024, prompt=1024, utilisation=1)
    assert dollars(10, 20, 30, 40) == dollars(10, 20, 30, 40, utilisation=1) == 10**6 * 30 * 40 * 10 / (20 * 3600)
    assert joules_per_token(D) == joules_per_token(D, batch=1, context=1024, utilisation=1)
    assert joules_per_token(D, batch=3, context=999, utilisation=0.5) == pytest.approx(
        float(500 * seconds(3, 999) / 3 * 2), rel=1e-12
    )
    assert Use().prompt_tokens == Use(1, 1024, None, None, 1).prompt_tokens == 1024
    assert Use(prompt=5).prompt_tokens == 5


def test_groups_and_stages_are_paid_for_and_read_side_by_side() -> None:
    two = Deployment(load("llama-3-8b"), H100, parallel=Parallel(data=2))
    one = dollars_per_million(two, 3, batch=4, context=512)
    assert one["input"] == pytest.approx(2 * 3 / 3600 * 1e6 * two.prefill(512, 2).seconds / (2 * 512))
    assert one["output"] == pytest.approx(2 * 3 / 3600 * 1e6 * two.decode(4, 512).seconds_per_token / 4)
    use = Use(4, 512, price=3)
    assert float(metric("dollars_per_million_input").formula(two, use)) == pytest.approx(one["input"])
    staged = Deployment(load("llama-3-8b"), H100.times(2), parallel=Parallel(pipeline=4))
    assert joules_per_token(staged, batch=8) == pytest.approx(
        H100.times(2).tdp * 8 * staged.decode(8, 1024).seconds_per_token / 8
    )


@pytest.mark.parametrize(("share", "ok"), [(1, True), (1e-9, True), (0, False), (-0.5, False), (1.0001, False)])
def test_utilisation_is_a_share(share: float, ok: bool) -> None:
    if ok:
        assert dollars(1, 1, 1, 1, share) == pytest.approx(10**6 / 3600 / share)
        return
    with pytest.raises(CostModelError, match=f"^utilisation must be above 0 and at most 1, got {share}$"):
        dollars(1, 1, 1, 1, share)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ({"batch": 0}, "batch must be a whole number"), ({"context": 0}, "context must be a whole number"),
        ({"prompt": 0}, "prompt must be a whole number"), ({"price": "3"}, "price must be a number"),
        ({"utilisation": "1"}, "utilisation must be above 0 and at most 1, got '1'"),
    ],
)  # fmt: skip
def test_a_use_is_checked_by_name(use: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=f"^{message}"):
        Use(**use)


def test_words() -> None:
    spread = Parallel(tensor=2, data=3, expert=1, pipeline=4, replicas=5)
    assert spread_words(spread) == "tensor 2, data 3, pipeline 4, replicas 5"
    assert spread_words(Parallel()) == "one device"
    assert as_spread(3) == Parallel(tensor=3)
    assert as_spread(spread) is spread
    assert format_words(D) == "weights bf16, cache bf16"
    assert format_words(replace(D, weights="fp8", cache="int4")) == "weights fp8, cache int4"
    assert titled(D) == "round on card, weights bf16, cache bf16"
    two = Deployment(LLAMA.model, H100, parallel=Parallel(tensor=2))
    assert titled(two) == "llama-3-8b on h100-sxm (tensor 2), weights bf16, cache bf16"


def test_a_comparison_by_hand() -> None:
    table = compare([D, replace(D, cache="fp8")], batch=6, context=999)
    assert list(table.header) == ["deployment", "ms per token", "tokens/s", "memory", "largest batch", ""]
    assert table.rows == [
        ["round on card, weights bf16, cache bf16", "14", "429", "13.99 GB", 5, "does not fit"],
        ["round on card, weights bf16, cache fp8", "8", "750", "7.994 GB", 10, "fits"],
    ]
    priced = compare([D], batch=3, context=999, prices=[36], utilisation=0.5)
    assert list(priced.header)[-1] == "$ per million out"
    assert priced.rows[0][-1] == f"{float(seconds(3, 999) / 3 * 36 / 3600 * 10**6 * 2):.4g}" == "53.33"
    assert [row[4:] for row in compare([D], batch=1, context=1024).rows] == [row[4:] for row in compare([D]).rows]
    assert compare([D], prices=[1]).rows == compare([D], prices=[1], utilisation=1).rows
    assert compare([D]).rows[0][1] == f"{float(1e3 * seconds(1, 1024)):.4g}"


def test_without_a_cache_any_batch_fits() -> None:
    bare = Deployment(Model(((Block((Mlp(100, 200),)), 3),), name="bare"), CARD)
    assert compare([bare]).rows[0][4:] == ["unbounded", "fits"]
    assert bare.largest_batch(10) is None


def test_the_front_uses_price_and_share() -> None:
    point = pareto([D], batch=[2], context=999, prices=[36], utilisation=0.5, against="dollars_per_million")[0]
    assert point.dollars_per_million == pytest.approx(float(seconds(2, 999) / 2 * 36 / 3600 * 10**6 * 2))
    assert (point.batch, point.memory, point.fits) == (2, 2 * 10**9 + 2 * 1998 * 10**6, True)
    assert (point.latency, point.throughput) == pytest.approx((float(seconds(2, 999)), float(2 / seconds(2, 999))))
    plain = pareto([D], batch=[1])[0]
    assert (plain.dollars_per_million, plain.latency) == (None, pytest.approx(float(seconds(1, 1024))))
    full = pareto([D], batch=[1], prices=[36])[0]
    assert full.dollars_per_million == pytest.approx(float(seconds(1, 1024) * 36 / 3600 * 10**6))
    assert point.deployment is D
    assert len(pareto([D, D], batch=[1, 1])) == 1  # equal points do not beat each other: one of them is enough
    with pytest.raises(
        CostModelError, match=r"^dollars need prices=\[…\], one for each deployment, in \$ per device and"
    ):
        pareto([D], batch=[1], against="dollars_per_million")
    with pytest.raises(CostModelError, match=r"^nothing fits: none of 1 deployments holds any batch at 9,999 tokens$"):
        pareto([D], batch=[1], context=9999)


def test_a_wall_is_the_weights_only_where_they_alone_are_too_large() -> None:
    exact = Deployment(MODEL, replace(CARD, capacity=2 * 10**9))
    assert (exact.wall(1, 1), exact.fits(1, 1), exact.largest_batch(1)) == ("cache", False, 0)
    assert Deployment(MODEL, replace(CARD, capacity=2 * 10**9 - 1)).wall(1, 1) == "weights"
    assert (D.wall(5, 1000), D.wall(6, 1000)) == (None, "cache")


def test_the_most_bits_and_heads_that_will_do() -> None:
    exactly = replace(D, weights="fp8").decode(1, 999).seconds_per_token
    assert D.solve("bits", latency=exactly, context=999).usable == "fp8"
    assert D.solve("bits", latency=exactly * 1.001, context=999).usable == "fp8"
    assert D.solve("bits", latency=exactly * 0.999, context=999).usable == "nvfp4"
    four = replace(LLAMA, model=with_kv_heads(LLAMA.model, 4)).decode(64, 8192).seconds_per_token
    for share, heads in ((1, 4), (1.001, 4), (0.999, 2)):
        assert LLAMA.solve("kv_heads", latency=four * share, batch=64, context=8192).usable == heads
    tiny = D.solve("bits", latency=0.001 + 0.002 * 0.02, context=499)
    assert (tiny.usable, tiny.unit) == (float(tiny), "bit")  # 0.3 bits: no format is as narrow


def test_chunks_of_a_sweep() -> None:
    axes = {"batch": range(1, 5), "context": range(1, 11)}
    shapes = {
        25: ((2, 2), (10,)),
        40: ((4,), (10,)),
        7: ((1,) * 4, (7, 3)),
        1: ((1,) * 4, (1,) * 10),
        99: ((4,), (10,)),
    }
    for points, chunks in shapes.items():
        assert D.sweep(**axes, chunks=points).latency.chunks == chunks
    for points in (True, 2.0, "8", 0, -1):
        with pytest.raises(
            CostModelError, match=f"^chunks must be a whole number of points, at least 1, got {points!r}"
        ):
            D.sweep(**axes, chunks=points)


def test_axes_of_records_are_called_by_their_names() -> None:
    found = D.sweep(accelerator=[CARD, replace(CARD, name="other", bandwidth=2 * 10**12)], parallel=[1, Parallel()])
    assert list(found.accelerator.values) == ["card", "other"]
    assert list(found.parallel.values) == ["one device", "one device"]
    assert found.latency.dims == ("accelerator", "parallel")


def test_a_solution_says_what_it_is() -> None:
    found = D.solve("batch", latency=0.009, context=999)
    assert repr(found) == str(found) == "batch 3.5 sequences, usable 3 (closed form)"
    assert repr(D.solve("batch", latency=float(seconds(4, 999)), context=999)) == "batch 4 sequences (closed form)"
    over = D.solve("batch", latency=0.022, context=999)
    assert str(over) == "batch 10 sequences, but memory does not hold that (closed form)"
    assert str(D.solve("replicas", throughput=1)) == "replicas 0.00405, usable 1 (closed form)"
    assert (found.unknown, found.unit, found.target, found.fits, over.fits) == (
        "batch",
        "sequences",
        "latency",
        True,
        False,
    )


def test_of_several_targets_the_tightest_decides() -> None:
    memory = Fraction(3 * 10**9, 1998 * 10**6)  # sequences of 999 tokens beside the weights in 5 GB
    for asked in ({"latency": 0.009, "memory": 5 * 10**9}, {"memory": 5 * 10**9, "latency": 0.009}):
        found = D.solve("batch", context=999, **asked)
        assert (found.target, float(found)) == ("memory", pytest.approx(float(memory)))
    faster = {"latency": 0.002, "ttft": 0.001}
    for asked in (faster, dict(reversed(faster.items()))):
        found = D.solve("bandwidth", context=999, prompt=50, **asked)
        assert (found.target, float(found)) == ("ttft", pytest.approx(2.2e12))
    three = float(seconds(3, 999))
    assert D.solve("batch", latency=three, throughput=3 / three, context=999).usable == 3
    with pytest.raises(CostModelError, match=r"^no batch meets both: latency 0.008 s allows at most 3, throughput"):
        D.solve("batch", latency=three, throughput=3 / three * 1.0001, context=999)


def test_a_solution_knows_whether_it_fits() -> None:
    assert D.solve("batch", memory=12 * 10**9, context=1000).fits
    assert D.solve("batch", memory=12 * 10**9 + 10**5, context=1000).usable == 5
    assert not D.solve("context", memory=12 * 10**9 + 10**7, batch=1).fits
    assert D.solve("bits", latency=0.02, context=4000).fits  # the format that will do is narrower than the root
    assert D.elasticities().levers == D.elasticities(1, 1024).levers


def test_what_a_plan_leaves_out_and_why() -> None:
    ask = lambda **more: plan(MODEL, Slo(), Load(300, 899, 100), prices={"h100-sxm": 2.0}, **more)  # noqa: E731
    devices = ask().best.devices
    assert ask(most_devices=devices).best.devices == devices
    with pytest.raises(CostModelError, match=rf"needs {devices} devices, {devices - 1} can be had$"):
        ask(most_devices=devices - 1)
    assert ask(reserve=0.5).best.batch < ask().best.batch
    first = ask().best.ttft
    assert plan(MODEL, Slo(ttft=first), Load(1, 899, 100), prices={"h100-sxm": 2.0}).best.ttft == first
    wide = stated_model(params=10**9, L=1, K=500, H=10**5, name="wide")
    with pytest.raises(CostModelError) as why:
        plan(wide, Slo(), Load(1, 899, 100), prices={"h100-sxm": 2.0, "l40s": 1.0})
    small = "one device, weights bf16, cache bf16: does not fit: one sequence needs 201.8 GB of"
    assert str(why.value) == f"nothing meets the SLO: h100-sxm, {small} 80 GB; l40s, {small} 48 GB"


def test_what_a_plan_promises_is_kept_to_the_last_bit() -> None:
    h100 = Deployment(MODEL, accelerator("h100-sxm"))
    step = lambda batch: h100.decode(batch, 999).seconds_per_token  # noqa: E731
    ask = lambda slo, rate=1.0, model=MODEL, **more: plan(  # noqa: E731
        model, slo, Load(rate, 899, 100), prices={"h100-sxm": 2.0}, **more
    )
    assert ask(Slo(latency=step(1))).best.batch == ask(Slo(latency=step(2) * 0.999), 10**4).best.batch == 1
    assert [ask(Slo(latency=step(batch)), 10**4).best.batch for batch in (2, 7, 38)] == [2, 7, 38]
    refused = "nothing meets the SLO: h100-sxm, one device, weights bf16, cache bf16: "
    for slo, why in (
        (Slo(ttft=0.0012345), "first token after 1.82 ms, 1.23 ms promised"),
        (Slo(latency=0.00112345), "one sequence alone takes 1.19 ms per token, 1.12 ms promised"),
    ):
        with pytest.raises(CostModelError) as error:
            ask(slo)
        assert str(error.value) == refused + why
    one = stated_model(params=10**9, L=1, K=500, H=38 * 10**3, name="one")  # a sequence takes 75.9 of 80 GB, and 2
    assert Deployment(one, accelerator("h100-sxm")).largest_batch(999) == ask(Slo(), model=one).best.batch == 1
    assert ask(Slo(), 10**9, model=BARE).best.batch > 100  # nothing is cached, so memory sets no limit
    with pytest.raises(CostModelError, match=r"^nothing .*: a plan needs numbers throughout, and what memory holds"):
        ask(Slo(), reserve=utilisation)


TARGETS: dict[str, tuple[Callable[[], object], str]] = {
    "weights": (
        lambda: D.solve("batch", latency=0.0015),
        "no batch reaches 1.5 ms: reading the weights alone takes 2 ms",
    ),
    "caches": (
        lambda: D.solve("batch", latency=0.003, context=999),
        "no batch reaches 3 ms: reading weights and caches takes 4 ms",
    ),
    "arithmetic": (
        lambda: D.solve("bandwidth", ttft=0.001, prompt=100),
        "no bandwidth reaches 1 ms: the arithmetic alone takes 2 ms",
    ),
    "prompt": (
        lambda: D.solve("peak", ttft=0.001, prompt=100),
        "no peak reaches 1 ms: reading the weights alone takes 2 ms",
    ),
    "one token of a mixture": (
        lambda: Deployment(load("mixtral-8x7b"), H100.times(2)).solve("peak", ttft=0.001, prompt=1),
        "no peak reaches 1 ms: reading the weights alone takes 3.81 ms",
    ),
    "exactly the weights": (
        lambda: D.solve("batch", latency=0.002, context=999),
        "no batch reaches 2 ms: reading weights and caches takes 4 ms",
    ),
    "prompt of a mixture": (  # a decode step of one token reads far fewer experts
        lambda: Deployment(load("mixtral-8x7b"), H100.times(2)).solve("peak", ttft=0.001, prompt=1000),
        "no peak reaches 1 ms: reading the weights alone takes 13.9 ms",
    ),
    "step of a mixture": (
        lambda: Deployment(load("mixtral-8x7b"), H100.times(2)).solve("peak", latency=0.001),
        "no peak reaches 1 ms: reading the weights alone takes 3.81 ms",
    ),
    "prompt and caches": (
        lambda: D.solve("peak", ttft=0.0021, prompt=499),
        "no peak reaches 2.1 ms: reading weights and caches takes 4 ms",
    ),
    "memory of the weights": (
        lambda: D.solve("batch", memory=10**9),
        "no batch reaches 1 GB: the weights alone take 2 GB",
    ),
    "memory of weights in other formats": (
        lambda: replace(D, weights="fp8").solve("context", memory=5 * 10**8),
        "no context reaches 500 MB: the weights alone take 1 GB",
    ),
    "memory of weights and caches": (
        lambda: D.solve("batch", memory=3 * 10**9, context=1000),
        "no batch reaches 3 GB: weights and caches take at least 4 GB",
    ),
    "memory of caches": (
        lambda: D.solve("bits", memory=10**9, context=1000),
        "no weight bits reaches 1 GB: weights and caches take at least 2 GB",
    ),
    "memory of exactly the weights": (
        lambda: D.solve("batch", memory=2 * 10**9, context=1000),
        "no batch reaches 2 GB: weights and caches take at least 4 GB",
    ),
    "throughput": (
        lambda: D.solve("bits", throughput=1000, context=999),
        "no weight bits reaches 1 ktoken/s: the most is 500 token/s",
    ),
    "heads": (
        lambda: LLAMA.solve("kv_heads", throughput=10**6),
        "no number of KV heads reaches 1 Mtoken/s: the most is 230 token/s",
    ),
    "share": (
        lambda: D.solve("utilisation", dollars_per_million=10, price=36, context=999),
        "no utilisation reaches $10: the least is $40",
    ),
    "textbook": (
        lambda: replace(D, textbook=True).solve("batch", latency=0.001),
        "no batch reaches 1 ms: reading the weights alone takes 2 ms",
    ),
    "several devices": (
        lambda: Deployment(LLAMA.model, H100, parallel=Parallel(tensor=4)).solve("batch", latency=0.0005),
        "no batch reaches 500 µs: reading the weights alone takes 1.12 ms",  # of each of four, not 4.48 ms
    ),
    "devices that wait for each other": (
        lambda: Deployment(LLAMA.model, H100, parallel=Parallel(tensor=4, seconds_per_message=1e-3)).solve(
            "batch", latency=0.0005
        ),
        "no batch reaches 500 µs: sending between the devices alone takes 393 ms",
    ),
    "devices, a little": (
        lambda: Deployment(LLAMA.model, H100, parallel=Parallel(tensor=4)).solve("batch", latency=0.001122, context=9),
        "no batch reaches 1.12 ms: reading weights and caches and sending between the devices takes 1.12 ms",
    ),
}


@pytest.mark.parametrize("what", TARGETS)
def test_why_not(what: str) -> None:
    ask, sentence = TARGETS[what]
    with pytest.raises(CostModelError) as why:
        ask()
    assert str(why.value) == sentence


CHOICES = [
    Choice("card", replace(D, parallel=Parallel(replicas=n)), batch, n, latency, 0.25, cost, cost / 2)
    for n, batch, latency, cost in [(1, 4, 0.01, 3), (2, 5, 0.02, 6), (3, 6, 0.03, 9), (1, 9, 0.04, 3)]
]  # fmt: skip


def test_a_plan_as_a_table() -> None:
    found = Plan(CHOICES, [("another", "too slow")])
    table, words = found.table(), "one device, weights bf16, cache bf16"
    assert list(table.header) == ["choice", "verdict"]
    assert table.rows == [
        [f"1 x card, {words}, batch 4",
         "the cheapest: $3.00 an hour, $1.5 per million out; 10 ms per token, first after 250 ms"],
        [f"2 x card, {words}, batch 5",
         "runner-up: $6.00 an hour, $3 per million out; 20 ms per token, first after 250 ms"],
        (f"3 x card, {words}, batch 6",
         "dearer: $9.00 an hour, $4.5 per million out; 30 ms per token, first after 250 ms"),
        (f"1 x card, {words}, batch 9",
         "as dear, but slower: $3.00 an hour, $1.5 per million out; 40 ms per token, first after 250 ms"),
        ("another", "too slow"),
    ]  # fmt: skip
    assert (found.best, found.runner_up) == (CHOICES[0], CHOICES[1])
    assert Plan(CHOICES[:1], []).runner_up is None
    assert len(Plan(CHOICES[:1], []).table().rows) == 1
    assert str(found) == repr(found) == str(table)
    assert CHOICES[0].order == (3, 0.01, 4)
    exact = replace(CHOICES[0], latency=0.0123456, ttft=0.0654321)
    assert Plan([exact], []).table().rows[0][1].endswith("out; 12.3 ms per token, first after 65.4 ms")


def test_a_load_is_checked() -> None:
    assert Load(1, 10, 5).context == 15
    assert (Slo().latency, Slo().ttft) == (None, None)
    for bad, message in (
        ((0, 10, 5), "requests_per_s must be a number from 1e-15 to 1e.45, got 0"),
        ((-1, 10, 5), "requests_per_s must be a number from 1e-15 to 1e.45, got -1"),
        ((1, 0, 5), "prompt must be an integer of at least 1, got 0"),
        ((1, 10, 0), "generated must be an integer of at least 1, got 0"),
    ):  # fmt: skip
        with pytest.raises(CostModelError, match=f"^{message}"):
            Load(*bad)


def test_a_plan_on_the_round_card_by_hand() -> None:
    """A request keeps a copy busy for its prefill and its share of 100 steps; half of the time may be so spent."""
    asked, prices = Load(300, 899, 100), {"h100-sxm": 2.0}
    found = plan(MODEL, Slo(latency=0.008), asked, prices=prices, weights=(None, "fp8"), utilisation=0.5)
    for choice in (found.best, found.runner_up):
        d, batch = choice.deployment, choice.batch
        busy = d.prefill(899).seconds + 100 * d.decode(batch, 999).seconds_per_token / batch
        assert choice.devices == d.parallel.replicas == ceil(300 * busy / 0.5) > 20
        assert choice.dollars_per_hour == 2 * choice.devices
        assert choice.dollars_per_million == pytest.approx(2 * choice.devices / (300 * 100 * 3600 / 10**6))
        assert (choice.ttft, choice.hardware) == (d.prefill(899).seconds, "h100-sxm")


def test_a_load_that_fills_its_copies_exactly_needs_no_other() -> None:
    busy = busy_seconds(D, Load(1, 899, 100), 4)
    for copies in (1, 2, 3, 7):
        for share in (1, 0.5):
            asked = Load(copies * share / busy, 899, 100)
            assert made(D, "card", 4, asked, 1, share).devices == copies
            assert (
                made(D, "card", 4, replace(asked, requests_per_s=asked.requests_per_s * 1.001), 1, share).devices
                > copies
            )


def test_elasticities_as_text() -> None:
    ranked = Elasticities(metric("latency"), 0.0125, "memory", {"bandwidth": -1.0, "weight_bits": 0.25, "peak": 0.0})
    assert list(ranked.table().header) == ["lever", "1 % more changes latency by, %"]
    assert ranked.table().rows == [["bandwidth", "-1.0000"], ["weight_bits", "+0.2500"]]
    assert str(ranked) == repr(ranked) == f"latency 0.0125 s, bound by memory\n{ranked.table()}"
    bare = Elasticities(metric("memory"), 5.0, "", {"batch": 0.5})
    assert str(bare).startswith("memory 5 byte\n")
    tied = Elasticities(
        metric("latency"), 1.0, "both", {"peak": -1.0, "bandwidth": 0.0}, {"peak": 0.0, "bandwidth": -1.0}
    )
    assert list(tied.table().header) == ["lever", "1 % more changes latency by, %", "on the other branch, %"]
    assert tied.table().rows == [["peak", "-1.0000", "+0.0000"], ["bandwidth", "+0.0000", "-1.0000"]]
    assert (tied.tie, ranked.tie, ranked.first) == (True, False, "bandwidth")


@pytest.mark.parametrize(
    ("name", "bound"),
    [("latency", "memory"), ("ttft", "compute"), ("memory", ""), ("dollars_per_million_input", "compute"),
     ("dollars_per_million", "memory"), ("throughput", "memory")],
)  # fmt: skip
def test_what_binds_is_that_of_the_pass_asked_about(name: str, bound: str) -> None:
    found = D.elasticities(1, 4000, metric=name, price=3)
    assert (found.bound, found.metric.name) == (bound, name)
    assert found.value == pytest.approx(float(metric(name).formula(D, Use(1, 4000, price=3))))


LEVERS_BY_HAND = {  # name: the unit, what it is now for D at batch 3, context 999 and prompt 500, how it is called
    "batch": ("sequences", 3, "batch"), "context": ("tokens", 999, "context"), "prompt": ("tokens", 500, "prompt"),
    "bandwidth": ("byte/s", 10**12, "bandwidth"), "peak": ("FLOP/s", 10**14, "peak"),
    "weight_bits": ("bit", 2, "weight bits"), "cache_bits": ("bit", 2, "cache bits"),
    "activation_bits": ("bit", 2, "activation bits"), "kv_heads": ("heads", 500, "number of KV heads"),
    "interconnect": ("byte/s", None, "interconnect"), "replicas": ("", 1, "number of replicas"),
    "price": ("$/hour", Rational(1, 100), "price"), "utilisation": ("", Rational(1, 2), "utilisation"),
}  # fmt: skip
COUNTED = {"batch", "context", "prompt", "kv_heads", "replicas"}


@pytest.mark.parametrize("name", LEVERS_BY_HAND)
def test_levers_by_hand(name: str) -> None:
    one: Lever = LEVERS[name]
    unit, now, plural = LEVERS_BY_HAND[name]
    use = Use(3, 999, prompt=500, price=36, utilisation=Rational(1, 2))
    assert (one.name, one.unit, one.plural) == (name, unit, plural)
    assert one.now(D, use) == (None if now is None else pytest.approx(float(now)))
    assert one.whole == (name in COUNTED)
    assert one.scale == (8 if unit == "bit" else 3600 if unit == "$/hour" else 1)
    d, used = one.into(D, use)
    if now is not None and name != "price":
        assert one.now(d, used) == one.symbol
    assert lever(name) is one
    assert list(LEVERS) == list(LEVERS_BY_HAND)


def test_levers_that_cannot_be_turned() -> None:
    assert lever("bits") is LEVERS["weight_bits"]
    calibrated = replace(LLAMA, calibrated=True)
    for name in ("weight_bits", "cache_bits", "activation_bits"):
        message = f"^{name} cannot be turned in a calibrated forecast: its constants belong to formats$"
        with pytest.raises(CostModelError, match=message):
            LEVERS[name].now(calibrated, Use())
    with pytest.raises(CostModelError, match="unknown lever 'speed'"):
        lever("speed")
    with pytest.raises(CostModelError, match="unknown metric 'speed'"):
        metric("speed")
    assert LEVERS["price"].now(D, Use()) is None
    assert LEVERS["interconnect"].now(Deployment(LLAMA.model, H100, parallel=Parallel(tensor=2)), Use()) == 450 * 10**9
    assert LEVERS["weight_bits"].into(D, Use())[0].weights == b_w
    assert LEVERS["peak"].into(D, Use())[0].accelerator.peaks == {"bf16": LEVERS["peak"].symbol}


def test_heads_of_a_model() -> None:
    assert (kv_heads(LLAMA.model), query_heads(LLAMA.model), query_heads(MODEL)) == (8, 32, None)
    fewer = with_kv_heads(LLAMA.model, 2)
    assert (kv_heads(fewer), fewer.cache_elements(10) * 4) == (2, LLAMA.model.cache_elements(10))
    assert [block.name for block, _ in fewer.blocks] == [block.name for block, _ in LLAMA.model.blocks]
    with pytest.raises(CostModelError, match=r"^kv_heads can be turned where .* the same; mamba-2.8b-hf has none$"):
        kv_heads(load("mamba-2.8b-hf"))
    mixed = Model(((Block((Attention(8, 4, 4, 2),)), 1), (Block((Attention(8, 4, 2, 2),)), 1)), name="mixed")
    with pytest.raises(CostModelError, match=r"; mixed has layers with \[2, 4\] of them$"):
        kv_heads(mixed)


@pytest.mark.parametrize("name", METRICS)
def test_metrics_have_units_and_a_direction(name: str) -> None:
    one = METRICS[name]
    units = {"latency": "s", "ttft": "s", "throughput": "token/s", "memory": "byte", "joules_per_token": "J"}
    assert (one.name, one.unit) == (name, units.get(name, "$"))
    assert one.at_most == (name != "throughput")
    assert one.meaning


def test_a_deployment_in_attributes() -> None:
    assert about(D) == {
        "model": "round", "accelerator": "card", "devices": 1, "weights": "bf16", "cache": "bf16",
        "activations": "bf16", "compute": "bf16", "reserve": 0.0, "parallel": "one device", "method": "roofline",
    }  # fmt: skip
    other = Deployment(
        LLAMA.model, H100.times(2), weights=b_w, cache=1, activations="fp8", reserve=0.25, compute="fp8",
        parallel=Parallel(tensor=2, pipeline=2, replicas=3),
    )  # fmt: skip
    assert about(other) == {
        "model": "llama-3-8b", "accelerator": "2 x h100-sxm", "devices": 24, "weights": "b_w", "cache": "1",
        "activations": "fp8", "compute": "fp8", "reserve": 0.25, "parallel": "tensor 2, pipeline 2, replicas 3",
        "method": "roofline",
    }  # fmt: skip
    assert about(replace(D, textbook=True))["method"] == "textbook"
    assert about(replace(LLAMA, calibrated="vllm"))["method"] == "calibrated"


def test_side_by_side_each_argument_is_named() -> None:
    share = "utilisation must be a number from 0 to 1, got utilisation"
    for ask, sentence in (
        (lambda: compare([D], batch=0), "batch must be an integer of at least 1, got 0"),
        (lambda: compare([D], context=0), "context must be an integer of at least 1, got 0"),
        (lambda: pareto([D], batch=[1, 0]), "batch must be an integer of at least 1, got 0"),
        (lambda: pareto([D], batch=[1], context=0), "context must be an integer of at least 1, got 0"),
        (lambda: compare([D], utilisation=utilisation), share),
        (lambda: pareto([D], batch=[1], utilisation=utilisation), share),
        (lambda: compare([D], prices=[-1]), "a price must be a number from 0 to inf, got -1"),
    ):
        with pytest.raises(CostModelError) as error:
            ask()
        assert str(error.value) == sentence
    paid = dollars_per_million(D, 36, batch=3, context=999)["output"]
    assert point(D, 3, 999, price=36).dollars_per_million == pytest.approx(paid)


def test_branches_of_what_is_nested() -> None:
    assert list(branches(Min(B, S) + 1, B)) == [B + 1, S + 1]
    assert set(branches(Max(Min(B, S) + 1, 5), B)) == {B + 1, S + 1, 5}
    assert list(branches(Max(S, 5) + B, B)) == [Max(S, 5) + B]  # another letter's choice stays open


@pytest.mark.parametrize(("module", "ask", "job"), [
    ("xarray", lambda: D.sweep(batch=[1, 2]), "a sweep"),
    ("dask.array", lambda: D.sweep(batch=[1, 2], chunks=1), "a sweep in chunks"),
])  # fmt: skip
def test_a_sweep_says_what_it_needs(
    module: str, ask: Callable[[], object], job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CostModelError) as error:
        ask()
    package = module.partition(".")[0]
    assert str(error.value) == f"{job} needs the package {package!r}: pip install 'costmodel[studies]'"


def test_what_a_forecast_asks_for() -> None:
    forecast = Deployment(LLAMA.model, H100, calibrated=True)
    needs = "^calibrated needs formats of known size; give weights and cache as formats, such as 'fp8'$"
    for letters in ({"weights": b_w}, {"cache": b_kv}):
        with pytest.raises(CostModelError, match=needs):
            replace(forecast, **letters).decode(1, 1024)
    assert forecast.decode(4, 5, generated=8).seconds_per_token > forecast.decode(4, 5).seconds_per_token
    with pytest.raises(CostModelError, match=r"^generated \(10\) leaves no prompt in an average context of 5$"):
        forecast.decode(4, 5, generated=10)


def test_a_sweep_of_names_passes_everything_on() -> None:
    for weights in ("int4", ["int4", "bf16"]):
        found = D.sweep(weights=weights, metrics=["memory"], batch=[1, 2], chunks=1)
        assert list(found.data_vars) == ["memory"]
        assert found.memory.chunks is not None
    assert (found.memory.attrs, found.batch.attrs) == (
        {"units": "byte", "long_name": METRICS["memory"].meaning}, {"units": "sequences"},
    )  # fmt: skip
    told = about(D)
    assert found.attrs == {key: told[key] for key in told if key != "weights"}
    assert (found.weights.name, found.weights.values.tolist()) == ("weights", ["int4", "bf16"])
    for bad, sentence in (
        ({"weights": 3j}, "weights must be a sequence, such as [3j], got 3j"),
        ({"batch": [[1, 2], [3, 4]]}, "batch must be a number or a sequence of numbers, got [[1, 2], [3, 4]]"),
    ):
        with pytest.raises(CostModelError) as error:
            D.sweep(**bad)
        assert str(error.value) == sentence


def test_a_share_of_a_batch_grows_from_where_it_stands() -> None:
    """Six sequences over four stages are two at a time: their caches weigh as two, not as one and a half."""
    d = Deployment(LLAMA.model, H100, parallel=Parallel(pipeline=4))
    step = lambda width: replace(d, cache=Fraction(width)).decode(6, 8192).seconds_per_token  # noqa: E731
    slope = (step(2.02) - step(1.98)) / (0.02 * step(2))
    found = d.elasticities(6, 8192)
    assert found["cache_bits"] == pytest.approx(slope, rel=1e-9)
    assert found["batch"] >= found["cache_bits"] > 0.1  # caches, and the activations of as many


def test_a_model_without_heads_has_the_other_levers() -> None:
    found = Deployment(load("mamba-2.8b-hf"), H100, weights="bf16").elasticities(metric="dollars_per_million", price=3)
    assert set(LEVERS) - set(found.levers) == {"kv_heads", "interconnect"}
    assert found["price"] == 1


def test_arguments_of_a_deployment_are_named() -> None:
    for ask, sentence in (
        (lambda: D.prefill(0), "prompt must be a whole number, at least 1, got 0"),
        (lambda: D.prefill(1, 0), "batch must be a whole number, at least 1, got 0"),
        (lambda: D.decode(0, 1), "batch must be a whole number, at least 1, got 0"),
        (lambda: D.decode(1, 0), "context must be a whole number, at least 1, got 0"),
        (lambda: D.largest_batch(0), "context must be a whole number, at least 1, got 0"),
        (lambda: D.longest_context(0), "batch must be a whole number, at least 1, got 0"),
    ):
        with pytest.raises(CostModelError) as error:
            ask()
        assert str(error.value) == sentence


def test_the_largest_batch_is_exact_beyond_what_floats_hold() -> None:
    many = 5 * 10**7
    short = replace(CARD, capacity=2 * 10**9 + many * 2 * 10**9 - 1)  # a byte short: as a float it is `many` in full
    assert Deployment(MODEL, short).largest_batch(1000) == many - 1
    vast = Deployment(MODEL, replace(CARD, capacity=2**62 * 2 * 10**9))
    assert (vast.largest_batch(1000), vast.longest_context(1)) == (2**62 - 1, None)
    assert Deployment(MODEL, replace(CARD, capacity=2**63 * 10**9 + 2 * 10**9)).largest_batch(1000) is None
    bare = Deployment(BARE, CARD)
    assert (bare.weight_bytes, bare.largest_batch(1000)) == (2 * 3 * 8 * 16, None)
    assert replace(bare, accelerator=replace(CARD, capacity=2 * 3 * 8 * 16)).largest_batch(1000) is None
    assert replace(bare, accelerator=replace(CARD, capacity=2 * 3 * 8 * 16 - 1)).largest_batch(1000) == 0


def test_the_branch_that_binds() -> None:
    assert binding_branch(Min(2 * B, S), {B: 1, S: 4}) == (2 * B, False)
    assert binding_branch(Max(2 * B, S), {B: 1, S: 4}) == (S, False)
    assert binding_branch(ceiling(B / 8), {B: 4}) == (1, False)
    assert binding_branch(floor(B / 8) + S, {B: 9, S: 4}) == (S + 1, False)
    for size in (10**6, Rational(1, 10**6)):
        point = {B: size, S: size * (1 + Rational(1, 2 * 10**12))}  # closer than what counts as a tie
        assert binding_branch(Max(B, S), point)[1]
        assert not binding_branch(Max(B, S), point | {S: size * (1 + Rational(2, 10**12))})[1]


def test_the_textbook_counts_every_prompt_and_moves_the_weights() -> None:
    one, two = (replace(D, textbook=True).prefill(1000, batch) for batch in (1, 2))
    assert (one.flops, two.flops, two.bytes) == (2 * 10**9 * 1000, 2 * 10**9 * 2000, 2 * 10**9)
    assert (two.peak, two.bandwidth, two.seconds) == (10**14, 10**12, 0.04)
    assert (D.decode(3, 999).batch, D.decode(3, 999).context) == (3, 999)


def test_a_forecast_of_prompts_counts_every_token() -> None:
    forecast = Deployment(LLAMA.model, H100, calibrated=True, parallel=Parallel(tensor=4))
    two, long, one = (forecast.prefill(*asked).parts for asked in ((1000, 2), (2000, 1), (1000, 1)))
    assert two["link"] == long["link"] == pytest.approx(2 * one["link"])
    assert two["sequences"] == pytest.approx(2 * long["sequences"])
    with pytest.raises(CostModelError) as error:
        LLAMA.decode(1, 100, generated=5)
    assert str(error.value) == "generated changes a forecast alone; give calibrated=True, or leave it out"


def test_what_a_deployment_refuses_and_how_it_says_so() -> None:
    forecast = {"calibrated": True}
    for given, sentence in (
        ({"compute": 8}, "compute must be the name of a dtype, such as 'bf16', got 8"),
        ({"textbook": 1}, "textbook must be True or False, got 1"),
        (forecast | {"textbook": True}, "textbook and calibrated are two answers to one question; ask for one of them"),
        (forecast | {"compute": "fp8"}, "calibrated supposes the arithmetic that its weights get; leave out 'fp8'"),
    ):
        with pytest.raises(CostModelError) as error:
            Deployment(MODEL, CARD, **given)
        assert str(error.value) == sentence
    tenth = Deployment(MODEL, CARD, reserve=0.1)  # not the float nearest to a tenth
    assert (tenth.reserve, tenth.usable_bytes) == (Fraction(1, 10), 9 * 12 * 10**8)
    assert D.memory_bytes(0, 10) == D.weight_bytes
    with pytest.raises(CostModelError, match=r"^batch must be a whole number, at least 0, got -1$"):
        D.memory_bytes(-1, 10)


def test_the_arithmetic_asked_for_is_what_is_timed() -> None:
    half, full = (Deployment(LLAMA.model, H100, compute=dtype).prefill(8192) for dtype in ("fp8", "bf16"))
    assert (half.peak, full.peak) == (1979 * 10**12, 989 * 10**12)
    assert half.seconds == pytest.approx(full.seconds * 989 / 1979)
