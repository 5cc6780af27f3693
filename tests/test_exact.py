from fractions import Fraction

import numpy as np
import pytest
import sympy

from costmodel.common.errors import CostModelError
from costmodel.exact import amount, largest, quotient, ratio, smallest, stored_bytes, whole
from costmodel.symbols import B, S


def test_quotient_stays_exact() -> None:
    assert quotient(10**30, 10**29) == 10
    assert isinstance(quotient(10, 5), int)
    assert quotient(1, 3) == Fraction(1, 3)
    assert quotient(S, B) == S / B


def test_smallest_and_largest_of_numbers_are_plain() -> None:
    assert isinstance(smallest(2, 3), int)
    assert smallest(S, 4) == sympy.Min(S, 4)
    assert largest(S, S) is S


def test_stored_bytes_round_up_to_whole_bytes() -> None:
    assert stored_bytes(3, Fraction(1, 2)) == 2
    assert isinstance(stored_bytes(4, Fraction(1, 2)), int)
    assert stored_bytes(2**80 + 1, Fraction(1, 2)) == 2**79 + 1


def test_ratio_is_a_float_only_for_numbers() -> None:
    assert ratio(1, 4) == 0.25
    assert ratio(S, 4) == S / 4


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "8", None, float("nan"), float("inf")])
def test_whole_refuses(value: object) -> None:
    with pytest.raises(CostModelError, match=r"batch must be a whole number, at least 1, got"):
        whole(value, "batch")


@pytest.mark.parametrize("value", [7, np.int64(7), sympy.Integer(7)])
def test_whole_takes_any_integer_type(value: object) -> None:
    assert whole(value, "batch") == 7
    assert type(whole(value, "batch")) is int


def test_letters_pass_and_what_they_come_to_is_checked() -> None:
    assert whole(2 * S, "batch") == 2 * S
    assert amount(S / 3, "price") == S / 3
    assert amount(sympy.sqrt(2), "price", 1, 2) == sympy.sqrt(2)
    for value in (-sympy.pi, sympy.I, sympy.oo, sympy.nan, sympy.Rational(-1, 2), True, "3", float("nan")):
        with pytest.raises(CostModelError, match=r"price must be a number from 0 to inf, got"):
            amount(value, "price", 0, float("inf"))


def test_whole_limit_is_named() -> None:
    with pytest.raises(CostModelError, match=r"from 1 to 10, got 11"):
        whole(11, "layers", limit=10)
