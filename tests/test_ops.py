import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Integer, limit, oo, simplify

from costmodel import contract, elementwise
from costmodel.common.errors import CostModelError
from costmodel.operation import Op, Tensor, Widths
from costmodel.ops import Ledger, Row
from costmodel.symbols import B, D, F, G, H, K, N, S, T, V, b_a, b_kv, b_w

SIZE = st.integers(1, 4096)


def test_matrix_multiplication() -> None:
    op = contract("B D, D F -> B F")
    assert op.flops == 2 * B * D * F
    assert op.bytes == 2 * B * D + 2 * D * F + 2 * B * F
    assert simplify(op.intensity - B * D * F / (B * D + D * F + B * F)) == 0


def test_intensity_tends_to_the_batch() -> None:
    intensity = contract("B D, D F -> B F").intensity
    assert limit(limit(intensity, D, oo), F, oo) == B
    assert limit(limit(intensity, F, oo), D, oo) == B


@given(b=SIZE, d=SIZE, f=SIZE)
def test_numbers_and_substituted_symbols_agree(b: int, d: int, f: int) -> None:
    numbers = contract("B D, D F -> B F", sizes={"B": b, "D": d, "F": f})
    symbols = contract("B D, D F -> B F").subs({B: b, D: d, F: f})
    assert (numbers.flops, numbers.bytes) == (symbols.flops, symbols.bytes)
    assert isinstance(numbers.flops, int)


def test_flops_of_huge_axes_do_not_overflow() -> None:
    op = contract("B D, D F -> B F", sizes={"B": 2**40, "D": 2**40, "F": 2**40})
    assert op.flops == 2**121


def test_element_sizes_follow_roles() -> None:
    op = contract("B T D, D K H -> B T K H", roles=("activation", "weight", "cache")).sized()
    assert op.bytes == B * T * D * b_a + D * K * H * b_w + B * T * K * H * b_kv
    assert op.sized(Widths(1, 2, 4)).bytes == B * T * D * 4 + D * K * H + B * T * K * H * 2


def test_roles_left_out_follow_the_batch_axis() -> None:
    op = contract("B D, D F -> B F")
    assert [t.role for t in (*op.reads, *op.writes)] == ["activation", "weight", "activation"]
    assert contract("D F, F D -> D").writes[0].role == "activation"


def test_widths_and_sizes_stay_with_the_operands() -> None:
    op = contract("B D, D F -> B F", sizes={"D": 3, "F": 5}, widths=Widths(1, 2, 4))
    assert op.bytes == 4 * 3 * B + 15 + 4 * 5 * B
    assert [(t.axes, t.elements, t.dims) for t in (*op.reads, *op.writes)] == [
        ("B D", 3 * B, (B, 3)),
        ("D F", 15, (3, 5)),
        ("B F", 5 * B, (B, 5)),
    ]


def test_elementwise_touches_each_element_and_its_gain_once() -> None:
    op = elementwise("B T D", 3, sizes={"T": 2, "D": 4}, gain="D")
    assert op.flops == 3 * 8 * B
    assert op.sized().bytes == 2 * 8 * B * b_a + 4 * b_w
    assert op.operands == ("B T D, D", "B T D")
    assert elementwise("B D").flops == 0
    assert elementwise("B D", 1, gain="D", on_chip=True).operands == ("[B D], D", "[B D]")


def test_operand_on_chip_moves_nothing() -> None:
    assert contract("B D, D F -> B F", on_chip=[0, -1]).bytes == 2 * D * F
    assert contract("B D, D F -> B F", on_chip=[-3, -1]) == contract("B D, D F -> B F", on_chip=[0, 2])
    assert contract("B D, D F -> B F", sizes={"N": 0}).flops == 2 * B * D * F  # heads that no operand has
    assert contract("B D, D F -> B F", on_chip=[0, -1]).operands == ("[B D], D F", "[B F]")


def test_grouped_heads_multiply_out() -> None:
    op = contract("B T K G H, B S K H -> B K G T S", roles=("activation", "cache", "activation"))
    assert op.flops == 2 * B * T * S * N * H
    assert contract("B K G, K G D -> B D", sizes={"G": G}).flops == 2 * B * K * G * D


def test_visible_pairs_replace_the_square() -> None:
    op = contract("B T H, B S H -> B T S", visible=7)
    assert op.flops == 14 * B * H
    assert op.bytes == 2 * (B * T * H + B * S * H + B * T * S)  # what is skipped is arithmetic, not traffic
    assert contract("B T H, B S H -> B T S", visible=0).flops == 0


@pytest.mark.parametrize(
    ("pattern", "options", "message"),
    [
        ("B D, D F", {}, "^'B D, D F' has no arrow"),
        ("B D, D F -> ", {}, "operand ' ' of 'B D, D F -> ' is empty"),
        ("B D, D F -> B V", {}, "axis 'V' of .* is in the output but in no input"),
        ("B D, D Z -> B Z", {}, "unknown axis 'Z'"),
        ("B D -> B Z", {}, "unknown axis 'Z' in 'B D -> B Z'"),
        ("B D, D F -> B Z", {}, "unknown axis 'Z' in 'B D, D F -> B Z'"),
        ("B D -> B -> D", {}, "unknown axis '->'"),
        ("B B, D F -> B F", {}, "operand 'B B' of 'B B, D F -> B F' repeats an axis"),
        ("B D,  -> B", {}, "is empty"),
        ("B D, D F -> B F", {"sizes": {"D": 0}}, "axis D of .* must be positive, got 0"),
        ("B D, D F -> B F", {"sizes": {"F": -1}}, "axis F of .* must be positive, got -1"),
        (
            "B D, D F -> B F",
            {"roles": ("weight",)},
            "got 1 for 3 operands; give one of weight, cache, activation, state for each",
        ),
        ("B D, D F -> B F", {"roles": ("weight", "tape", "cache")}, "got 'tape'"),
        ("B D, D F -> B F", {"sizes": {"D": "8"}}, "axis D of .* must be positive, got '8'"),
        ("B D, D F -> B F", {"sizes": {"F": Integer(0)}}, "axis F of .* must be positive, got 0"),
        ("B K G, K G D -> B D", {"sizes": {"N": 8, "K": 0}}, "axis K of .* must be positive, got 0"),
        ("B G, G D -> B D", {"sizes": {"N": 0, "K": 8}}, "axis N of .* must be positive, got 0"),
        ("B D, D F -> B F", {"on_chip": [-4]}, r"on_chip of .*: no operand -4; they are 0 … 2, or -1"),
        ("B D, D F -> B F", {"on_chip": [3]}, r"on_chip of .*: no operand 3; they are 0 … 2, or -1"),
        ("B D, D F -> B F", {"on_chip": ["0"]}, "on_chip of .*: no operand '0'"),
        ("B T, B S -> B T S", {"visible": -1}, "pairs visible in .* must be a number from 0 to inf, got -1"),
    ],
)
def test_bad_patterns_are_quoted(pattern: str, options: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        contract(pattern, **options)


@pytest.mark.parametrize(
    ("axes", "options", "message"),
    [
        ("B Q", {}, r"unknown axis 'Q' in 'B Q'; give sizes=\{'Q': …\} or use a letter of the notation"),
        ("B D", {"gain": "Q"}, "unknown axis 'Q' in 'B D, Q'"),
        ("B B", {}, "operand 'B B' of 'B B' repeats an axis"),
        ("", {}, "operand '' of '' is empty"),
        ("B D", {"gain": 3}, "operand 3 of 3 is empty"),
        ("B D", {"gain": ""}, "operand '' of '' is empty"),
        ("B D", {"sizes": {"D": 0}}, "axis D of 'B D' must be positive, got 0"),
        ("B D", {"per_element": -1}, "per_element must be a number from 0 to inf, got -1"),
    ],
)
def test_bad_axes_are_quoted(axes: str, options: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        elementwise(axes, **options)


def test_moving_nothing_has_no_intensity() -> None:
    with pytest.raises(CostModelError, match="nothing is moved"):
        _ = elementwise("B T D", on_chip=True).intensity


def test_ledger_totals_are_sums_of_rows() -> None:
    ledger = Ledger([Row("up", contract("B T D, D F -> B T F"), 3), Row("head", contract("B D, D V -> B V"))])
    assert ledger.flops == 6 * B * T * D * F + 2 * B * D * V
    assert ledger.bytes == sum(row.bytes for row in ledger.rows)
    assert ledger.times(2).flops == 2 * ledger.flops
    assert (ledger + ledger).bytes == 2 * ledger.bytes
    assert ledger.elements("weight") == 3 * D * F + D * V


def test_elements_on_chip_or_of_other_roles_are_not_counted() -> None:
    ledger = Ledger([Row("up", contract("B T D, D F -> B T F", on_chip=[0]), 3)])
    assert ledger.elements("activation") == 3 * B * T * F
    assert ledger.elements("cache") == 0


def test_rows_keep_their_names_and_order() -> None:
    up, down = Row("up", contract("B D, D F -> B F"), 2), Row("down", contract("B F, F D -> B D"), 3)
    ledger = Ledger([up]) + Ledger([down])
    assert [(row.name, row.count) for row in ledger.rows] == [("up", 2), ("down", 3)]
    assert ledger.times(1) is ledger
    assert [row.count for row in ledger.times(5).rows] == [10, 15]
    assert [(row.name, row.count) for row in ledger.subs({"D": 4}).rows] == [("up", 2), ("down", 3)]
    assert ledger.sized().bytes == 2 * (B * D * b_a + D * F * b_w + B * F * b_a) + 3 * (
        B * F * b_a + D * F * b_w + B * D * b_a
    )
    assert ledger.sized(Widths(1, 1, 1)).bytes * 2 == ledger.bytes


def test_ledger_at_binds_counts_too() -> None:
    bound = Ledger([Row("up", contract("B T D, D F -> B T F"), N)]).at(N=2, B=1, T=1, D=4, F=8)
    assert (bound.flops, bound.bytes) == (128, 2 * (2 * 4 + 2 * 8 + 2 * 32))


def test_ledger_names_its_rows() -> None:
    ledger = Ledger([Row("up", contract("B T D, D F -> B T F"))])
    assert ledger["up"].flops == 2 * B * T * D * F
    with pytest.raises(KeyError, match=r"no row called 'down'; the ledger has up, up"):
        (ledger + ledger)["down"]


def test_ledger_shows_itself() -> None:
    ledger = Ledger([Row("up", contract("B T D, D F -> B T F"))])
    text, html = str(ledger), ledger._repr_html_()
    assert "2*B*D*F*T" in text
    assert text.splitlines()[-1].startswith("total")
    assert "$2 B D F T$" in html
    assert html.count("<tr>") == 3


def test_ledger_table_says_what_is_read_written_and_summed() -> None:
    ledger = Ledger([Row("up", contract("B D, D F -> B F"), 2), Row("down", contract("B F, F D -> B D"))])
    header, *_, total = str(ledger).splitlines()
    assert header.split() == ["step", "times", "reads", "writes", "FLOPs", "bytes"]
    assert "  ".join(total.split()) == "total  6*B*D*F  6*B*D  +  6*B*F  +  6*D*F"
    row = next(line for line in str(ledger).splitlines() if line.startswith("up"))
    assert row.split()[:6] == ["up", "2", "B", "D,", "D", "F"]
    assert repr(ledger) == str(ledger)


def test_ledger_table_shows_what_is_sent_where_anything_is() -> None:
    sum_up = Row("sum", Op(0, sends=(Tensor("B D", B * D, "activation"),), messages=2), 3)
    header, *_, total = str(Ledger([sum_up])).splitlines()
    assert header.split()[-1] == "sent"
    assert total.split()[-1] == "6*B*D"


def test_binding_reaches_the_size_of_every_axis() -> None:
    bound = contract("B D, D F -> B F").subs({B: 2, D: 4, F: 8})
    assert [t.dims for t in (*bound.reads, *bound.writes)] == [(2, 4), (4, 8), (2, 8)]


def test_totals_are_multiplied_out() -> None:
    total = str(Ledger([Row("up", contract("B D, D F -> B F"), N)])).splitlines()[-1]
    assert "2*B*D*N" in total
    assert "(" not in total


def test_numeric_ledger_prints_grouped_digits() -> None:
    sizes = {"B": 1, "T": 1, "D": 4096, "F": 14336}
    assert "117,440,512" in str(Ledger([Row("up", contract("B T D, D F -> B T F", sizes=sizes))]))
