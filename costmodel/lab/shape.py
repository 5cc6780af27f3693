"""The sizes and switches of a decoder, checked once."""

from dataclasses import dataclass, fields

import numpy as np

from costmodel.common.errors import CostModelError


@dataclass(frozen=True)
class DecoderShape:
    """What distinguishes one Llama-shaped decoder from another.

    Attributes
    ----------
    vocab, d_model, n_layers, max_len : V, D, L, and the most positions a sequence may have
    n_heads, n_kv_heads, head_dim : N, K, H
    d_ff : F
    gated : SiLU-gated MLP (up, gate, down), else ReLU (up, down)
    norm_gain : whether RMS norms have a learned gain
    norm_eps : added to the mean square under the root
    rope_theta : base of the rotary angles; None for learned positions
    tied : whether the head is the embedding table
    dtype : of weights, cache and activations

    Raises
    ------
    CostModelError
        for a size below 1, N not a multiple of K, or rotary positions with an odd H
    """

    vocab: int
    d_model: int
    n_layers: int
    max_len: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_ff: int
    gated: bool = False
    norm_gain: bool = False
    norm_eps: float = 1e-5
    rope_theta: float | None = None
    tied: bool = True
    dtype: type = np.float64

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise CostModelError(f"{field.name} must be an integer of at least 1, got {value!r}")
        if self.n_heads % self.n_kv_heads:
            raise CostModelError(f"n_heads must be a multiple of n_kv_heads, got {self.n_heads} and {self.n_kv_heads}")
        if self.rope_theta is not None and self.head_dim % 2:
            raise CostModelError(f"head_dim must be even for rotary positions, got {self.head_dim}")
        if self.dtype not in (np.float32, np.float64):
            raise CostModelError(f"dtype must be numpy.float32 or numpy.float64, got {self.dtype!r}")
