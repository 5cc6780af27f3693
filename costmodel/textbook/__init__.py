"""The familiar one-line functions: thin views of the same expressions, for a reader who knows them by name."""

from costmodel.textbook.memory import kv_cache_bytes, kv_cache_bytes_per_token, max_concurrent_requests, weight_bytes
from costmodel.textbook.speed import (
    H100_CLASS_BANDWIDTH,
    H100_CLASS_PEAK,
    arithmetic_intensity,
    bottleneck,
    decode_seconds_per_token,
    prefill_seconds,
    ridge_point,
)
from costmodel.textbook.stats import compute_transformer_stats, llama2_13b_config

__all__ = [
    "H100_CLASS_BANDWIDTH", "H100_CLASS_PEAK", "arithmetic_intensity", "bottleneck", "compute_transformer_stats",
    "decode_seconds_per_token", "kv_cache_bytes", "kv_cache_bytes_per_token", "llama2_13b_config",
    "max_concurrent_requests", "prefill_seconds", "ridge_point", "weight_bytes",
]  # fmt: skip
