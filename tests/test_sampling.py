import pytest
from sympy import simplify

from costmodel import load
from costmodel.common.errors import CostModelError
from costmodel.sampling import sampling
from costmodel.symbols import A, B, V


def test_rows_of_a_plain_draw() -> None:
    ledger = sampling()
    assert simplify(ledger.bytes - 8 * B * V) == 0
    assert ledger.flops == 0
    assert sampling(elementwise=True).flops == 7 * B * V


def test_candidates_stay_symbolic_and_never_exceed_the_vocabulary() -> None:
    assert sampling(top_k=A).bytes.has(A, V)
    assert sampling(batch=1, vocab=10, top_k=50).bytes == sampling(batch=1, vocab=10).bytes


def test_sorting_candidates_costs_one_more_read_and_write() -> None:
    with_sort, without = (sampling(batch=3, vocab=1000, top_k=40, top_p=p).bytes for p in (True, False))
    assert with_sort - without == 4 * 3 * 40


def test_choosing_is_cheap_beside_computing_the_logits() -> None:
    model = load("llama-3-8b")
    assert sampling(batch=1, vocab=128256).bytes < 1e-3 * model.decode(1, 1024)["unembedding"].bytes * 2


def test_impossible_top_k() -> None:
    message = r"top_k \(None keeps every token\) must be a whole number, at least 1, got 0"
    with pytest.raises(CostModelError, match=message):
        sampling(top_k=0)
    for name in ("batch", "vocab"):
        with pytest.raises(CostModelError, match=f"^{name} must be a whole number, at least 1, got -1"):
            sampling(**{name: -1})
