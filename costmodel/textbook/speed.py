"""Rates and seconds by name: intensity, the ridge, and what one token takes to read and to write."""

from math import inf

from costmodel.common import checks
from costmodel.exact import LARGEST, SMALLEST, Number, amount, ratio
from costmodel.hardware import Accelerator
from costmodel.ops import contract
from costmodel.textbook.memory import bytes_of

H100_CLASS_PEAK, H100_CLASS_BANDWIDTH = 1e15, 3.35e12


def arithmetic_intensity(tokens_in_parallel: Number, bits: Number = 16) -> Number:
    """2·n/b: FLOPs per weight byte when n tokens share one read of the weights [FLOP/byte].

    The limit of a matrix multiplication's intensity as D and F grow; `bits` sizes the weights alone.

    Parameters
    ----------
    tokens_in_parallel : n [token]: the batch of a decode step, the tokens of a prefill
    bits : size of a weight, 8·b [bit]

    Returns
    -------
    intensity [FLOP/byte]

    Raises
    ------
    CostModelError
        for n or bits that are neither a symbol nor a number above 0

    Examples
    --------
    >>> arithmetic_intensity(64), arithmetic_intensity(1, bits=4)
    (64.0, 4.0)
    """
    product = contract("B D, D F -> B F", sizes={"B": amount(tokens_in_parallel, "tokens_in_parallel"), "D": 1, "F": 1})
    weights = next(tensor for tensor in product.reads if tensor.role == "weight")
    return ratio(product.flops, weights.elements * bytes_of(bits))


def ridge_point(flops_per_second: Number = H100_CLASS_PEAK, bytes_per_second: Number = H100_CLASS_BANDWIDTH) -> Number:
    """peak/bandwidth: the intensity at which arithmetic and memory take equally long [FLOP/byte].

    Parameters
    ----------
    flops_per_second : dense peak [FLOP/s]
    bytes_per_second : memory bandwidth [byte/s]

    Returns
    -------
    the ridge [FLOP/byte]

    Raises
    ------
    CostModelError
        for a rate that is neither a symbol nor a positive number

    Examples
    --------
    >>> round(ridge_point(), 2)
    298.51

    References
    ----------
    Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009.
    """
    peak = amount(flops_per_second, "flops_per_second", at_most=inf)
    return Accelerator("any", 0, amount(bytes_per_second, "bytes_per_second"), {"bf16": peak}).ridge()


def bottleneck(tokens_in_parallel: Number, bits: Number = 16) -> str:
    """ "memory-bound" below the H100-class ridge, "compute-bound" at and above it.

    Parameters
    ----------
    tokens_in_parallel : tokens that share one read of the weights [token]
    bits : size of a weight [bit]

    Returns
    -------
    "memory-bound" or "compute-bound"

    Raises
    ------
    CostModelError
        for tokens or bits that are no number above 0: a symbol has no side

    Examples
    --------
    >>> bottleneck(298), bottleneck(299), bottleneck(299, bits=32)  # the ridge lies at 298.51 FLOPs a byte
    ('memory-bound', 'compute-bound', 'memory-bound')

    References
    ----------
    Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009.
    """
    for name, value in (("tokens_in_parallel", tokens_in_parallel), ("bits", bits)):
        checks.amount(name, value, SMALLEST, LARGEST)
    return "memory-bound" if arithmetic_intensity(tokens_in_parallel, bits) < ridge_point() else "compute-bound"


def decode_seconds_per_token(
    params: Number, bits: Number = 16, bytes_per_second: Number = H100_CLASS_BANDWIDTH
) -> Number:
    """params·(bits/8)/bandwidth: every weight is read for every token [s].

    Parameters
    ----------
    params : number of parameters
    bits : size of each [bit]
    bytes_per_second : memory bandwidth [byte/s]

    Returns
    -------
    duration of one step [s], cache and arithmetic left out

    Raises
    ------
    CostModelError
        for parameters, bits or a bandwidth that are neither a symbol nor a number above 0

    Examples
    --------
    >>> round(decode_seconds_per_token(8e9) * 1e3, 3)  # 16 GB at 3.35 TB/s, in ms
    4.776

    References
    ----------
    Pope et al., Efficiently scaling transformer inference, 2211.05102.
    """
    return ratio(amount(params, "params") * bytes_of(bits), amount(bytes_per_second, "bytes_per_second"))


def prefill_seconds(params: Number, n_tokens: Number, flops_per_second: Number = H100_CLASS_PEAK) -> Number:
    """2·params·n/peak: one multiply and one add per weight and token [s].

    Parameters
    ----------
    params : number of parameters
    n_tokens : tokens of the prompt [token]
    flops_per_second : dense peak [FLOP/s]

    Returns
    -------
    duration [s], attention and memory left out

    Raises
    ------
    CostModelError
        for parameters, tokens or a peak that are neither a symbol nor a number above 0

    Examples
    --------
    >>> prefill_seconds(8e9, 1000)  # 1.6e13 FLOPs at 1e15 a second
    0.016

    References
    ----------
    Kaplan et al., Scaling laws, 2001.08361, section 2.1.
    """
    work = 2 * amount(params, "params") * amount(n_tokens, "n_tokens")
    return ratio(work, amount(flops_per_second, "flops_per_second", at_most=inf))
