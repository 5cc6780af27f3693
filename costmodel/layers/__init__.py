"""Layers, one file per kind: parameters, cache and the rows of a forward pass."""

from costmodel.layers.attention import Attention, attention
from costmodel.layers.embedding import Embedding, Unembedding
from costmodel.layers.mlp import Mlp, mlp
from costmodel.layers.norm import Norm
from costmodel.layers.stated import StatedWeights

__all__ = ["Attention", "Embedding", "Mlp", "Norm", "StatedWeights", "Unembedding", "attention", "mlp"]
