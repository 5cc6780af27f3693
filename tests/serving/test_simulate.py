"""What serving gives: everyone is answered or refused with the reason, and the figures follow from the times."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel import Deployment, accelerator, load
from costmodel.common.errors import CostModelError
from costmodel.serving import PassCosts, Policy, Slo, Trace, serving_study, simulate, synthetic_trace
from costmodel.serving.compiled import _arrivals
from costmodel.serving.policy import POLICIES
from costmodel.symbols import S
from tests.serving.oracle import Reference, Request, requests_of
from tests.serving.test_oracle import COSTS, costs_of, traces

H100 = accelerator("h100-sxm")
LLAMA = Deployment(load("llama-3-8b"), H100)
KEYS = [
    "requests", "makespan_s", "ttft_s", "tpot_s", "e2e_s", "tokens_per_s", "goodput", "utilisation",
    "peak_cache_bytes", "prefix_hit_ratio", "rejected",
]  # fmt: skip


@cache
def busy_trace() -> Trace:
    return synthetic_trace(requests=400, rate=40.0, seed=2)


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("reserve", [0, 0.795])
def test_everyone_is_answered_or_refused_with_the_reason(kind: str, replicas: int, reserve: float) -> None:
    trace, small = busy_trace(), Deployment(load("llama-3-8b"), H100, reserve=reserve)
    result = simulate(trace, small, Policy(kind=kind, slots=32), replicas=replicas)
    refused = np.array([i in result.rejected for i in range(len(trace))])
    assert (np.isnan(result.last_s) == refused).all()
    assert (np.isnan(result.first_s) == refused).all()
    assert (result.served + len(result.rejected), result.tokens) == (len(trace), trace.output[~refused].sum())
    assert all("tokens takes" in reason for reason in result.rejected.values())
    assert refused.any() == (reserve > 0)
    done = ~refused
    assert (trace.arrival[done] < result.first_s[done]).all()
    assert (result.first_s[done] <= result.last_s[done]).all()
    assert 0 < result.utilisation <= 1
    assert 0 < result.cache_occupancy <= 1
    assert result.peak_cache_bytes <= small.usable_bytes - small.weight_bytes


@given(
    trace=traces(),
    costs=COSTS,
    preemption=st.sampled_from([None, "recompute", "swap"]),
    pools=st.tuples(*[st.integers(1, 3)] * 2),
)
def test_disaggregation_is_two_services_in_a_row(
    trace: Trace, costs: PassCosts, preemption: str | None, pools: tuple[int, int]
) -> None:
    """The oracle serves prompts alone, hands each over when its cache has crossed the link, and then answers."""
    policy = Policy(kind="disaggregated", preemption=preemption, slots=3, block=2, prefill_tokens=30, link=2.0**13)
    found = simulate(trace, costs.deployment, policy, replicas=pools[1], prefill_replicas=pools[0])
    alone = Policy(slots=3, block=2, prefill_tokens=30)
    everyone = requests_of(trace, costs)
    able = [r for r in everyone if r.key[2] not in found.rejected]
    first, last, ran = {}, {}, []
    for share in (able[i :: pools[0]] for i in range(pools[0])):
        prompts = [Request(r.key, r.prompt, 1) for r in share]
        ran.append(Reference(costs, alone, prompts, trace.blocks, trace.block_tokens).run())
        first |= ran[-1].first
    ready = [
        (first[r.key[2]] + costs.ticks(costs.cache_bytes(r.prompt) / policy.link), r) for r in able if r.output > 1
    ]
    ready.sort(key=lambda pair: (pair[0], pair[1].key[2]))
    together = Policy(slots=3, block=2, preemption=preemption, prefill_tokens=30, link=2.0**13)
    for share in (ready[i :: pools[1]] for i in range(pools[1])):
        handed = [
            Request((r.key[0], at, r.key[2]), r.prompt, r.output, made=1, cached=r.prompt, brought_in=0)
            for at, r in share
        ]
        ran.append(Reference(costs, together, handed).run())
        last |= ran[-1].last
    for place in range(len(trace)):
        if place not in found.rejected:
            assert found.first_s[place] == first[place] / costs.ticks_per_s
            assert found.last_s[place] == last.get(place, first[place]) / costs.ticks_per_s
    total = lambda name: sum(getattr(one, name) for one in ran)  # noqa: E731
    peak = max((one.peak for one in ran), default=0)
    assert (found.steps, found.preempted, found.peak_cache_bytes) == (total("steps"), total("preempted"), peak)
    assert found.busy_s == total("busy") / costs.ticks_per_s
    assert found.held_byte_s == total("held") / (costs.ticks_per_s * costs.cache_unit)
    assert found.prefix_hit_ratio == (total("hits") / total("asked") if total("asked") else None)
    assert found.events <= found.steps


def test_one_request_alone_takes_a_prefill_and_its_steps() -> None:
    """As a sum over single answers of the deployment."""
    result = simulate(Trace([3.0], [1000], [50]), LLAMA)
    steps = [LLAMA.decode(1, 1000 + i).seconds_per_token for i in range(1, 50)]
    assert result.ttft_s[0] == pytest.approx(LLAMA.prefill(1000).seconds, rel=1e-12)
    assert result.e2e_s[0] == pytest.approx(LLAMA.prefill(1000).seconds + sum(steps), rel=1e-12)
    assert result.tpot_s[0] == pytest.approx(sum(steps) / 49, rel=1e-12)
    assert (result.steps, result.makespan_s) == (50, pytest.approx(result.e2e_s[0]))
    assert result.utilisation == pytest.approx(1)
    assert result.peak_cache_bytes == -(-1049 // 16) * 16 * 131_072


def test_replicas_share_the_work_in_turn() -> None:
    trace = busy_trace()
    both = simulate(trace, LLAMA, replicas=2)
    for i in range(2):
        part = slice(i, None, 2)
        alone = simulate(trace.part(part), LLAMA)
        np.testing.assert_array_equal(both.last_s[part], alone.last_s)
    assert both.devices == 2
    assert simulate(Trace([0.0], [5], [5]), Deployment(load("llama-3-8b"), H100.times(8)), replicas=2).devices == 16
    assert simulate(Trace([0.0], [5], [5]), LLAMA, replicas=7).served == 1


def test_policies_trade_waiting_as_their_papers_say() -> None:
    """Static waits for whole batches; chunks spare the decoding ones; apart, prompts do not stop answers at all."""
    trace = synthetic_trace(requests=1500, rate=12.0, seed=5)
    found = {kind: simulate(trace, LLAMA, Policy(kind=kind, slots=64)).summary() for kind in POLICIES}
    assert found["continuous"]["ttft_s"]["p50"] < found["static"]["ttft_s"]["p50"] / 5
    assert found["chunked"]["tpot_s"]["p99"] < found["continuous"]["tpot_s"]["p99"]
    assert found["disaggregated"]["tpot_s"]["p99"] < found["continuous"]["tpot_s"]["p99"]


def test_priorities_go_first_and_prefixes_save_work() -> None:
    count = 60
    priority = np.arange(count) % 2
    trace = Trace(np.zeros(count), np.full(count, 500), np.full(count, 50), priority)
    waits = simulate(trace, LLAMA, Policy(slots=4)).ttft_s
    assert waits[priority == 0].max() <= waits[priority == 1].min()
    shared = Trace([0.0, 10.0], [1024, 1024], [1, 1], blocks=[[0, 1], [0, 1]])
    kept, forgotten = (simulate(shared, LLAMA, Policy(prefix_blocks=blocks)) for blocks in (None, 0))
    assert (kept.prefix_hit_ratio, forgotten.prefix_hit_ratio) == (0.5, None)
    assert kept.ttft_s[0] == forgotten.ttft_s[0] == pytest.approx(forgotten.ttft_s[1])
    assert kept.ttft_s[1] < 0.4 * forgotten.ttft_s[1]


def test_figures_follow_from_the_times() -> None:
    trace = Trace([0.0, 1.0, 2.0], [100, 200, 300], [1, 11, 21])
    result = simulate(trace, LLAMA)
    assert list(result.summary()) == KEYS
    assert np.isnan(result.tpot_s[0])
    assert result.tokens_per_s == 33 / result.makespan_s
    assert result.goodput() == 3 / result.makespan_s
    slowest = result.e2e_s[2]
    assert result.met(Slo(e2e=slowest)).tolist() == [True, True, True]
    assert result.met(Slo(e2e=slowest * 0.99)).tolist() == [True, True, False]
    assert result.met(Slo(tpot=1e-9)).tolist() == [True, False, False]
    assert result.met(Slo(ttft=1e-9)).sum() == 0
    assert result.dollars(3.6) == pytest.approx(0.001 * result.makespan_s)
    assert result.dollars_per_million_tokens(3.6) == pytest.approx(1e6 * 0.001 * result.makespan_s / 33)
    assert result.summary()["e2e_s"]["p50"] == result.e2e_s[1]


def test_nothing_served_is_said_without_dividing_by_it() -> None:
    tight = Deployment(load("llama-3-8b"), H100, reserve=0.79)
    result = simulate(Trace([0.0], [100_000], [5]), tight)
    found = result.summary()
    assert found["rejected"] == [{"request": 0, "reason": result.rejected[0]}]
    assert "100,004 tokens takes" in result.rejected[0]
    assert (found["makespan_s"], found["tokens_per_s"], found["goodput"], found["utilisation"]) == (0, 0, 0, 0)
    assert found["ttft_s"] == {"p50": None, "p90": None, "p99": None}
    with pytest.raises(CostModelError, match="nothing was served"):
        result.dollars_per_million_tokens(2.0)
    with pytest.raises(CostModelError, match="a price must be at least 0"):
        result.dollars(-1.0)


def test_refusals() -> None:
    with pytest.raises(CostModelError, match=r"does not fit on h100-sxm: its weights take"):
        simulate(busy_trace(), Deployment(load("llama-3-70b"), H100))
    with pytest.raises(CostModelError, match="unknown policy 'orca'"):
        Policy(kind="orca")
    with pytest.raises(CostModelError, match="preemption must be None, 'recompute' or 'swap', got 'drop'"):
        Policy(preemption="drop")
    with pytest.raises(CostModelError, match="static batching reserves its memory"):
        Policy(kind="static", preemption="swap")
    for name in ("slots", "prefill_tokens", "chunk", "block"):
        with pytest.raises(CostModelError, match=f"{name} must be a whole number from 1"):
            Policy(**{name: 0})
    with pytest.raises(CostModelError, match="replicas must be"):
        simulate(busy_trace(), LLAMA, replicas=0)
    with pytest.raises(CostModelError, match="prefill_replicas must be an integer of at least 1, got S"):
        simulate(busy_trace(), LLAMA, Policy(kind="disaggregated"), prefill_replicas=S)
    for kind in ("static", "continuous", "chunked"):
        with pytest.raises(CostModelError, match=rf"prefill_replicas \(3\) are for .*'disaggregated'.*, got '{kind}'"):
            simulate(busy_trace(), LLAMA, Policy(kind=kind), prefill_replicas=3)
    with pytest.raises(CostModelError, match="link must be above 0"):
        Policy(link=0)
    with pytest.raises(CostModelError, match="the limit on ttft must be above 0"):
        Slo(ttft=-1)
    with pytest.raises(CostModelError, match="a load factor must be above 0"):
        busy_trace().scaled(0)


def test_progress_is_told() -> None:
    told = []
    simulate(busy_trace(), LLAMA, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (400, 400)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len(told) == 100


def test_the_plain_path_imports_nothing_heavy() -> None:
    code = (
        "import sys; from costmodel import Deployment, accelerator, load\n"
        "from costmodel.serving import Trace, simulate\n"
        "simulate(Trace([0.0], [5], [5]), Deployment(load('8b'), accelerator('h100-sxm')))\n"
        "print([m for m in ('numba', 'joblib', 'dask', 'distributed', 'tqdm', 'scipy') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


# The compiled core


@given(
    trace=traces(),
    device=st.sampled_from(["memory", "balanced", "compute", "odd"]),
    model=st.sampled_from(["full", "experts"]),
    spare=st.sampled_from([3, 12, 10_000]),
    slots=st.integers(1, 6),
    tokens=st.integers(1, 40),
)
def test_the_compiled_core_is_the_plain_one(
    trace: Trace, device: str, model: str, spare: int, slots: int, tokens: int
) -> None:
    pytest.importorskip("numba")
    trace = Trace(trace.arrival, trace.prompt, trace.output)
    policy, d = Policy(slots=slots, prefill_tokens=tokens, block=2), costs_of(model, device, spare).deployment
    plain, fast = (simulate(trace, d, policy, compiled=compiled) for compiled in (False, True))
    np.testing.assert_array_equal(fast.first_s, plain.first_s)
    np.testing.assert_array_equal(fast.last_s, plain.last_s)
    assert fast.rejected == plain.rejected
    assert (fast.steps, fast.peak_cache_bytes, fast.busy_s) == (plain.steps, plain.peak_cache_bytes, plain.busy_s)
    assert fast.held_byte_s == pytest.approx(plain.held_byte_s, rel=1e-12)


@given(seconds=st.lists(st.floats(0, 1e9), min_size=1, max_size=20), odd=st.sampled_from(["odd", "memory"]))
def test_the_compiled_core_reads_the_same_clock(seconds: list[float], odd: str) -> None:
    costs = costs_of("full", odd, 3)
    found = _arrivals(np.array([*seconds, 1.0, 0.0, 7.25, 3599.9999999999995]), costs)
    expected = [divmod(costs.ticks(s), costs.ticks_per_s) for s in (*seconds, 1.0, 0.0, 7.25, 3599.9999999999995)]
    assert [tuple(row) for row in found.tolist()] == expected


@pytest.mark.parametrize(
    ("trace", "policy", "name", "what"),
    [
        (Trace([0.0], [1], [1]), Policy(kind="static"), "llama-3-8b", "policy 'static'"),
        (Trace([0.0], [1], [1]), Policy(preemption="swap"), "llama-3-8b", "preemption"),
        (Trace([0.0], [1], [1], [0]), Policy(), "llama-3-8b", "priorities"),
        (Trace([0.0], [1], [1], blocks=[[0]]), Policy(), "llama-3-8b", "shared blocks"),
        (Trace([0.0], [1], [1]), Policy(), "mistral-7b-v0.1", "windows"),
    ],
)
def test_the_compiled_core_names_what_it_leaves(trace: Trace, policy: Policy, name: str, what: str) -> None:
    with pytest.raises(CostModelError, match=f"the compiled core does not serve {what}"):
        simulate(trace, Deployment(load(name), H100), policy, compiled=True)


# Studies


def test_a_study_is_the_same_whatever_computes_it() -> None:
    pytest.importorskip("joblib")
    distributed = pytest.importorskip("distributed")
    trace = synthetic_trace(requests=60, seed=1)
    deployments = {"8B": LLAMA, "8B, int4": Deployment(load("llama-3-8b"), H100, weights="int4")}
    policies = {kind: Policy(kind=kind) for kind in ("static", "continuous")}
    asked, options = (trace, deployments, policies, [2.0, 20.0]), {"slo": Slo(ttft=0.5), "replicas": 2}
    here = serving_study(*asked, **options)
    assert [(p.deployment, p.policy, p.rate) for p in here] == [
        (d, p, r) for d in deployments for p in policies for r in (2.0, 20.0)
    ]
    for p in here:
        at_rate = trace.scaled(p.rate / trace.rate)
        alone = simulate(at_rate, deployments[p.deployment], policies[p.policy], replicas=2)
        assert p.summary == alone.summary(Slo(ttft=0.5))
    assert serving_study(*asked, **options, jobs=2) == here
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert serving_study(*asked, **options, client=client) == here


@pytest.mark.parametrize(
    ("trace", "options", "message"),
    [
        (Trace([0.0], [1], [1]), {}, "one request has no rate to change: a study needs at least two"),
        (Trace([1.0, 1.0], [1, 1], [1, 1]), {}, "all requests arrive at once"),
        (Trace([0.0, 1.0], [1, 1], [1, 1]), {"rates": [1.0, 0]}, "a rate must be a number from 1e-15 to .*, got 0"),
        (Trace([0.0, 1.0], [1, 1], [1, 1]), {"jobs": 0}, "jobs must be a whole number, at least 1, or -1 .*, got 0"),
    ],
)
def test_a_study_names_what_it_refuses(trace: Trace, options: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        serving_study(trace, {"8B": LLAMA}, {"one": Policy()}, **{"rates": [1.0], **options})
