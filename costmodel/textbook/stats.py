"""A whole decoder by name: Llama-2-13B's sizes, and four formulas of any transformer."""

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Symbol, expand, sympify

from costmodel.exact import amount
from costmodel.hardware import SYMBOLIC_ACCELERATOR
from costmodel.model import Model, transformer
from costmodel.sizing import Deployment
from costmodel.symbols import B, D, F, H, K, L, N, S, V, bindings, memory_bandwidth

LLAMA_2_13B = {V: 32000, D: 5120, F: 13824, N: 40, K: 40, H: 128, L: 40}  # Touvron et al., 2307.09288


def llama2_13b(kv_heads: int = LLAMA_2_13B[K]) -> Model:
    """Llama-2-13B as published, or with fewer key/value heads than its 40.

    Parameters
    ----------
    kv_heads : K, number of key/value heads; it divides 40

    Returns
    -------
    Model

    Raises
    ------
    CostModelError
        for a K that does not divide 40

    Examples
    --------
    >>> llama2_13b().params, llama2_13b(kv_heads=8).cache_bytes(1)
    (13015864320, 163840)

    References
    ----------
    Touvron et al., Llama 2, 2307.09288.
    """
    sizes: dict[str, Any] = {size.name: number for size, number in LLAMA_2_13B.items()} | {"K": kv_heads}
    return transformer(**sizes, name="llama-2-13b")


def _bound(config: Mapping[Any, Any]) -> dict[Symbol, Any]:
    """{symbol: number or formula}, each above 0."""
    return {symbol: amount(value, symbol.name) for symbol, value in bindings(config).items()}


def llama2_13b_config(args: Mapping[Any, Any] = {}) -> dict[Symbol, Any]:
    """Llama-2-13B on an H100 as {symbol: number}; entries of `args` override.

    Parameters
    ----------
    args : {symbol or its name: number}

    Returns
    -------
    {symbol: number} of S = 1024, the model's sizes and memory_bandwidth [byte/s]; B stays open

    Raises
    ------
    KeyError
        for a letter that the notation does not have
    CostModelError
        for a value that is neither a formula nor a number above 0

    Examples
    --------
    >>> llama2_13b_config()[L], llama2_13b_config({"K": 8})[K]
    (40, 8)

    References
    ----------
    Touvron et al., Llama 2, 2307.09288.
    """
    return LLAMA_2_13B | {S: 1024, memory_bandwidth: 3.35e12} | _bound(args)


def compute_transformer_stats(config: Mapping[Any, Any]) -> tuple[Expr, ...]:
    """(parameters, memory [byte], latency [s], throughput [token/s]) of memory-bound decoding at 16 bit.

    params = 2·V·D + L·(3·D·F + 2·D·N·H + 2·D·K·H), norms left out; memory = 2·params + B·4·S·L·K·H;
    latency = memory/bandwidth; throughput = B/latency. Formulas in whatever the config leaves open.

    Parameters
    ----------
    config : {symbol or its name: number}, such as `llama2_13b_config()`; {} for the formulas themselves

    Returns
    -------
    parameters : number of them
    memory : weights and caches [byte]
    latency : of one decode step [s]
    throughput : of the batch [token/s]

    Raises
    ------
    KeyError
        for a letter that the notation does not have
    CostModelError
        for a value that is neither a formula nor a number above 0

    Examples
    --------
    >>> compute_transformer_stats(llama2_13b_config())[2]
    0.000250406208955224*B + 0.00777041767164179
    >>> compute_transformer_stats(llama2_13b_config({"B": 1}))[:2]
    (13015449600, 26869760000)
    """
    symbolic = Deployment(transformer(norms=False), SYMBOLIC_ACCELERATOR, textbook=True)
    step = symbolic.decode(B, S)
    bound = _bound(config)
    results = (symbolic.params, step.memory_bytes, step.seconds_per_token, step.tokens_per_s)
    return tuple(sympify(formula).subs(bound) if bound else expand(formula) for formula in results)
