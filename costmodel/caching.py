"""What a shared prompt prefix is worth: input cost with and without a prompt cache, and when the cache pays.

Prices as providers state them: a token written costs `write` plain ones (1.25, or 2 to live an hour), one read `read`
(0.1). The numeric counterpart is `lab.prompt_bill`.
"""

from typing import Any

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, amount, is_plain, quotient
from costmodel.symbols import prefix, read, requests, suffix, token_price, write


def _check(at_least: int = 0, **given: Any) -> None:
    """Refuse a number that is too small by name; an array is its maker's business."""
    for name, value in given.items():
        if not isinstance(value, np.ndarray):
            amount(value, name, at_least)


def uncached_prompt_cost(
    prefix: Number = prefix,
    suffix: Number = suffix,
    requests: Number = requests,
    token_price: Number = token_price,
) -> Number:
    """requests·(prefix + suffix)·price: every request pays for its whole prompt [$].

    Parameters
    ----------
    prefix, suffix : tokens that all requests begin with, and that each has alone [token]
    requests : number of requests
    token_price : price of a plain input token [$/token]

    Returns
    -------
    cost of the prompts [$]

    Raises
    ------
    CostModelError
        for what is neither a symbol nor a number of at least 0

    Examples
    --------
    >>> uncached_prompt_cost(10_000, 500, 100, 3e-6)
    3.15
    """
    _check(prefix=prefix, suffix=suffix, requests=requests, token_price=token_price)
    return requests * (prefix + suffix) * token_price


def cached_prompt_cost(
    prefix: Number = prefix,
    suffix: Number = suffix,
    requests: Number = requests,
    token_price: Number = token_price,
    write: Number = write,
    read: Number = read,
) -> Number:
    """(prefix·(write + (requests − 1)·read) + requests·suffix)·price: one writes, all others read [$].

    Parameters
    ----------
    prefix, suffix : tokens that all requests begin with, and that each has alone [token]
    requests : number of requests; the prefix stays in the cache until the last
    token_price : price of a plain input token [$/token]
    write, read : price of a token written to the cache, and of one read, as a factor of the plain price

    Returns
    -------
    cost of the prompts [$]

    Raises
    ------
    CostModelError
        for what is neither a symbol nor a number of at least 0; for fewer than 1 request

    Examples
    --------
    >>> cached_prompt_cost(suffix=0, requests=1)
    prefix*token_price*write
    >>> round(cached_prompt_cost(10_000, 500, 100, 3e-6, write=1.25, read=0.1), 4)  # 3.15 without a cache
    0.4845
    """
    _check(prefix=prefix, suffix=suffix, token_price=token_price, write=write, read=read)
    _check(at_least=1, requests=requests)
    return (prefix * (write + (requests - 1) * read) + requests * suffix) * token_price


def break_even_requests(write: Number = write, read: Number = read) -> Number:
    """The number of requests at which the two cost the same, whatever the lengths: (write − read)/(1 − read).

    Parameters
    ----------
    write, read : price of a token written to the cache, and of one read, as a factor of the plain price

    Returns
    -------
    number of requests, above which the cache is cheaper

    Raises
    ------
    CostModelError
        when reading is no cheaper than a plain token, or a price is neither a symbol nor a number of at least 0

    Examples
    --------
    >>> from fractions import Fraction
    >>> break_even_requests(Fraction(5, 4), Fraction(1, 10))  # the second request pays
    Fraction(23, 18)
    """
    _check(write=write, read=read)
    if is_plain(read) and read >= 1:
        raise CostModelError(f"read must be below 1, the price of a plain token, got {read}: the cache never pays")
    return quotient(write - read, 1 - read)
