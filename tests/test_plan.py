"""Plans against brute force; comparisons, fronts, money and energy."""

import itertools
from math import ceil, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import CostModelError, Deployment, Load, Slo, accelerator, compare, load, pareto, plan, symbols
from costmodel.parallel import Parallel
from costmodel.sizing.levers import METRICS, Use
from costmodel.sizing.money import dollars_per_million, joules_per_token
from costmodel.sizing.pareto import Point
from costmodel.sizing.plan import busy_seconds, choice
from tests.test_sizing import H100, LLAMA

PRICES = {"h100-sxm": 3.0, "a100-sxm-80gb": 1.7, "l40s": 1.0}


def brute_force(name: str, slo: Slo, asked: Load, shardings: tuple, weights: tuple, busy: float) -> tuple | None:
    """Every accelerator, spread, format and batch up to 4,096 or what fits: (dollars an hour, latency, batch)."""
    best = None
    for hardware, tensor, bits in itertools.product(PRICES, shardings, weights):
        d = Deployment(load(name), accelerator(hardware), weights=bits, parallel=Parallel(tensor=tensor))
        first = d.prefill(asked.prompt).seconds
        if slo.ttft is not None and first > slo.ttft:
            continue
        context = asked.prompt + asked.generated
        steps = d.grid(np.arange(1, 4097), context)["seconds_per_token"]
        for batch, step in enumerate(steps, start=1):
            if not d.fits(batch, context) or (slo.latency is not None and step > slo.latency):
                break
            work = asked.requests_per_s * (first + asked.generated * step / batch) / busy
            cost = max(1, ceil(work * (1 - 1e-9))) * tensor * PRICES[hardware]
            best = min(filter(None, (best, (cost, step, batch))))
    return best


@settings(max_examples=8)
@given(
    latency=st.sampled_from([0.004, 0.008, 0.02, 0.05]), ttft=st.sampled_from([None, 0.2, 1.0]),
    rate=st.sampled_from([0.2, 2.0, 9.0]), prompt=st.sampled_from([512, 3000, 12_000]),
    busy=st.sampled_from([0.6, 1.0]),
)  # fmt: skip
def test_a_plan_is_what_brute_force_finds(
    latency: float, ttft: float | None, rate: float, prompt: int, busy: float
) -> None:
    slo, asked, shardings, weights = Slo(latency, ttft), Load(rate, prompt, 300), (1, 2), ("bf16", "int4")
    expected = brute_force("llama-3-8b", slo, asked, shardings, weights, busy)
    ask = lambda: plan(  # noqa: E731
        LLAMA.model, slo, asked, prices=PRICES, shardings=shardings, weights=weights, utilisation=busy
    )
    if expected is None:
        with pytest.raises(CostModelError, match="nothing meets the SLO"):
            ask()
        return
    best = ask().best
    assert (best.dollars_per_hour, best.latency, best.batch) == pytest.approx(expected, rel=1e-12)
    assert best.latency <= latency
    assert best.deployment.fits(best.batch, asked.context)
    written = 3600 * rate * 300 / 1e6
    assert best.dollars_per_million == pytest.approx(best.dollars_per_hour / written)


@pytest.mark.parametrize("spread", [Parallel(pipeline=4), Parallel(data=3, tensor=1, pad=True), Parallel(pipeline=8)])
@pytest.mark.parametrize(("latency", "rate"), [(0.010, 2), (0.0178, 2), (0.0185, 30), (0.0195, 150)])
def test_a_plan_of_stages_and_groups_is_what_brute_force_finds(spread: Parallel, latency: float, rate: float) -> None:
    """Batches that stages do not share evenly included: three of four stages at work are no faster than four."""
    asked, price = Load(rate, 1000, 300), 2.0
    d = Deployment(LLAMA.model, accelerator("l40s"), parallel=spread, cache="fp8")
    tried = []
    for batch in range(1, 401):
        step = d.decode(batch, 1300).seconds_per_token
        if d.fits(batch, 1300) and step <= latency:
            read = d.prefill(1000).seconds / (spread.data * spread.pipeline)  # a prompt in each group and stage
            work = rate * (read + 300 * step / batch)
            tried.append((max(1, ceil(work * (1 - 1e-9))) * spread.devices * price, step, batch))
    assert d.decode(401, 1300).seconds_per_token > latency  # nothing beyond was left out
    ask = lambda: plan(  # noqa: E731
        d.model, Slo(latency), asked, prices={"l40s": price}, shardings=[spread], cache=["fp8"]
    )
    if not tried:
        with pytest.raises(CostModelError, match="one sequence alone takes"):
            ask()
        return
    best = ask().best
    assert (best.dollars_per_hour, best.latency, best.batch) == min(tried)


@pytest.mark.parametrize(("context", "most"), [(250_000, 5), (139_000, 9), (100_000, 13)])
def test_a_last_block_that_is_not_full_may_be_worse_than_the_one_before(context: int, most: int) -> None:
    """Where memory ends a block early: five sequences over four stages take two rounds, as eight would."""
    d = Deployment(LLAMA.model, accelerator("l40s"), parallel=Parallel(pipeline=4))
    assert d.largest_batch(context) == most == 1 + (most - 1) // 4 * 4
    asked = Load(50, context - 300, 300)
    best = plan(d.model, Slo(), asked, prices={"l40s": 1.0}, shardings=[d.parallel]).best
    tried = [choice(d, "l40s", batch, asked, 1.0, 1) for batch in range(1, most + 1)]
    assert (best.devices, best.batch) == min((one.devices, one.batch) for one in tried)
    assert best.batch == most - 1


def test_a_plan_says_why_not_the_others() -> None:
    found = plan(
        load("llama-3-70b"), Slo(latency=0.040, ttft=0.5), Load(2, 2000, 400), prices=PRICES, shardings=(1, 3, 4),
        weights=("bf16", "int4"), most_devices=8,
    )  # fmt: skip
    reasons = dict(found.rejected)
    assert len(reasons) + 2 == 3 * 3 * 2  # every configuration is accounted for
    assert "does not fit: one sequence needs" in reasons["h100-sxm, one device, weights bf16, cache bf16"]
    assert "first token after 771 ms, 500 ms promised" in reasons["l40s, one device, weights int4, cache bf16"]
    assert "first token after" in reasons["a100-sxm-80gb, one device, weights int4, cache bf16"]
    assert "multiple of the 3 devices" in reasons["h100-sxm, tensor 3, weights int4, cache bf16"]
    assert found.runner_up.order >= found.best.order
    assert all(c.devices <= 8 for c in (found.best, found.runner_up))
    assert "the cheapest: $" in str(found)
    assert "runner-up: $" in str(found)
    assert found._repr_html_() == found.table()._repr_html_()


def test_no_plan_lists_the_reasons() -> None:
    with pytest.raises(CostModelError, match=r"nothing meets the SLO: l40s.*: one sequence alone takes"):
        plan(LLAMA.model, Slo(latency=0.001), Load(1, 100, 100), prices={"l40s": 1})
    with pytest.raises(CostModelError, match=r"needs \d+ devices, 1 can be had"):
        plan(LLAMA.model, Slo(), Load(100, 1000, 1000), prices={"l40s": 1}, most_devices=1)
    with pytest.raises(CostModelError, match=r"^nothing meets the SLO: no accelerator was given a price$"):
        plan(LLAMA.model, Slo(), Load(1, 100, 100), prices={})
    for share in (0, 1.5):
        with pytest.raises(CostModelError, match=f"utilisation must be above 0 and at most 1, got {share}"):
            plan(LLAMA.model, Slo(), Load(1, 100, 100), prices={"l40s": 1}, utilisation=share)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 3}, "unknown option 'batch'; known: activations, calibrated, compute, reserve, textbook"),
        ({"reserved": 0.1}, r"unknown option 'reserved'; did you mean reserve\?"),
        ({"parallel": Parallel(tensor=2)}, "unknown option 'parallel'"),
        ({"slo": 0.05}, "slo must be a costmodel.Slo, such as .*, got 0.05"),
        ({"load": 3}, "load must be a Load, such as .*, got 3"),
        ({"prices": 3.0}, r"prices must be {accelerator: \$ per device and hour}, got 3.0"),
        ({"prices": {"l40s": "1"}}, "the price of l40s must be a number from 0 to .*, got '1'"),
        ({"prices": {"l40x": 1}}, "unknown accelerator 'l40x'; did you mean l40s"),
        ({"weights": "int4"}, r"weights must be a sequence, such as \['int4'\], got 'int4'"),
        ({"weights": ["bf16", "int5"]}, "unknown number format 'int5'"),
        ({"cache": "fp8"}, "cache must be a sequence, such as"),
        ({"shardings": 2}, r"shardings must be a sequence, such as \[2\], got 2"),
        ({"shardings": [0]}, "tensor must be a whole number from 1 to .*, got 0"),
        ({"utilisation": "half"}, "utilisation must be above 0 and at most 1, got 'half'"),
        ({"utilisation": symbols.utilisation}, "^utilisation must be a number from 0 to 1, got utilisation$"),
        ({"prices": {"l40s": 1e50}}, r"^the price of l40s must be a number from 0 to 1e\+45, got 1e\+50$"),
        ({"reserve": symbols.utilisation}, "a plan needs numbers throughout"),
        ({"most_devices": 0}, "most_devices must be an integer of at least 1, got 0"),
    ],
)
def test_a_plan_names_what_it_refuses(change: dict, message: str) -> None:
    asked = {"slo": Slo(), "load": Load(1, 100, 100), "prices": {"l40s": 1}, **change}
    with pytest.raises(CostModelError, match=message):
        plan(LLAMA.model, asked.pop("slo"), asked.pop("load"), **asked)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Load(0, 1, 1), "requests_per_s must be a number from 1e-15 to .*, got 0"),
        (lambda: Load("2", 1, 1), "requests_per_s must be a number from 1e-15 to .*, got '2'"),
        (lambda: Load(1, 0, 1), "prompt must be an integer of at least 1, got 0"),
        (lambda: Load(1, 1, 1.5), "generated must be an integer of at least 1, got 1.5"),
        (lambda: Slo(latency="fast"), "latency must be a number from 1e-15 to inf, got 'fast'"),
        (lambda: Slo(ttft=0), "ttft must be a number from 1e-15 to inf, got 0"),
    ],
)
def test_bad_promises_and_loads_are_named(call: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        call()


def test_prices_are_refused_by_name() -> None:
    with pytest.raises(CostModelError, match=r"price must be a number from 0 to .*, got -1"):
        dollars_per_million(LLAMA, -1)
    with pytest.raises(CostModelError, match=r"the price of l40s must be a number from 0 to .*, got nan"):
        plan(LLAMA.model, Slo(), Load(1, 100, 100), prices={"l40s": nan})
    with pytest.raises(CostModelError, match="utilisation must be above 0 and at most 1, got 2"):
        LLAMA.solve("batch", dollars_per_million=1, price=3, utilisation=2.0)


LOSSES = {"throughput": lambda p: -p.throughput, "dollars_per_million": lambda p: p.dollars_per_million}


@pytest.mark.parametrize("against", LOSSES)
def test_the_front_is_what_nothing_beats(against: str) -> None:
    loss, prices, asked = LOSSES[against], list(PRICES.values()), {"context": 8192, "against": against}
    cards = [Deployment(LLAMA.model, accelerator(name)) for name in PRICES]
    front = pareto(cards, batch=range(1, 65), prices=prices, **asked)
    every = [
        pareto([card], batch=[b], prices=[price], **asked)[0]
        for card, price in zip(cards, prices, strict=True)
        for b in range(1, 65)
        if card.fits(b, 8192)
    ]

    def beaten(p: Point) -> bool:
        return any(q.latency <= p.latency and loss(q) < loss(p) for q in every)

    assert [(p.latency, loss(p)) for p in front] == sorted({(p.latency, loss(p)) for p in every if not beaten(p)})


def test_an_empty_front_is_refused() -> None:
    with pytest.raises(CostModelError, match="nothing fits"):
        pareto([Deployment(load("llama-3-70b"), H100)], batch=[1])
    with pytest.raises(CostModelError, match="dollars need prices"):
        pareto([LLAMA], batch=[1], against="dollars_per_million")
    with pytest.raises(CostModelError, match="against must be"):
        pareto([LLAMA], batch=[1], against="beauty")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prices": [1]}, "1 prices for 2 deployments: give one for each"),
        ({"prices": [1, 2, 3]}, "3 prices for 2 deployments: give one for each"),
        ({"prices": [1, None]}, "a price must be a number from 0 to inf, got None"),
        ({"prices": 1}, r"prices must be a sequence, such as \[1\], got 1"),
    ],
)
def test_prices_are_checked_alike(options: dict, message: str) -> None:
    for ask in (lambda: pareto([LLAMA] * 2, batch=[1], **options), lambda: compare([LLAMA] * 2, **options)):
        with pytest.raises(CostModelError, match=message):
            ask()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": symbols.S}, "context must be an integer of at least 1, got S"),
        ({"utilisation": 2}, "utilisation must be above 0 and at most 1, got 2"),
    ],
)
def test_conditions_are_checked_alike(options: dict, message: str) -> None:
    for ask in (lambda: pareto([LLAMA], batch=[1], **options), lambda: compare([LLAMA], **options)):
        with pytest.raises(CostModelError, match=message):
            ask()


def test_a_single_batch_is_no_sequence_of_them() -> None:
    with pytest.raises(CostModelError, match=r"batch must be a sequence, such as \[8\], got 8"):
        pareto([LLAMA], batch=8)
    assert compare([]).rows == []


def test_a_comparison_has_a_row_for_each() -> None:
    cards = [Deployment(LLAMA.model, accelerator(name)) for name in PRICES]
    table = compare(cards, batch=16, context=8192, prices=list(PRICES.values()))
    assert len(table.rows) == 3
    assert table.rows[0][4] == 59
    assert table.rows[0][5] == "fits"


def test_dollars_follow_from_price_and_utilisation() -> None:
    cost = dollars_per_million(LLAMA, 3, batch=16, context=8192, utilisation=0.5)
    assert cost["output"] == pytest.approx(2 * 3 / 3600 * 1e6 / LLAMA.decode(16, 8192).tokens_per_s)
    assert cost["input"] == pytest.approx(2 * 3 / 3600 * 1e6 * LLAMA.prefill(8192).seconds / 8192)
    two = Deployment(LLAMA.model, H100, parallel=Parallel(replicas=2))
    assert (
        dollars_per_million(two, 3, batch=16, context=8192, utilisation=0.5) == cost
    )  # twice the cards, twice the tokens
    for share in (0, 1.1):
        with pytest.raises(CostModelError, match="utilisation must be above 0 and at most 1"):
            dollars_per_million(LLAMA, 3, utilisation=share)


@pytest.mark.parametrize("spread", [Parallel(pipeline=4), Parallel(data=4), Parallel(data=2, pipeline=2)])
def test_groups_and_stages_read_prompts_of_their_own(spread: Parallel) -> None:
    """Four devices cost four times as much and read four prompts at once; the first token comes no sooner."""
    one, four = (Deployment(LLAMA.model, H100, parallel=p) for p in (Parallel(), spread))
    assert four.prefill(2000).seconds >= one.prefill(2000).seconds
    talk = four.prefill(2000).seconds / one.prefill(2000).seconds  # what stages pass on
    assert talk < 1.02
    cost = [dollars_per_million(d, 3.0, batch=16, prompt=2000) for d in (one, four)]
    assert cost[1]["input"] == pytest.approx(talk * cost[0]["input"], rel=1e-12)
    assert METRICS["dollars_per_million_input"].formula(four, Use(prompt=2000, price=3.0)) == cost[1]["input"]
    assert METRICS["dollars_per_million"].formula(four, Use(16, price=3.0)) == cost[1]["output"]
    asked, batch = Load(1, 2000, 1), 16
    written = four.decode(batch, 2001).seconds_per_token / batch
    assert busy_seconds(four, asked, batch) - written == pytest.approx(four.prefill(2000).seconds / 4, rel=1e-12)


def test_energy_is_rated_power_over_tokens() -> None:
    assert joules_per_token(LLAMA, batch=16, context=8192) == pytest.approx(700 / LLAMA.decode(16, 8192).tokens_per_s)
    with pytest.raises(CostModelError, match=r"tpu-v5e has no rated power \(tdp\) on record"):
        joules_per_token(Deployment(LLAMA.model, accelerator("tpu-v5e")))
