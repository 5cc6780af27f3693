"""Pruning: a smaller decoder made of the parts of a larger one that are kept."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.shape import DecoderShape
from costmodel.lab.transformer import Decoder
from costmodel.lab.weights import LayerWeights, allocate


def strongest(scores: np.ndarray, keep: int) -> np.ndarray:
    """Indices, in order, of the `keep` highest scores along the last axis; of equals the first.

    Parameters
    ----------
    scores : (…, n), higher for what matters more
    keep : 1 to n

    Returns
    -------
    (…, keep) rising indices, as `prune` takes them

    Raises
    ------
    CostModelError
        for keep outside 1 to n

    Examples
    --------
    >>> strongest(np.array([[0.3, 0.1, 0.2], [1.0, 1.0, 1.0]]), 2)
    array([[0, 2],
           [0, 1]])
    """
    if not 1 <= keep <= scores.shape[-1]:
        raise CostModelError(f"keep must be 1 to {scores.shape[-1]}, got {keep!r}")
    return np.sort(np.argsort(-scores, axis=-1, kind="stable")[..., :keep], axis=-1)


def prune(
    decoder: Decoder,
    *,
    layers: Sequence[int] | None = None,
    heads: np.ndarray | None = None,
    neurons: np.ndarray | None = None,
    channels: Sequence[int] | None = None,
) -> Decoder:
    """A decoder with only the named parts, in their order; its weights are copies.

    What is left of a layer computes what it did. Without channels the norms divide by another D: their gains are
    multiplied by √(D/D') and eps by D/D', so that channels that were always 0 leave no trace.

    Parameters
    ----------
    decoder : stays as it is
    layers : (L',) rising indices of those to keep; all unless given, as for the others
    heads : (L, K') of the key/value heads to keep in each old layer, each with its group of N/K query heads
    neurons : (L, F') of the MLP's neurons to keep in each old layer
    channels : (D',) of the residual stream, the same in all layers; needs norms with gains

    Returns
    -------
    a Decoder of L' layers, K' key/value heads, F' neurons and D' channels; H, V and max_len stay

    Raises
    ------
    CostModelError
        for no index, or one that does not exist, is repeated or out of order; for layers that keep different numbers of
        heads or neurons; or for channels without gains to correct

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> tiny.params - prune(tiny, layers=[0]).params  # one layer: 12·D²
    3072
    >>> tiny.params - prune(tiny, neurons=[range(32)] * 2).params  # half of 64 neurons in 2 layers: 2·32·2·D
    2048

    References
    ----------
    Muralidharan et al., Compact language models via pruning and knowledge distillation, 2407.14679, section 2.
    """
    old = decoder.shape
    kept_layers = _kept("layers", layers, old.n_layers)
    kept_heads = _kept_in_each("heads", heads, old.n_layers, old.n_kv_heads)
    kept_neurons = _kept_in_each("neurons", neurons, old.n_layers, old.d_ff)
    kept_channels = _kept("channels", channels, old.d_model)
    if len(kept_channels) < old.d_model and not old.norm_gain:
        raise CostModelError("channels can only be pruned from a decoder with norm_gain, whose gains take the new D up")
    K, D = kept_heads.shape[1], len(kept_channels)
    shape = replace(
        old,
        d_model=D,
        n_layers=len(kept_layers),
        n_heads=old.n_heads // old.n_kv_heads * K,
        n_kv_heads=K,
        d_ff=kept_neurons.shape[1],
        norm_eps=old.norm_eps * (old.d_model / D),
    )
    source, pruned = decoder.weights, allocate(shape)
    for new, index in zip(pruned.layers, kept_layers.tolist(), strict=True):
        _copy_layer(old, source.layers[index], new, kept_heads[index], kept_neurons[index], kept_channels)
    _copy_gain(source.final_gain, pruned.final_gain, kept_channels)
    pruned.head.values[...] = source.head.values[kept_channels]
    pruned.embedding[...] = source.embedding[:, kept_channels]
    if pruned.positions is not None and source.positions is not None:
        pruned.positions[...] = source.positions[:, kept_channels]
    return Decoder(shape, pruned)


def _copy_layer(
    old: DecoderShape, layer: LayerWeights, new: LayerWeights, kv: np.ndarray, neurons: np.ndarray, channels: np.ndarray
) -> None:
    N, K, H = old.n_heads, old.n_kv_heads, old.head_dim
    queries = _spread(kv, N // K)
    in_qkv = _spread(np.concatenate([queries, N + kv, N + K + kv]), H)
    in_up = np.concatenate([neurons, old.d_ff + neurons]) if old.gated else neurons
    new.qkv.values[...] = layer.qkv.values[np.ix_(channels, in_qkv)]
    new.output.values[...] = layer.output.values[np.ix_(_spread(queries, H), channels)]
    new.up.values[...] = layer.up.values[np.ix_(channels, in_up)]
    new.down.values[...] = layer.down.values[np.ix_(neurons, channels)]
    _copy_gain(layer.attention_gain, new.attention_gain, channels)
    _copy_gain(layer.mlp_gain, new.mlp_gain, channels)


def _copy_gain(gain: np.ndarray | None, new: np.ndarray | None, channels: np.ndarray) -> None:
    if gain is not None and new is not None:
        new[...] = gain[channels] * gain.dtype.type((len(gain) / len(channels)) ** 0.5)


def _spread(blocks: np.ndarray, width: int) -> np.ndarray:
    """The indices that blocks of a width cover."""
    return (blocks[:, np.newaxis] * width + np.arange(width)).ravel()


def _kept(name: str, indices: Sequence[int] | None, size: int) -> np.ndarray:
    kept = np.arange(size) if indices is None else np.asarray(indices)
    whole = kept.ndim == 1 and kept.size and np.issubdtype(kept.dtype, np.integer)
    if not whole or kept[0] < 0 or kept[-1] >= size or (np.diff(kept) < 1).any():
        raise CostModelError(f"{name} must be rising indices from 0 to {size - 1}, got {kept.tolist()}")
    return kept


def _kept_in_each(name: str, indices: np.ndarray | None, n_layers: int, size: int) -> np.ndarray:
    rows = [None] * n_layers if indices is None else list(indices)
    kept = [_kept(name, row, size) for row in rows]
    if len(kept) != n_layers or len({len(row) for row in kept}) != 1:
        raise CostModelError(f"{name} must be equally many for each of {n_layers} layers, got {[len(r) for r in kept]}")
    return np.array(kept)
