"""The formulas of blocks, against the allocator."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import simplify

from costmodel.common.block_tables import BlockTables
from costmodel.common.blocks import BlockPool
from costmodel.common.errors import CostModelError
from costmodel.paging import expected_empty_tokens, sequences_that_fit
from costmodel.symbols import S, block


def test_half_a_block_less_half_a_token() -> None:
    assert simplify(expected_empty_tokens() - (block - 1) / 2) == 0
    for b in (1, 2, 16, 17):
        assert expected_empty_tokens(b) == Fraction(b - 1, 2) == expected_empty_tokens().subs(block, b)


@given(st.integers(0, 500), st.integers(1, 60), st.integers(1, 20))
def test_as_many_fit_as_the_allocator_takes(tokens: int, context: int, b: int) -> None:
    tables = BlockTables(BlockPool(tokens // b), b)
    while -(-context // b) <= tables.pool.free:
        tables.allocate(len(tables), context)
    assert len(tables) == sequences_that_fit(tokens, context, b)
    assert len(tables) == sequences_that_fit(tokens).subs({S: context, block: b})


def test_nothing_fits_into_impossible_blocks() -> None:
    for call in (lambda: sequences_that_fit(100, 10, 0), lambda: expected_empty_tokens(0)):
        with pytest.raises(CostModelError, match="block must be a whole number, at least 1, got 0"):
            call()
    with pytest.raises(CostModelError, match="tokens must be a whole number, at least 0, got -5"):
        sequences_that_fit(-5, 1000, 16)
    with pytest.raises(CostModelError, match=r"context must be a whole number, at least 1, got 10\.5"):
        sequences_that_fit(100, 10.5, 16)


def test_a_block_as_large_as_one_likes() -> None:
    assert expected_empty_tokens(10**12 + 1) == 5 * 10**11
