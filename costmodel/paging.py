"""Cache memory in blocks: how many sequences fit, and what the last block of each wastes.

Kwon et al., PagedAttention (2309.06180). The allocator that does it is `lab.paging`.
"""

from sympy import Expr, ceiling, summation

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain, quotient, whole_times
from costmodel.symbols import S, block, index


def expected_empty_tokens(block: Number = block) -> Number:
    """Σ i/block for i = 0 … block − 1, when the last block is equally likely to lack any number: (block − 1)/2.

    Parameters
    ----------
    block : tokens that a block holds [token], a number or a symbol

    Returns
    -------
    places that a sequence leaves empty on average [token]

    Raises
    ------
    CostModelError
        for a block that is no whole number of at least 1

    Examples
    --------
    >>> expected_empty_tokens(16), expected_empty_tokens(1)
    (Fraction(15, 2), 0)

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180.
    """
    if is_plain(block):
        return quotient(sum(range(whole("block", block, 1))), block)
    empty: Expr = summation(index, (index, 0, block - 1)) / block
    return empty.expand()


def sequences_that_fit(tokens: Number, context: Number = S, block: Number = block) -> Number:
    """⌊⌊tokens/block⌋/⌈context/block⌉⌋: sequences of `context` tokens in memory for `tokens`; blocks are not split.

    Parameters
    ----------
    tokens : what the memory for the cache holds [token]
    context : tokens of each sequence [token]
    block : tokens that a block holds [token]

    Returns
    -------
    sequences that fit [sequence]

    Raises
    ------
    CostModelError
        for a context or a block below 1

    Examples
    --------
    >>> sequences_that_fit(77_088, 1000, 16)  # 4818 blocks, 63 a sequence; not 77
    76

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180.
    """
    if is_plain(context, block):
        for name, value in (("context", context), ("block", block)):
            if value < 1:
                raise CostModelError(f"{name} must be at least 1, got {value}")
        each: Number = -(-context // block)
    else:
        each = ceiling(context / block)
    return whole_times(whole_times(tokens, block), each)
