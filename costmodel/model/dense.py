"""Dense models from a few sizes: the decoder-only transformer, and a model known by its parameter count."""

from collections.abc import Sequence
from typing import Any

from costmodel.exact import Number, whole
from costmodel.layers import Attention, Embedding, Mlp, Norm, StatedWeights, Unembedding
from costmodel.layers.stated import StatedCache
from costmodel.model.block import Block
from costmodel.model.stack import Model
from costmodel.symbols import D, F, H, K, L, N, V
from costmodel.symbols import params as params_symbol


def transformer(
    *, V: Number = V, D: Number = D, F: Number = F, N: Number = N, K: Number = K, H: Number = H, L: Number = L,
    norms: bool = True, gated: bool = True, tied_head: bool = False, qkv_bias: bool = False, out_bias: bool = False,
    mlp_bias: bool = False, qk_norm: bool = False, norm_gain: bool = True, max_len: Number | None = None,
    windows: Sequence[tuple[Number | None, Number]] | None = None, **about: Any,
) -> Model:  # fmt: skip
    """A dense decoder-only transformer; every size left out stays a symbol.

    params = 2·V·D + L·(2·D·N·H + 2·D·K·H + 3·D·F) without norms; each norm adds D, of which there are 2·L + 1.

    Parameters
    ----------
    V, D, F, N, K, H, L : vocabulary, widths, heads, layers
    norms, gated, tied_head, qkv_bias, out_bias, mlp_bias, qk_norm, norm_gain : what the architecture has
    max_len : rows of a learned table of positions; None for rotary positions, which store nothing
    windows : [(W or None, layers), …] when some layers attend through a sliding window
    about : name, family, dtype, positions, notes of the Model

    Returns
    -------
    Model

    Examples
    --------
    >>> transformer(norms=False).params.expand()
    3*D*F*L + 2*D*H*K*L + 2*D*H*L*N + 2*D*V
    >>> transformer(V=32000, D=5120, F=13824, N=40, K=40, H=128, L=40).params
    13015864320

    References
    ----------
    Touvron et al., Llama 2, 2307.09288, section 2.2.
    """
    V, D, F, N, K, H, L = (whole(v, n, limit=2**31) for v, n in zip((V, D, F, N, K, H, L), "VDFNKHL", strict=True))
    norm = lambda name: (Norm(D, name, norm_gain),) if norms else ()  # noqa: E731
    mlp = Mlp(D, F, gated=gated, bias=mlp_bias)
    blocks = []
    for window, count in [(None, L)] if windows is None else windows:
        mixer = Attention(
            D, N, K, H, window=window, qkv_bias=qkv_bias, out_bias=out_bias, qk_norm=qk_norm, rope=max_len is None
        )
        layers = (*norm("attention norm"), mixer, *norm("mlp norm"), mlp)
        blocks.append((Block(layers, "global" if window is None else "local"), count))
    after = (*norm("last norm"), Unembedding(V, D, tied=tied_head))
    positions = () if max_len is None else (Embedding(whole(max_len, "max_len"), D, "positions"),)
    return Model(tuple(blocks), (Embedding(V, D), *positions), after, tied_head=tied_head, **about)


def stated_model(*, params: Number = params_symbol, L: Number = L, K: Number = K, H: Number = H, **about: Any) -> Model:
    """A model known by its parameter count and its cache: one weights row, and the traffic of L caches.

    decode FLOPs = 2·B·params; bytes = 2·params + 4·B·L·K·H·(S + 1) at 16 bit.

    Examples
    --------
    >>> stated_model(params=8 * 10**9, L=32, K=8, H=128).decode(batch=1, context=1024)["weights"].bytes
    16000000000
    """
    params, L, K, H = (whole(v, n) for v, n in zip((params, L, K, H), ("params", "L", "K", "H"), strict=True))
    return Model(((Block((StatedCache(K, H),)), L),), (StatedWeights(params),), **about)
