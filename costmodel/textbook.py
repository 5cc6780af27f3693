"""The familiar one-line functions: thin views of the same expressions, for a reader who knows them by name."""

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Symbol, expand, sympify

from costmodel.common.checks import present
from costmodel.exact import Number, quotient, ratio, stored_bytes, whole
from costmodel.hardware import SYMBOLIC_ACCELERATOR, Accelerator
from costmodel.model import stated_model, transformer
from costmodel.ops import contract
from costmodel.sizing import Deployment
from costmodel.symbols import B, D, F, H, K, L, N, S, V, bindings, memory_bandwidth

H100_CLASS_PEAK, H100_CLASS_BANDWIDTH = 1e15, 3.35e12


def _bytes(bits: Number) -> Number:
    return quotient(bits, 8)


def weight_bytes(params: Number, bits: Number = 16) -> Number:
    """params·bits/8 [byte].

    Examples
    --------
    >>> weight_bytes(70 * 10**9), weight_bytes(70 * 10**9, bits=4)
    (140000000000, 35000000000)
    """
    return stored_bytes(params, _bytes(bits))


def kv_cache_bytes_per_token(layers: Number, kv_heads: Number, head_dim: Number, bits: Number = 16) -> Number:
    """2·L·K·H·bits/8: keys and values of one token in every layer [byte].

    Examples
    --------
    >>> kv_cache_bytes_per_token(32, 8, 128)
    131072
    """
    return kv_cache_bytes(1, layers, kv_heads, head_dim, bits)


def kv_cache_bytes(
    context: Number, layers: Number, kv_heads: Number, head_dim: Number, bits: Number = 16, batch: Number = 1
) -> Number:
    """2·B·S·L·K·H·bits/8 [byte].

    Examples
    --------
    >>> kv_cache_bytes(32_000, 32, 8, 128)
    4194304000
    """
    model = stated_model(L=layers, K=kv_heads, H=head_dim)
    return stored_bytes(batch * model.cache_elements(context), _bytes(bits))


def max_concurrent_requests(
    gpu_gb: Number, weights_gb: Number, context: int, layers: int, kv_heads: int, head_dim: int, bits: Number = 16
) -> int:
    """⌊(gpu − weights)/cache per request⌋, at least 0; both in decimal GB.

    Examples
    --------
    >>> max_concurrent_requests(80, 16, 32_000, 32, 8, 128)
    15
    """
    weights = round(weights_gb * 10**9)
    card = Accelerator("card", round(gpu_gb * 10**9), memory_bandwidth, {})
    model = stated_model(params=max(1, weights), L=layers, K=kv_heads, H=head_dim)
    deployment = Deployment(model, card, weights=1, cache=_bytes(bits))
    return present("the cache", deployment.largest_batch(whole(context, "context")))


def arithmetic_intensity(tokens_in_parallel: Number, bits: Number = 16) -> Number:
    """2·n/b: FLOPs per weight byte when n tokens share one read of the weights [FLOP/byte].

    The limit of a matrix multiplication's intensity as D and F grow; `bits` sizes the weights alone.

    Examples
    --------
    >>> arithmetic_intensity(64), arithmetic_intensity(1, bits=4)
    (64.0, 4.0)
    """
    product = contract("B D, D F -> B F", sizes={"B": tokens_in_parallel, "D": 1, "F": 1})
    weights = next(tensor for tensor in product.reads if tensor.role == "weight")
    return ratio(product.flops, weights.elements * _bytes(bits))


def ridge_point(flops_per_second: Number = H100_CLASS_PEAK, bytes_per_second: Number = H100_CLASS_BANDWIDTH) -> Number:
    """peak/bandwidth [FLOP/byte].

    Examples
    --------
    >>> round(ridge_point(), 2)
    298.51
    """
    return Accelerator("any", 0, bytes_per_second, {"bf16": flops_per_second}).ridge()


def bottleneck(tokens_in_parallel: Number, bits: Number = 16) -> str:
    """ "memory-bound" below the H100-class ridge, "compute-bound" at and above it.

    Examples
    --------
    >>> bottleneck(1), bottleneck(1000)
    ('memory-bound', 'compute-bound')
    """
    return "memory-bound" if arithmetic_intensity(tokens_in_parallel, bits) < ridge_point() else "compute-bound"


def decode_seconds_per_token(
    params: Number, bits: Number = 16, bytes_per_second: Number = H100_CLASS_BANDWIDTH
) -> Number:
    """params·(bits/8)/bandwidth: every weight is read for every token [s].

    Examples
    --------
    >>> round(decode_seconds_per_token(8e9) * 1e3, 3)
    4.776
    """
    return ratio(params * _bytes(bits), bytes_per_second)


def prefill_seconds(params: Number, n_tokens: Number, flops_per_second: Number = H100_CLASS_PEAK) -> Number:
    """2·params·n/peak: one multiply and one add per weight and token [s].

    Examples
    --------
    >>> prefill_seconds(8e9, 1000)
    0.016
    """
    return ratio(2 * params * n_tokens, flops_per_second)


def llama2_13b_config(args: Mapping[Any, Any] = {}) -> dict[Symbol, Any]:
    """Llama-2-13B on an H100 as {symbol: number}; entries of `args` override.

    Examples
    --------
    >>> llama2_13b_config({K: 8})[K]
    8
    """
    sizes = {S: 1024, D: 5120, F: 13824, N: 40, K: 40, H: 128, L: 40, V: 32000, memory_bandwidth: 3.35e12}
    return sizes | bindings(args)


def compute_transformer_stats(config: Mapping[Any, Any]) -> tuple[Expr, ...]:
    """(parameters, memory [byte], latency [s], throughput [token/s]) of memory-bound decoding at 16 bit.

    params = 2·V·D + L·(3·D·F + 2·D·N·H + 2·D·K·H), norms left out; memory = 2·params + B·4·S·L·K·H;
    latency = memory/bandwidth; throughput = B/latency. Formulas in whatever the config leaves open.

    Examples
    --------
    >>> compute_transformer_stats(llama2_13b_config())[2]
    0.000250406208955224*B + 0.00777041767164179
    """
    symbolic = Deployment(transformer(norms=False), SYMBOLIC_ACCELERATOR, textbook=True)
    step = symbolic.decode(B, S)
    bound = bindings(config)
    results = (symbolic.params, step.memory_bytes, step.seconds_per_token, step.tokens_per_s)
    return tuple(sympify(formula).subs(bound) if bound else expand(formula) for formula in results)
