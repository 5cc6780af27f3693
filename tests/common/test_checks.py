"""Checks of plain numbers refuse by name, and pass on what is there."""

from fractions import Fraction

import numpy as np
import pytest

from costmodel.common.checks import amount, number, present, whole
from costmodel.common.errors import CostModelError


@pytest.mark.parametrize(
    "value", [True, 2.0, "3", None, 0, np.float64(4), np.int64(0), np.array([3]), np.array([4, 5])]
)
def test_what_is_no_whole_number_or_too_small_is_refused_by_name(value):
    with pytest.raises(CostModelError, match=r"slots must be an integer of at least 1, got"):
        whole("slots", value, 1)


def test_whole_numbers_of_any_integer_type_become_ints():
    assert [(whole("slots", value, 1), type(whole("slots", value, 1))) for value in (1, np.int64(8))] == [
        (1, int),
        (8, int),
    ]


@pytest.mark.parametrize("value", [True, "3", None, -0.5, float("nan"), float("inf"), 1j, np.array([1.0, 2.0])])
def test_what_is_no_finite_number_or_too_small_is_refused_by_name(value):
    with pytest.raises(CostModelError, match=r"price must be a finite number of at least 0, got"):
        number("price", value, 0)


@pytest.mark.parametrize("value", [0, 2.5, np.float32(1), Fraction(1, 3), 10**400])
def test_finite_numbers_of_any_real_type_pass(value):
    assert number("price", value, 0) is value


def test_infinity_passes_only_where_it_has_a_meaning():
    assert number("ttl", float("inf"), 0, infinite=True) == float("inf")
    for value in (float("nan"), -float("inf")):
        with pytest.raises(CostModelError, match="ttl must be a number of at least 0"):
            number("ttl", value, 0, infinite=True)


@pytest.mark.parametrize("value", [True, "3", None, -1, 10.5, float("nan"), 1j, 10**400, np.array([3.0])])
def test_what_is_no_number_or_out_of_range_is_refused_by_name(value):
    with pytest.raises(CostModelError, match=r"price must be a number from 0 to 10, got"):
        amount("price", value, 0, 10)


@pytest.mark.parametrize("value", [0, 2.5, Fraction(1, 3), np.float32(10)])
def test_real_numbers_of_any_type_pass(value):
    assert amount("price", value, 0, 10) is value


def test_what_is_missing_is_refused_by_name():
    with pytest.raises(CostModelError, match="batch is not stated"):
        present("batch", None)


@pytest.mark.parametrize("value", [0, "", (), False])
def test_what_is_there_passes_even_if_empty(value):
    assert present("batch", value) is value
