from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Eq, Integer, Max, Min, Ne, Piecewise, Rational, Sum, Symbol, ceiling, exp, floor, gamma, log

from costmodel.common.errors import CostModelError
from costmodel.evaluate import CHUNK, CompiledFormula, _pieces, compile_formulas, evaluate
from costmodel.symbols import B, D, S, W


def test_leftover_symbols_are_named() -> None:
    with pytest.raises(CostModelError, match="no value for D, S; given: B"):
        evaluate(B * D * S, B=2)


def test_what_is_given_is_listed_or_said_to_be_nothing() -> None:
    with pytest.raises(CostModelError, match=r"no value for B; given: nothing$"):
        CompiledFormula([B], [])
    with pytest.raises(CostModelError, match=r"no value for D; given: B, S$"):
        CompiledFormula([B * D, S], [B, S], {W: 1.0})


def test_constants_keep_their_place_in_the_formula() -> None:
    compiled = compile_formulas([B * D + S, 7], [B], {D: 3.0, S: 0.5})
    assert [r.tolist() for r in compiled([1, 2])] == [[3.5, 6.5], [7.0, 7.0]]
    assert compile_formulas([B * D], [B], {D: 4.0})([1])[0].tolist() == [4.0]


def test_values_may_be_named_either_way() -> None:
    assert evaluate(B - S, {"B": 5}, S=2) == 3
    assert evaluate(B - S, {S: 2}, B=5) == 3


def test_lookalike_symbols_are_refused_not_ignored() -> None:
    with pytest.raises(KeyError, match="different symbol"):
        evaluate(B + 1, {Symbol("B"): 2})


def test_constants_broadcast() -> None:
    assert evaluate(Integer(3), B=[1, 2, 3]).tolist() == [3.0, 3.0, 3.0]
    assert evaluate(Integer(3)).shape == ()


def test_counts_past_2_to_the_63_do_not_overflow() -> None:
    assert evaluate(B**4 * 10**30, B=np.array([2**20])) == pytest.approx(2.0**80 * 1e30)


def test_integers_come_out_as_float64() -> None:
    assert evaluate(B * S, B=np.arange(3), S=2).dtype == np.float64


@pytest.mark.parametrize("divisor", [3, 7, 10, 49])
def test_floor_and_ceiling_at_exact_multiples(divisor: int) -> None:
    multiples = divisor * np.arange(1, 20_000)
    assert (evaluate(floor(S / divisor), S=multiples) == np.arange(1, 20_000)).all()
    assert (evaluate(ceiling(S / divisor), S=multiples) == np.arange(1, 20_000)).all()
    assert (evaluate(floor(S / divisor), S=multiples - 1) == np.arange(0, 19_999)).all()
    assert (evaluate(2 * ceiling(3 * S / divisor) + 1, S=multiples) == 6 * np.arange(1, 20_000) + 1).all()


def test_min_and_max_of_several() -> None:
    assert evaluate(Max(B, S, W), B=1, S=[2, 5], W=3).tolist() == [3, 5]
    assert evaluate(Min(B, S, 4), B=9, S=[2, 5]).tolist() == [2, 4]


@pytest.mark.parametrize("shape", [(CHUNK + 1,), (3, CHUNK), (2, 3, CHUNK // 2), (5, 7), (1, 1), (2 * CHUNK + 3, 1)])
def test_pieces_cover_every_point_once(shape: tuple[int, ...]) -> None:
    grid = np.arange(np.prod(shape), dtype=float).reshape(shape)
    assert (evaluate(2 * B + 1, B=grid) == 2 * grid + 1).all()
    column = grid[..., :1]
    assert (evaluate(B * S, B=grid + 1, S=column + 1) == (grid + 1) * (column + 1)).all()


@pytest.mark.parametrize(
    ("shape", "pieces"),
    [
        ((CHUNK,), 1),
        ((CHUNK + 1,), 2),
        ((3, 2 * CHUNK), 6),
        ((3, CHUNK), 3),
        ((2, 3, CHUNK // 2), 4),
        ((CHUNK // 4, 8), 2),
        ((5, 1), 1),
    ],
)
def test_pieces_are_few_and_fit_the_cache(shape: tuple[int, ...], pieces: int) -> None:
    whole = (slice(None),) * len(shape)  # axes that a piece does not name
    spans = [[*piece, *whole][: len(shape)] for piece in _pieces(shape)]
    points = [prod(len(range(n)[part]) for part, n in zip(span, shape, strict=True)) for span in spans]
    assert len(points) == pieces
    assert max(points) <= CHUNK
    assert sum(points) == prod(shape)


def test_empty_arrays_are_allowed() -> None:
    assert evaluate(B + 1, B=np.array([])).shape == (0,)


@given(a=st.fractions(), b=st.fractions(max_denominator=10**6), x=st.integers(1, 10**6), y=st.integers(1, 10**6))
def test_compiled_equals_exact(a: object, b: object, x: int, y: int) -> None:
    formula = Rational(a) * B * S + Rational(b) * B + B / S
    exact = formula.subs({B: x, S: y})
    scale = abs(Rational(a)) * x * y + abs(Rational(b)) * x + Rational(x, y)
    assert abs(float(evaluate(formula, B=x, S=y)) - float(exact)) <= 1e-14 * float(scale) + 1e-300


def test_formulas_are_compiled_once() -> None:
    assert compile_formulas([B + S], [B, S]) is compile_formulas([B + S], [B, S])


def test_together_they_share_their_inputs() -> None:
    both = CompiledFormula([B * S, B], [B, S])(np.arange(4.0), 2.0)
    assert [r.tolist() for r in both] == [[0, 2, 4, 6], [0, 1, 2, 3]]


def test_functions_beyond_arithmetic_are_compiled_or_refused() -> None:
    assert evaluate(exp(B) + log(S), B=[0, 1], S=1).tolist() == pytest.approx([1, np.e])
    assert evaluate(B ** Rational(-1, 2), B=[4, 16]).tolist() == [0.5, 0.25]
    with pytest.raises(CostModelError, match=r"gamma cannot be compiled; known: \+"):
        evaluate(gamma(B), B=2)
    with pytest.raises(CostModelError, match=r"Sum cannot be compiled; known: \+"):
        evaluate(S * Sum(Min(W, D), (D, 0, B)), B=2, S=3, W=4)


POINTS = st.integers(1, 4)
PIECES = {
    "one of two": Piecewise((S * B + D, B <= S), (D / B, True)),
    "none left over": Piecewise((S, B < S), (B, B > D)),
    "joined": Piecewise((S, (B < S) & (B < D)), (D, (B >= S) | (D > S)), (1, True)),
    "inside": 3 * B * Piecewise((B**2 + 1, Ne(B, S)), (D, True)) + Piecewise((S, Ne(B, S)), (B, True)),
    "where the other divides by 0": Piecewise((B, Eq(B, S)), (1 / (B - S), True)),
}


@given(kind=st.sampled_from(sorted(PIECES)), b=POINTS, s=POINTS, d=POINTS)
def test_pieces_are_chosen_point_by_point(kind: str, b: int, s: int, d: int) -> None:
    at = {B: [b, s, 1], S: [s, s, 2], D: [d, d, 2]}
    exact = [float(PIECES[kind].subs({k: v[i] for k, v in at.items()})) for i in range(3)]
    assert evaluate(PIECES[kind], at).tolist() == pytest.approx(exact, nan_ok=True)
    assert float(evaluate(PIECES[kind], {B: b, S: s, D: d})) == pytest.approx(exact[0], nan_ok=True)


def test_division_by_0_still_warns_where_nothing_is_chosen() -> None:
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        evaluate(1 / (B - S), B=1, S=1)


def test_constants_are_worked_out_once() -> None:
    assert CompiledFormula([B * exp(D)], [B], {D: 0.0})(3)[0] == 3
