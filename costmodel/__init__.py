"""What transformer inference costs, as algebra: derive it, bind it, time it, size it."""

from costmodel.common.errors import ConfigError, CostModelError, UnknownNameError
from costmodel.generation import cached_flops, naive_flops
from costmodel.hardware import Accelerator, accelerator, accelerators
from costmodel.layers import attention, mlp
from costmodel.model import Model, stated_model, transformer
from costmodel.operation import Op
from costmodel.ops import Ledger, contract, elementwise
from costmodel.parallel import Parallel
from costmodel.passes import ForwardPass
from costmodel.roofline import attainable, overlapped_seconds, serial_seconds, timing
from costmodel.sizing import Deployment
from costmodel.textbook import (
    arithmetic_intensity,
    bottleneck,
    compute_transformer_stats,
    decode_seconds_per_token,
    kv_cache_bytes,
    kv_cache_bytes_per_token,
    llama2_13b_config,
    max_concurrent_requests,
    prefill_seconds,
    ridge_point,
    weight_bytes,
)
from costmodel.zoo import load, model_from_config, preset_config, presets

_ASKED_LATER = {"Load": "choice", "Slo": "choice", "compare": "pareto", "pareto": "pareto", "plan": "plan"}

__version__ = "0.1.0"

__all__ = [
    "Accelerator", "ConfigError", "CostModelError", "Deployment", "ForwardPass", "Ledger", "Load", "Model", "Op",
    "Parallel", "Slo", "UnknownNameError", "accelerator", "accelerators", "arithmetic_intensity", "attainable",
    "attention", "bottleneck", "cached_flops", "compare", "compute_transformer_stats", "contract",
    "decode_seconds_per_token", "elementwise", "kv_cache_bytes", "kv_cache_bytes_per_token", "llama2_13b_config",
    "load", "max_concurrent_requests", "mlp", "model_from_config", "naive_flops", "overlapped_seconds", "pareto",
    "plan", "prefill_seconds", "preset_config", "presets", "ridge_point", "serial_seconds", "stated_model",
    "timing", "transformer", "weight_bytes",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """What a single sizing does not need is imported when it is asked for: `import costmodel` stays light."""
    if name in _ASKED_LATER:
        from importlib import import_module

        return getattr(import_module(f"costmodel.sizing.{_ASKED_LATER[name]}"), name)
    raise AttributeError(f"module 'costmodel' has no attribute {name!r}")
