"""Rates and seconds by name: intensity, the ridge, and what one token takes to read and to write."""

from costmodel.exact import Number, ratio
from costmodel.hardware import Accelerator
from costmodel.ops import contract
from costmodel.textbook.memory import bytes_of

H100_CLASS_PEAK, H100_CLASS_BANDWIDTH = 1e15, 3.35e12


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
    return ratio(product.flops, weights.elements * bytes_of(bits))


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
    return ratio(params * bytes_of(bits), bytes_per_second)


def prefill_seconds(params: Number, n_tokens: Number, flops_per_second: Number = H100_CLASS_PEAK) -> Number:
    """2·params·n/peak: one multiply and one add per weight and token [s].

    Examples
    --------
    >>> prefill_seconds(8e9, 1000)
    0.016
    """
    return ratio(2 * params * n_tokens, flops_per_second)
