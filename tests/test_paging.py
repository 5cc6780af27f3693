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
    with pytest.raises(CostModelError, match="block must be at least 1, got 0"):
        sequences_that_fit(100, 10, 0)
    with pytest.raises(CostModelError, match="block must be an integer of at least 1, got 0"):
        expected_empty_tokens(0)
