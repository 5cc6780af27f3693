from fractions import Fraction

import pytest
from sympy import Integer, Max, simplify

from costmodel.symbols import B, D, L, S, b_kv, memory_bandwidth, peak
from costmodel.tables import Formula, Table, display_form, latex_of, notation, plain, rate, with_prefix


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (26869760000, "26.87 GB"), (80 * 10**9, "80 GB"), (999, "999 B"), (1000, "1 kB"), (0, "0 B"), (1e-9, "1 nB"),
        (2**30, "1.074 GB"), (1e18, "1000 PB"), (-5e6, "-5 MB"),
    ],
)  # fmt: skip
def test_prefixes_are_decimal(value: float, text: str) -> None:
    assert with_prefix(value, "B") == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.9996, 3, "1 s"), (0.9994, 3, "999 ms"), (999.5, 3, "1 ks"), (-0.9996, 3, "-1 s"), (9.9996e-4, 4, "1 ms"),
        (9.9994e-4, 4, "999.9 µs"), (999.7, 3, "1 ks"), (1e-12, 3, "1e-12 s"),
    ],
)  # fmt: skip
def test_the_prefix_is_that_of_the_rounded_number(value: float, digits: int, text: str) -> None:
    assert with_prefix(value, "s", digits) == text


def test_plain_numbers() -> None:
    assert [plain(x) for x in (1234567, Integer(1234567), Fraction(1, 3), 0.1 + 0.2, True, "x")] == [
        "1,234,567", "1,234,567", "0.333333", "0.3", "True", "x",
    ]  # fmt: skip
    assert rate(99.96) == "99.96"


def test_latex_uses_the_notations_spelling() -> None:
    assert latex_of(b_kv / memory_bandwidth) == r"\frac{b_{kv}}{\mathrm{bandwidth}}"
    assert latex_of(7) == "7"


def test_display_form_is_the_same_formula() -> None:
    formula = Max((L * (B + D) + L * S * (B + 1)) / peak, B / memory_bandwidth)
    assert simplify(display_form(formula) - formula) == 0
    assert "L*(" in str(display_form(formula))


def test_a_formula_shows_itself() -> None:
    assert repr(Formula(B * S)) == "B*S"
    assert Formula(B * S)._repr_latex_() == r"$\displaystyle B S$"


def test_tables_in_text_and_html() -> None:
    rows = [["a<b", 1234, Formula(B * S)], ["total", "", Formula(7)]]
    table = Table(["step", "times", "FLOPs"], rows)
    assert "1,234" in str(table)
    assert repr(table) == str(table)
    html = table._repr_html_()
    assert "a&lt;b" in html
    assert "$B S$" in html


def test_notation_table_holds_what_a_formula_uses() -> None:
    assert [row[0].value for row in notation(S * B).rows] == [B, S]
    assert "sliding-window length" in str(notation())


def test_a_number_is_its_own_display_form() -> None:
    assert display_form(7) == 7
