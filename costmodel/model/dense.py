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
    V : number of tokens in the vocabulary
    D, F, H : width of the residual stream, of the feed-forward layers, of a head (number of elements)
    N, K : number of query heads, and of key/value heads, which divides it
    L : number of layers
    norms : whether there are norms: two in a layer, one after the last
    gated : whether the feed-forward layers have a gate beside the way up
    tied_head : whether the head reuses the embedding table
    qkv_bias, out_bias, mlp_bias : whether these projections have biases
    qk_norm : whether queries and keys are normalised per head
    norm_gain : whether the norms have learned gains
    max_len : number of rows in a learned table of positions; None for rotary positions, which store nothing
    windows : [(W or None, layers), …] when some layers attend through a sliding window; the counts then stand for L
    about : name, family, dtype, positions, notes of the Model

    Returns
    -------
    Model

    Raises
    ------
    CostModelError
        for a size or window that is neither a symbol nor a whole number of at least 1, or K that does not divide N

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
        blocks.append((Block(layers, "global" if window is None else "local"), whole(count, "layers", at_least=0)))
    after = (*norm("last norm"), Unembedding(V, D, tied=tied_head))
    positions = () if max_len is None else (Embedding(whole(max_len, "max_len"), D, "positions"),)
    return Model(tuple(blocks), (Embedding(V, D), *positions), after, tied_head=tied_head, **about)


def stated_model(*, params: Number = params_symbol, L: Number = L, K: Number = K, H: Number = H, **about: Any) -> Model:
    """A model known by its parameter count and its cache: one weights row, and the traffic of L caches.

    decode FLOPs = 2·B·params; bytes = 2·params + 4·B·L·K·H·(S + 1) at 16 bit.

    Parameters
    ----------
    params : number of parameters
    L, K, H : number of layers, of key/value heads, and of elements in a head
    about : name, family, dtype, positions, notes of the Model

    Returns
    -------
    Model; its attention FLOPs are not counted, since its query heads are not known

    Raises
    ------
    CostModelError
        for a size that is neither a symbol nor a whole number of at least 1

    Examples
    --------
    >>> step = stated_model(params=8 * 10**9, L=32, K=8, H=128).decode(batch=1, context=1024)
    >>> step["weights"].bytes, step.flops
    (16000000000, 16000000000)

    References
    ----------
    Kaplan et al., Scaling laws, 2001.08361, section 2.1: 2 FLOPs per parameter and token.
    """
    params, L, K, H = (whole(v, n) for v, n in zip((params, L, K, H), ("params", "L", "K", "H"), strict=True))
    return Model(((Block((StatedCache(K, H),)), L),), (StatedWeights(params),), **about)
