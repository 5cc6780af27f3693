"""Layers, one file per kind: parameters, cache or state, and the rows of a forward pass."""

from costmodel.layers.attention import Attention, attention
from costmodel.layers.embedding import Embedding, Unembedding
from costmodel.layers.latent import LatentAttention
from costmodel.layers.mlp import Mlp, mlp
from costmodel.layers.moe import Moe, distinct_experts
from costmodel.layers.norm import Norm
from costmodel.layers.recurrent import GatedDelta, LinearAttention, Mamba, Mamba2
from costmodel.layers.stated import StatedWeights

__all__ = [
    "Attention", "Embedding", "GatedDelta", "LatentAttention", "LinearAttention", "Mamba", "Mamba2", "Mlp", "Moe",
    "Norm", "StatedWeights", "Unembedding", "attention", "distinct_experts", "mlp",
]  # fmt: skip
