"""The event simulator does what a plain step-by-step loop does, exactly, under every policy."""

from functools import cache

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from costmodel import Accelerator, Deployment, transformer
from costmodel.layers import Attention, Mlp, Moe
from costmodel.model import Block, Model
from costmodel.serving import PassCosts, Policy, ServingResult, Trace, simulate
from tests.serving.oracle import Reference, reference

TINY = {"V": 64, "D": 16, "F": 32, "N": 4, "K": 2, "H": 4}
ATTENTION = {"width": 16, "heads": 4, "kv_heads": 2, "head_width": 4}


def stack(*layers: object) -> Model:
    return Model(((Block(layers), 2),))


MODELS = {
    "full": transformer(L=2, **TINY),
    "windows": transformer(L=3, windows=[(5, 1), (9, 1), (None, 1)], **TINY),
    "chunks": stack(Attention(chunk=6, **ATTENTION), Mlp(16, 32)),
    "experts": stack(Attention(**ATTENTION), Moe(Mlp(16, 8), experts=8, active=2)),
}
# On each, steps take about as long as requests wait; on the middle three small batches change their bound as they grow.
DEVICES = {
    "memory": (2**24, 2**14),
    "balanced": (2**16, 13 * 2**11),
    "even": (2**16, 5 * 2**13),
    "ridge": (2**16, 2**16),
    "compute": (2**15, 2**17),
    "odd": (99_991, 30_011),
}


@cache
def costs_of(model: str, device: str, spare: int) -> PassCosts:
    peak, bandwidth = DEVICES[device]
    chosen = MODELS[model]
    weights = chosen.weight_bytes("bf16")
    room = int(chosen.cache_bytes(8)) * spare
    return PassCosts(Deployment(chosen, Accelerator(device, weights + room, bandwidth, {"bf16": peak})))


COSTS = st.builds(
    costs_of, st.sampled_from(list(MODELS)), st.sampled_from(list(DEVICES)), st.sampled_from([3, 6, 12, 10_000])
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Short requests that meet: quarter seconds make ties with each other and, on dyadic devices, with steps."""
    count = draw(st.integers(1, 14))
    gap = st.integers(0, 12).map(lambda q: q / 4) if draw(st.booleans()) else st.floats(0, 4)
    arrival = np.cumsum(draw(st.lists(gap, min_size=count, max_size=count)))
    numbers = lambda low, high: np.array(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))  # noqa: E731
    blocks = None
    if draw(st.booleans()):
        blocks = draw(st.lists(st.lists(st.integers(0, 6), max_size=4, unique=True), min_size=count, max_size=count))
    return Trace(
        arrival, numbers(1, 20), numbers(1, 30), numbers(0, 2) if draw(st.booleans()) else None, blocks, block_tokens=4
    )


POLICIES = st.builds(
    lambda kind, slots, tokens, chunk, preemption, block, prefix: Policy(
        kind=kind, slots=slots, prefill_tokens=tokens, chunk=chunk, block=block, prefix_blocks=prefix, link=2.0**13,
        preemption=None if kind == "static" else preemption,
    ),
    st.sampled_from(["static", "continuous", "chunked"]), st.integers(1, 6), st.integers(1, 40), st.integers(1, 12),
    st.sampled_from([None, "recompute", "swap"]), st.sampled_from([1, 2, 4]), st.sampled_from([0, 3, None]),
)  # fmt: skip


def agree(trace: Trace, costs: PassCosts, policy: Policy, steps: Reference) -> ServingResult:
    """Every figure the same; times to the last bit, since both count whole ticks."""
    found = simulate(trace, costs.deployment, policy)
    for mine, theirs in ((found.first_s, steps.first), (found.last_s, steps.last)):
        expected = [theirs[i] / costs.ticks_per_s if i in theirs else np.nan for i in range(len(trace))]
        np.testing.assert_array_equal(mine, expected)
    assert set(found.rejected) == steps.rejected
    assert (found.steps, found.preempted, found.peak_cache_bytes) == (steps.steps, steps.preempted, steps.peak)
    assert found.busy_s == steps.busy / costs.ticks_per_s
    assert found.held_byte_s == steps.held / (costs.ticks_per_s * costs.cache_unit)
    assert found.prefix_hit_ratio == (steps.hits / steps.asked if steps.asked else None)
    assert found.events <= found.steps
    return found


def computes(costs: PassCosts, count: int, context: int) -> bool:
    """Whether arithmetic binds a step of so many sequences."""
    compute, memory = costs.shared(count)
    return compute + count * costs.compute.at(context)[0] >= memory + count * costs.memory.at(context)[0]


def test_the_hard_cases_happen() -> None:
    """One trace each: the bound changes within an interval, an arrival falls inside one, sequences give way."""
    costs = costs_of("full", "balanced", 10_000)
    crossing = [count for count in range(1, 7) if len({computes(costs, count, s) for s in range(2, 40)}) == 2]
    assert crossing
    together = Trace(np.zeros(crossing[0]), np.ones(crossing[0], dtype=int), np.full(crossing[0], 40))
    steps = reference(together, costs, Policy())
    agree(together, costs, Policy(), steps)
    assert simulate(together, costs.deployment).events == 2  # the prompts, and all steps at once
    inside = Trace([0.0, 2.0], [5, 5], [300, 10])
    agree(inside, costs, Policy(), reference(inside, costs, Policy()))
    assert simulate(inside, costs.deployment).first_s[1] < simulate(inside, costs.deployment).last_s[0]
    crowd, tight = Trace(np.arange(6) / 4, np.full(6, 5), np.full(6, 20)), costs_of("full", "odd", 6)
    for preemption in ("recompute", "swap"):
        for kind in ("continuous", "chunked"):
            policy = Policy(kind=kind, preemption=preemption, block=2)
            steps = reference(crowd, tight, policy)
            assert steps.preempted > 0
            agree(crowd, tight, policy, steps)


@given(trace=traces(), costs=COSTS, policy=POLICIES)
def test_events_equal_steps(trace: Trace, costs: PassCosts, policy: Policy) -> None:
    found = agree(trace, costs, policy, reference(trace, costs, policy))
    assert np.isfinite(found.last_s).sum() + len(found.rejected) == len(trace)  # each is served or refused, once
