from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import simplify

from costmodel import CostModelError, cached_flops, load, naive_flops, transformer
from costmodel.generation import cached_positions, naive_positions
from costmodel.symbols import D, M, P

TINY = {"V": 16, "D": 16, "F": 64, "N": 2, "K": 2, "H": 8, "L": 2}
WHOLE = {"causal": False, "head": "all"}


def test_positions_as_closed_sums() -> None:
    assert (naive_positions(8, 16), cached_positions(8, 16)) == (248, 23)
    assert simplify(naive_positions() - (M * P + M * (M - 1) / 2)) == 0


@given(prompt=st.integers(1, 40), generated=st.integers(1, 40))
def test_positions_equal_a_loop(prompt: int, generated: int) -> None:
    assert naive_positions(prompt, generated) == sum(prompt + i for i in range(generated))
    assert cached_positions(prompt, generated) == prompt + sum(1 for _ in range(generated - 1))


@given(prompt=st.integers(1, 20), generated=st.integers(1, 20), causal=st.booleans())
def test_closed_form_equals_the_sum_of_passes(prompt: int, generated: int, causal: bool) -> None:
    numeric, symbolic = transformer(**TINY), transformer(**TINY)
    bound = {P: prompt, M: generated}
    for total in (naive_flops, cached_flops):
        assert total(numeric, prompt, generated, causal=causal) == total(symbolic, causal=causal).subs(bound)


@pytest.mark.parametrize(("generated", "naive", "cached"), [(16, 3_709_952, 333_312), (32, 12_236_800, 602_624)])
def test_tiny_decoder_totals(generated: int, naive: int, cached: int) -> None:
    """R-decoder: the shapes of the small decoder, whole score matrices, logits at every position."""
    tiny = transformer(**TINY, norms=False, gated=False, tied_head=True)
    assert naive_flops(tiny, 8, generated, **WHOLE) == naive
    assert cached_flops(tiny, 8, generated, **WHOLE) == cached


def test_naive_attention_is_cubic_and_the_rest_quadratic() -> None:
    assert naive_flops(transformer(), 1, M).as_poly(M).degree() == 3
    assert cached_flops(transformer(), 1, M).as_poly(M).degree() == 2


def test_windowed_models_are_summed_plainly() -> None:
    assert naive_flops(load("mistral-7b-v0.1"), 4, 3) == sum(
        load("mistral-7b-v0.1").prefill(1, 4 + i).flops for i in range(3)
    )
    sized, open_ = (transformer(**sizes, windows=[(4, 1), (None, 1)]) for sizes in (TINY, TINY | {"D": D}))
    for total in (naive_flops, cached_flops):
        assert total(open_, 3, 5).subs(D, TINY["D"]) == total(sized, 3, 5)


@pytest.mark.parametrize("total", [naive_flops, cached_flops])
@pytest.mark.parametrize("at", [(), (4,), (P, 3)])
def test_windowed_models_have_no_closed_form(total: Callable, at: tuple) -> None:
    message = "^mistral-7b-v0.1 has sliding windows or chunks; give prompt and generated as numbers$"
    with pytest.raises(CostModelError, match=message):
        total(load("mistral-7b-v0.1"), *at)


@pytest.mark.parametrize("total", [naive_positions, cached_positions, naive_flops, cached_flops])
@pytest.mark.parametrize(("name", "at"), [
    ("generated", (8, -3)), ("generated", (8, 0)), ("generated", (8, 3.0)), ("prompt", (0, 3)), ("prompt", (True, 3)),
])  # fmt: skip
def test_tokens_are_whole_and_at_least_one(total: Callable, name: str, at: tuple) -> None:
    model = () if total in (naive_positions, cached_positions) else (transformer(**TINY),)
    with pytest.raises(CostModelError, match=f"^{name} must be a whole number, at least 1, got "):
        total(*model, *at)
