"""Cache memory in blocks: how many sequences fit, and what the last block of each wastes.

Kwon et al., PagedAttention (2309.06180). The allocator that does it is `lab.paging`.
"""

from sympy import ceiling

from costmodel.common.blocks import blocks_of
from costmodel.exact import Number, is_plain, quotient, whole, whole_times
from costmodel.symbols import S, block


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
        for a block that is neither a symbol nor a whole number of at least 1

    Examples
    --------
    >>> expected_empty_tokens(16), expected_empty_tokens(1)
    (Fraction(15, 2), 0)

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180.
    """
    return quotient(whole(block, "block") - 1, 2)


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
        for tokens, a context or a block that are neither a symbol nor a whole number, of at least 1 but for the tokens

    Examples
    --------
    >>> sequences_that_fit(77_088, 1000, 16)  # 4818 blocks, 63 a sequence; not 77
    76

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180.
    """
    tokens, context, block = whole(tokens, "tokens", at_least=0), whole(context, "context"), whole(block, "block")
    each: Number = blocks_of(context, block) if is_plain(context, block) else ceiling(context / block)
    return whole_times(whole_times(tokens, block), each)
