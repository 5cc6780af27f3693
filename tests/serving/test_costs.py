"""Pass costs are those of the ledger, and the closed forms are sums: SymPy derives them again."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Rational, expand, factor, summation

from costmodel import Deployment, accelerator, load, presets, transformer
from costmodel.common.errors import CostModelError
from costmodel.layers import Attention, Mlp
from costmodel.model import Block, Model
from costmodel.parallel import Parallel
from costmodel.passes import ForwardPass
from costmodel.serving import PassCosts, interval_formulas
from costmodel.serving.interval import crossover, interval, line_sum, steps_until, stretch
from costmodel.symbols import B, M, S, index

H100 = accelerator("h100-sxm")
LLAMA = Deployment(load("llama-3-8b"), H100)


@pytest.mark.parametrize("name", presets())
@pytest.mark.parametrize("formats", [("bf16", "bf16"), ("int4", "mxfp4")])
def test_a_uniform_pass_costs_what_the_deployment_says(name: str, formats: tuple[str, str]) -> None:
    d = Deployment(load(name), H100, weights=formats[0], cache=formats[1])
    costs = PassCosts(d)
    for batch, context in ((1, 1), (3, 127), (2, 128), (2, 129), (64, 5000), (5, 4097)):
        step, prefill = d.decode(batch, context).seconds_per_token, d.prefill(context, batch).seconds
        assert costs.seconds(costs.decode([context] * batch)) == pytest.approx(float(step), rel=1e-13)
        found = costs.seconds(costs.mixed([], [(context, context)] * batch))
        assert found == pytest.approx(float(prefill), rel=1e-13)
        assert costs.cache_bytes(context) == d.cache_bytes(context)


def test_chunked_attention_restarts_its_piece() -> None:
    layers = (Attention(64, 4, 2, 16, chunk=128), Mlp(64, 128))
    d = Deployment(Model(((Block(layers), 2),)), H100)
    costs = PassCosts(d)
    for context in (1, 127, 128, 129, 256, 257, 1000):
        step, prefill = costs.decode([context]), costs.mixed([], [(context, context)])
        assert costs.seconds(step) == pytest.approx(d.decode(1, context).seconds_per_token, rel=1e-13)
        assert costs.seconds(prefill) == pytest.approx(d.prefill(context).seconds, rel=1e-13)
    assert (costs.last(1), costs.last(128), costs.last(129)) == (128, 128, 256)


@given(contexts=st.lists(st.integers(1, 9000), min_size=1, max_size=20))
def test_a_ragged_step_lies_between_uniform_ones(contexts: list[int]) -> None:
    costs = PassCosts(LLAMA)
    ragged = costs.decode(contexts)
    low, high = (costs.decode([pick(contexts)] * len(contexts)) for pick in (min, max))
    assert low <= ragged <= high
    assert ragged == costs.decode(sorted(contexts))


def test_pieces_of_a_prompt_do_the_arithmetic_of_the_whole() -> None:
    costs = PassCosts(Deployment(load("gemma-2-9b"), H100))
    whole, _ = costs.prefill(6000, 6000)
    parts = [costs.prefill(2000, end)[0] for end in (2000, 4000, 6000)]
    head = costs.prefill(1, 6000)[0] + costs.prefill(1, 5999)[0] - costs.prefill(2, 6000)[0]  # one more row of logits
    assert sum(parts) - 2 * head == whole


@pytest.mark.parametrize("name", ["llama-3-8b", "gemma-2-9b", "mixtral-8x7b", "deepseek-v3"])
def test_a_pass_of_pieces_costs_what_its_ledger_says(name: str) -> None:
    d = Deployment(load(name), H100)
    costs = PassCosts(d)
    for t, s in ((128, 5000), (169, 8192), (2, 300), (300, 300)):
        ledger = d.model.forward(ForwardPass(3, t, s)).sized(d.widths)
        seconds = max(ledger.flops / H100.peak("bf16"), ledger.bytes / H100.bandwidth)
        assert costs.seconds(costs.mixed([], [(t, s)] * 3)) == pytest.approx(float(seconds), rel=1e-13)


@pytest.mark.parametrize(("chunk", "binds"), [((600, 5000), "compute"), ((2, 300), "memory")])
def test_a_mixed_pass_reads_the_weights_once(chunk: tuple[int, int], binds: str) -> None:
    """Decodes beside a piece of a prompt: the ledgers of each alone, less the weights that they share."""
    costs, contexts = PassCosts(LLAMA), (700, 4000)
    ledgers = lambda batch: [  # noqa: E731
        LLAMA.model.forward(ForwardPass(batch, t, s)).sized(LLAMA.widths)
        for t, s in (*((1, s) for s in contexts), chunk)
    ]
    weights = 2 * ledgers(1)[0].bytes - ledgers(2)[0].bytes
    assert weights == LLAMA.weight_bytes - 128_256 * 4096 * 2  # all but the table that tokens are looked up in
    flops, moved = sum(alone.flops for alone in ledgers(1)), sum(alone.bytes for alone in ledgers(1)) - 2 * weights
    seconds = {"compute": flops / H100.peak("bf16"), "memory": moved / H100.bandwidth}
    assert max(seconds, key=seconds.get) == binds
    assert costs.seconds(costs.mixed(contexts, [chunk])) == pytest.approx(float(seconds[binds]), rel=1e-13)


def test_what_cannot_be_served_is_refused() -> None:
    for other, value in (("textbook", True), ("calibrated", True), ("calibrated", "vllm")):
        with pytest.raises(CostModelError, match=rf"^serving is timed by the roofline; {other}={value!r} has no pass"):
            PassCosts(Deployment(load("8b"), H100, **{other: value}))
    for spread in (Parallel(tensor=2), Parallel(pipeline=2), Parallel(replicas=2)):
        with pytest.raises(CostModelError, match=r"^serving takes joined devices as one, accelerator.times\(n\), and"):
            PassCosts(Deployment(load("8b"), H100, parallel=spread))
    with pytest.raises(CostModelError, match=r"serving needs numbers; .* have no value"):
        PassCosts(Deployment(transformer(), H100))


# The closed forms

LINE = st.tuples(st.integers(0, 10**6), st.integers(0, 10**4))


@given(c=LINE, m=LINE, steps=st.integers(1, 60), target=st.integers(-5, 10**7), held=LINE)
def test_closed_forms_are_the_sums(
    c: tuple[int, int], m: tuple[int, int], steps: int, target: int, held: tuple[int, int]
) -> None:
    each = [max(c[0] + c[1] * i, m[0] + m[1] * i) for i in range(steps)]
    assert interval(*c, *m, steps) == sum(each)
    integral = sum(t * (held[0] + held[1] * i) for i, t in enumerate(each))
    assert stretch(*c, *m, *held, steps) == (sum(each), integral)
    bounds = [c[0] + c[1] * i >= m[0] + m[1] * i for i in range(steps)]
    assert crossover(*c, *m, steps) == next((i for i in range(steps) if bounds[i] != bounds[0]), steps)
    if min(each) > 0:
        reached = next((n for n in range(1, steps) if sum(each[:n]) >= target), steps)
        assert steps_until(*c, *m, steps, target) == reached


def test_the_sum_of_a_line_is_sympys() -> None:
    assert expand(summation(B + S * index, (index, 0, M - 1)) - (M * B + S * M * (M - 1) / 2)) == 0
    assert line_sum(Fraction(1, 3), Fraction(1, 7), 10) == sum(Fraction(1, 3) + Fraction(i, 7) for i in range(10))


def test_the_interval_as_algebra() -> None:
    """SymPy sums the deployment's own step; at numbers that is what the simulation adds up, crossover included."""
    formulas, costs = interval_formulas(LLAMA), PassCosts(LLAMA)
    assert factor(formulas["memory"]).has(M)
    for batch, context, steps in ((1, 100, 500), (256, 500, 300), (200, 4000, 1000)):
        at = {B: batch, S: context, M: steps}
        pairs = zip(costs.shared(batch), costs.lines[:2], strict=True)
        c0, m0 = (shared + batch * line.at(context)[0] for shared, line in pairs)
        c1, m1 = (batch * line.slope for line in costs.lines[:2])
        sums = {"compute": line_sum(c0, c1, steps), "memory": line_sum(m0, m1, steps)}
        for side, ticks in sums.items():
            assert formulas[side].subs(at) == Rational(ticks, costs.ticks_per_s)
    c, m = (100, 7), (4000, 1)
    assert crossover(*c, *m, 10**6) == -(-(m[0] - c[0]) // (c[1] - m[1]))
    batch = 400  # more sequences than the ridge: arithmetic binds until the caches are long enough
    found = formulas["crossover"].subs({B: batch, S: 10})
    first = [LLAMA.decode(batch, 10 + i).bound for i in (int(found), int(found) + 1)]
    assert first == ["compute", "memory"]


def test_a_step_that_is_not_one_line_says_so() -> None:
    with pytest.raises(CostModelError, match="not linear in the context"):
        interval_formulas(Deployment(load("mistral-7b-v0.1"), H100))
