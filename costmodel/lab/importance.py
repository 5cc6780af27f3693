"""How much each part of a decoder matters, measured on calibration tokens; only passes forward are needed.

A head or a neuron is as important as what it adds to the residual stream: the root mean square, over tokens, of its
activation times the rows of the matrix that writes it. Minitron (2407.14679, section 2.2) ranks by the activations
alone; the weights behind them cost nothing more to look at.
"""

import numpy as np

from costmodel.lab.gradients import batch_logits
from costmodel.lab.pruning import prune
from costmodel.lab.training import mean_loss
from costmodel.lab.transformer import Decoder


def layer_influence(decoder: Decoder, tokens: np.ndarray) -> np.ndarray:
    """How far each layer turns the residual stream: 1 - mean cos(its input, its output).

    Parameters
    ----------
    decoder : of any shape
    tokens : (batch, T) calibration ids

    Returns
    -------
    (L,), 0 for a layer that changes nothing

    References
    ----------
    Men et al., ShortGPT, 2403.03853, section 3 (block influence).
    """
    streams = _watched(decoder, tokens, "stream")
    lengths = np.linalg.norm(streams, axis=-1)
    cosines = np.vecdot(streams[:-1], streams[1:]) / (lengths[:-1] * lengths[1:])
    return 1 - cosines.mean(axis=1)


def loss_without_layer(decoder: Decoder, text: np.ndarray, length: int = 32) -> np.ndarray:
    """The mean loss on a text with each layer removed in turn [nat per token], (L,); of at least two layers."""
    layers = range(decoder.shape.n_layers)
    without = [prune(decoder, layers=[i for i in layers if i != removed]) for removed in layers]
    return np.array([mean_loss(smaller, text, length) for smaller in without])


def head_importance(decoder: Decoder, tokens: np.ndarray) -> np.ndarray:
    """Root mean square of what each key/value head's group adds to the stream, (L, K).

    Parameters
    ----------
    decoder : of any shape
    tokens : (batch, T) calibration ids
    """
    mixed, K = _watched(decoder, tokens, "output"), decoder.shape.n_kv_heads
    scores = []
    for layer, x in zip(decoder.weights.layers, mixed, strict=True):
        parts = x.reshape(len(x), K, -1).swapaxes(0, 1) @ layer.output.values.reshape(K, -1, decoder.shape.d_model)
        scores.append(np.sqrt((parts**2).sum(axis=-1).mean(axis=-1)))
    return np.array(scores)


def neuron_importance(decoder: Decoder, tokens: np.ndarray) -> np.ndarray:
    """Root mean square of what each neuron of the MLP adds to the stream, (L, F): |activation|·‖its row of down‖.

    Parameters
    ----------
    decoder : of any shape
    tokens : (batch, T) calibration ids
    """
    hidden = _watched(decoder, tokens, "down")
    rows = np.array([np.linalg.norm(layer.down.values, axis=1) for layer in decoder.weights.layers])
    return np.sqrt((hidden**2).mean(axis=1)) * rows


def channel_importance(decoder: Decoder, tokens: np.ndarray) -> np.ndarray:
    """Root mean square of each channel of the stream after its norms, over all layers and the head, (D,).

    Parameters
    ----------
    decoder : of any shape
    tokens : (batch, T) calibration ids
    """
    read = [_watched(decoder, tokens, name) for name in ("qkv", "up", "head")]
    return np.sqrt((np.concatenate(read) ** 2).mean(axis=(0, 1)))


def _watched(decoder: Decoder, tokens: np.ndarray, part: str) -> np.ndarray:
    """What a part reads in each layer, (layers, batch·T, width)."""
    seen: list[np.ndarray] = []

    def watch(name: str, _layer: int, rows: np.ndarray) -> None:
        if name == part:
            seen.append(rows)

    batch_logits(decoder, tokens, watch)
    return np.array(seen)
