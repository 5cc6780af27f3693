"""A decoder small enough to count by hand; the same code runs a real model's weights (`transformer`, `smollm`)."""

from typing import Any

from costmodel.common.errors import CostModelError
from costmodel.lab.generation import Generation
from costmodel.lab.shape import DecoderShape
from costmodel.lab.transformer import Decoder
from costmodel.lab.weights import random_weights

__all__ = ["Decoder", "Generation", "TinyDecoder"]


class TinyDecoder(Decoder):
    """A decoder small enough to count by hand, with seeded random weights.

    By default: a ReLU MLP of width 4D, RMS norm without gain, learned positions, a tied head, float64.

    Parameters
    ----------
    vocab, d_model, n_heads, n_layers, max_len : V, D, N, L, and the most positions
    seed : of the weights; the same seed gives the same weights
    n_kv_heads, head_dim, d_ff : K, H, F; None for N, D/N, 4D
    switches : gated, norm_gain, norm_eps, rope_theta, tied, dtype of `DecoderShape`

    Raises
    ------
    CostModelError
        for D that N does not divide, without head_dim, or what `DecoderShape` refuses

    Examples
    --------
    >>> TinyDecoder().params  # L·(4D² + 2·4·D²) + V·D + max_len·D = 2·12·256 + 256 + 1024
    7424
    """

    def __init__(
        self,
        vocab: int = 16,
        d_model: int = 16,
        n_heads: int = 2,
        n_layers: int = 2,
        max_len: int = 64,
        seed: int = 0,
        *,
        n_kv_heads: int | None = None,
        head_dim: int | None = None,
        d_ff: int | None = None,
        **switches: Any,
    ) -> None:
        if head_dim is None and d_model % n_heads:
            raise CostModelError(f"d_model {d_model} is not a multiple of n_heads {n_heads}; give head_dim")
        shape = DecoderShape(
            vocab=vocab,
            d_model=d_model,
            n_layers=n_layers,
            max_len=max_len,
            n_heads=n_heads,
            n_kv_heads=n_heads if n_kv_heads is None else n_kv_heads,
            head_dim=d_model // n_heads if head_dim is None else head_dim,
            d_ff=4 * d_model if d_ff is None else d_ff,
            **switches,
        )
        super().__init__(shape, random_weights(shape, seed))
