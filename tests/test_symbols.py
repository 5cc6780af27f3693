import pytest
import sympy

from costmodel import symbols
from costmodel.common.errors import CostModelError
from costmodel.symbols import NOTATION, B, S, T, bindings, letter, used_in


def test_every_letter_is_positive_and_nothing_more() -> None:
    for name, line in NOTATION.items():
        expected = {"nonnegative": True} if name in ("alpha", "gamma") else {"positive": True}
        assert line.symbol == sympy.Symbol(name, **expected), name
        assert line.symbol.is_integer is None


def test_every_letter_is_described_once() -> None:
    meanings = [line.meaning for line in NOTATION.values()]
    assert all(meanings)
    assert len(set(meanings)) == len(meanings)


def test_module_attributes_are_the_letters() -> None:
    for name, line in NOTATION.items():
        attribute = "index" if name == "i" else name
        assert getattr(symbols, attribute) is line.symbol


def test_solve_finds_fractional_roots() -> None:
    assert sympy.solve(sympy.Eq(2 * B, 3), B) == [sympy.Rational(3, 2)]


def test_lookalike_is_refused() -> None:
    with pytest.raises(KeyError, match="'B' is a different symbol"):
        bindings({sympy.Symbol("B"): 3})


def test_a_text_is_not_run() -> None:
    with pytest.raises(CostModelError, match=r"B must be a number or a formula, got the text '1 \+ 1'"):
        bindings({"B": "1 + 1"})


def test_unknown_letter_lists_the_known() -> None:
    with pytest.raises(KeyError, match="no symbol called 'Z'; the notation has B, S"):
        letter("Z")


def test_used_in_keeps_the_tables_order() -> None:
    assert [line.symbol for line in used_in(T * S, B, 3)] == [B, S, T]
