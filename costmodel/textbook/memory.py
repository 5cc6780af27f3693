"""Bytes by name: of the weights, of the key/value cache, and the requests that fit beside the weights."""

from costmodel.common import checks
from costmodel.exact import LARGEST, SMALLEST, Number, amount, quotient, stored_bytes, whole, whole_times
from costmodel.model import stated_model


def bytes_of(bits: Number) -> Number:
    """bits/8, exactly [byte]."""
    return quotient(amount(bits, "bits"), 8)


def weight_bytes(params: Number, bits: Number = 16) -> Number:
    """params·bits/8 [byte].

    Parameters
    ----------
    params : number of parameters
    bits : size of each [bit]

    Returns
    -------
    memory [byte]; a number is rounded up to a whole byte

    Raises
    ------
    CostModelError
        for parameters or bits that are neither a symbol nor a number above 0

    Examples
    --------
    >>> weight_bytes(70 * 10**9), weight_bytes(70 * 10**9, bits=4)
    (140000000000, 35000000000)
    """
    return stored_bytes(amount(params, "params"), bytes_of(bits))


def kv_cache_bytes_per_token(layers: Number, kv_heads: Number, head_dim: Number, bits: Number = 16) -> Number:
    """2·L·K·H·bits/8: keys and values of one token in every layer [byte].

    Parameters
    ----------
    layers, kv_heads, head_dim : number of layers L, of key/value heads K, and of elements in a head H
    bits : size of an element [bit]

    Returns
    -------
    memory that each token of the context adds [byte]

    Raises
    ------
    CostModelError
        for L, K or H that is neither a symbol nor a whole number of at least 1, or bits that are not above 0

    Examples
    --------
    >>> kv_cache_bytes_per_token(32, 8, 128)  # Llama 3 8B: 128 KiB
    131072

    References
    ----------
    Pope et al., 2211.05102; Ainslie et al., GQA, 2305.13245.
    """
    return kv_cache_bytes(1, layers, kv_heads, head_dim, bits)


def kv_cache_bytes(
    context: Number, layers: Number, kv_heads: Number, head_dim: Number, bits: Number = 16, batch: Number = 1
) -> Number:
    """2·B·S·L·K·H·bits/8: keys and values of a batch in every layer [byte].

    Parameters
    ----------
    context, batch : S [token] of each sequence, B [sequence]
    layers, kv_heads, head_dim : number of layers L, of key/value heads K, and of elements in a head H
    bits : size of an element [bit]

    Returns
    -------
    memory [byte]

    Raises
    ------
    CostModelError
        for B, S, L, K or H that is neither a symbol nor a whole number, or bits that are not above 0

    Examples
    --------
    >>> kv_cache_bytes(32_000, 32, 8, 128)
    4194304000

    References
    ----------
    Pope et al., 2211.05102; Ainslie et al., GQA, 2305.13245.
    """
    model = stated_model(L=layers, K=kv_heads, H=head_dim)
    return stored_bytes(whole(batch, "batch", at_least=0) * model.cache_elements(context), bytes_of(bits))


def max_concurrent_requests(
    gpu_gb: Number, weights_gb: Number, context: int, layers: int, kv_heads: int, head_dim: int, bits: Number = 16
) -> int:
    """⌊(gpu − weights)/cache per request⌋, at least 0; both in decimal GB.

    Parameters
    ----------
    gpu_gb, weights_gb : capacity, and what the weights take of it [10⁹ byte]
    context : tokens of each request [token]
    layers, kv_heads, head_dim : number of layers L, of key/value heads K, and of elements in a head H
    bits : size of an element of the cache [bit]

    Returns
    -------
    requests that fit beside the weights [sequence]

    Raises
    ------
    CostModelError
        for a context, L, K or H that is no whole number of at least 1, gigabytes below 0, or bits that are not above 0

    Examples
    --------
    >>> max_concurrent_requests(80, 16, 32_000, 32, 8, 128)  # 64e9/4,194,304,000 = 15.26
    15
    """
    counts = (("context", context), ("layers", layers), ("kv_heads", kv_heads), ("head_dim", head_dim))
    context, layers, kv_heads, head_dim = (checks.whole(name, count, 1) for name, count in counts)
    capacity, weights = (
        round(checks.amount(name, size, 0, LARGEST / 10**9) * 10**9)
        for name, size in (("gpu_gb", gpu_gb), ("weights_gb", weights_gb))
    )
    each = kv_cache_bytes(context, layers, kv_heads, head_dim, checks.amount("bits", bits, SMALLEST, LARGEST))
    return int(max(0, whole_times(capacity - weights, each)))
