"""A whole answer: totals of generating M tokens after a prompt of P, with and without a key/value cache.

Without a cache every new token re-runs the prefix: passes over P, P + 1, …, P + M − 1 tokens. With one, the prompt is
prefilled once and each further token is a pass over itself alone.
"""

from collections.abc import Callable
from typing import Any

from sympy import Expr, Min, expand, floor, summation

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain, quotient, whole
from costmodel.model import Model
from costmodel.symbols import M, P, index


def _total(model: Model, term: Callable[[Number], Number], first: Number, count: Number) -> Number:
    """Σ term(first + i) for i = 0 … count − 1: a plain sum where it must be one, else a closed form."""
    if is_plain(first, count) and (count == 0 or is_plain(term(first))):
        return sum(term(first + i) for i in range(count))
    each = expand(term(first + index))
    if not each.has(Min, floor):
        return expand(summation(each, (index, 0, count - 1)))
    if not is_plain(first, count):
        raise CostModelError(f"{model.name} has sliding windows or chunks; give prompt and generated as numbers")
    return expand(sum(term(first + i) for i in range(count)))


def naive_positions(prompt: Number = P, generated: Number = M) -> Number:
    """Positions processed without a cache: M·P + M(M − 1)/2.

    Parameters
    ----------
    prompt, generated : P and M [token], symbols or whole numbers of at least 1

    Returns
    -------
    positions that pass through the model [token]

    Raises
    ------
    CostModelError
        for a prompt or generated tokens that are neither a symbol nor a whole number of at least 1

    Examples
    --------
    >>> naive_positions(8, 3)  # 8 + 9 + 10
    27
    """
    prompt, generated = whole(prompt, "prompt"), whole(generated, "generated")
    return generated * prompt + quotient(generated * (generated - 1), 2)


def cached_positions(prompt: Number = P, generated: Number = M) -> Number:
    """Positions processed with a cache: P + M − 1.

    Parameters
    ----------
    prompt, generated : P and M [token], symbols or whole numbers of at least 1

    Returns
    -------
    positions that pass through the model [token]

    Raises
    ------
    CostModelError
        for a prompt or generated tokens that are neither a symbol nor a whole number of at least 1

    Examples
    --------
    >>> cached_positions(8, 3)  # 8 + 1 + 1
    10
    """
    return whole(prompt, "prompt") + whole(generated, "generated") - 1


def naive_flops(model: Model, prompt: Number = P, generated: Number = M, **switches: Any) -> Number:
    """Σ over i = 0 … M − 1 of the FLOPs of a prefill of P + i tokens, for one sequence [FLOP].

    Parameters
    ----------
    model : sizes may be symbols
    prompt, generated : P and M [token], symbols or whole numbers of at least 1
    switches : those of `ForwardPass`: causal, head, elementwise

    Returns
    -------
    work of the whole answer [FLOP]; a polynomial in the sizes that are symbols

    Raises
    ------
    CostModelError
        for a prompt or generated tokens that are neither a symbol nor a whole number of at least 1, and for symbols
        where the model has sliding windows or chunks, whose sum has no closed form

    Examples
    --------
    >>> from costmodel import stated_model
    >>> naive_flops(stated_model(params=10), 8, 3)  # 2·10·(8 + 9 + 10)
    540
    """
    prompt, generated = whole(prompt, "prompt"), whole(generated, "generated")
    return _total(model, lambda n: model.prefill(1, n, **switches).flops, prompt, generated)


def cached_flops(model: Model, prompt: Number = P, generated: Number = M, **switches: Any) -> Number:
    """FLOPs of a prefill of P tokens plus Σ over i = 1 … M − 1 of a decode step at context P + i [FLOP].

    Parameters
    ----------
    model : sizes may be symbols
    prompt, generated : P and M [token], symbols or whole numbers of at least 1
    switches : those of `ForwardPass`: causal, head, elementwise

    Returns
    -------
    work of the whole answer [FLOP]; a polynomial in the sizes that are symbols

    Raises
    ------
    CostModelError
        for a prompt or generated tokens that are neither a symbol nor a whole number of at least 1, and for symbols
        where the model has sliding windows or chunks, whose sum has no closed form

    Examples
    --------
    >>> from costmodel.model import transformer
    >>> tiny = transformer(V=16, D=16, F=64, N=2, K=2, H=8, L=2, norms=False, gated=False)
    >>> naive_flops(tiny, 8, 16, causal=False, head="all"), cached_flops(tiny, 8, 16, causal=False, head="all")
    (3709952, 333312)
    """
    prompt, generated = whole(prompt, "prompt"), whole(generated, "generated")
    steps = _total(model, lambda n: model.decode(1, n, **switches).flops, prompt + 1, generated - 1)
    first = model.prefill(1, prompt, **switches).flops
    return expand(first + steps) if isinstance(first + steps, Expr) else first + steps
