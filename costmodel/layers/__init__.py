"""Layers, one file per kind: parameters, cache or state, and the rows of a forward pass."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from costmodel.layers.attention import Attention, attention
from costmodel.layers.embedding import Embedding, Unembedding
from costmodel.layers.mlp import Mlp, mlp
from costmodel.layers.norm import Norm
from costmodel.layers.stated import StatedWeights

if TYPE_CHECKING:
    from costmodel.layers.latent import LatentAttention
    from costmodel.layers.moe import Moe, distinct_experts
    from costmodel.layers.recurrent import GatedDelta, LinearAttention
    from costmodel.layers.state_space import Mamba, Mamba2

__all__ = [
    "Attention", "Embedding", "GatedDelta", "LatentAttention", "LinearAttention", "Mamba", "Mamba2", "Mlp", "Moe",
    "Norm", "StatedWeights", "Unembedding", "attention", "distinct_experts", "mlp",
]  # fmt: skip

# Kinds that a dense model does not need are imported when asked for: `import costmodel` stays light.
_LATER = {
    "latent": ("LatentAttention",),
    "moe": ("Moe", "distinct_experts"),
    "recurrent": ("GatedDelta", "LinearAttention"),
    "state_space": ("Mamba", "Mamba2"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"costmodel.layers.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
