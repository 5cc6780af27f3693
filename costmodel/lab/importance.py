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
    tokens : (batch, T) calibration ids; the mean is over all batch·T of them

    Returns
    -------
    (L,) numbers, 0 for a layer that changes no direction, at most 2

    Raises
    ------
    CostModelError
        for tokens that are not (batch, T) ids of the vocabulary, or T beyond max_len

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> for matrix in (tiny.weights.layers[1].output, tiny.weights.layers[1].down):
    ...     matrix.values[...] = 0  # layer 1 adds nothing to the stream
    >>> (layer_influence(tiny, np.array([[1, 2, 3]])) > 1e-9).tolist()
    [True, False]

    References
    ----------
    Men et al., ShortGPT, 2403.03853, section 3 (block influence).
    """
    streams = _watched(decoder, tokens, "stream")
    lengths = np.linalg.norm(streams, axis=-1)
    cosines = np.vecdot(streams[:-1], streams[1:]) / (lengths[:-1] * lengths[1:])
    return 1 - cosines.mean(axis=1)


def loss_without_layer(decoder: Decoder, text: np.ndarray, length: int = 32) -> np.ndarray:
    """The mean loss on a text with each layer removed in turn [nat per token].

    Parameters
    ----------
    decoder : of at least two layers; stays as it is
    text : (n,) ids, at least length + 1
    length : tokens predicted in each window, as in `mean_loss`

    Returns
    -------
    (L,) [nat per token]

    Raises
    ------
    CostModelError
        for a decoder of one layer, or a text shorter than a window
    """
    layers = range(decoder.shape.n_layers)
    without = [prune(decoder, layers=[i for i in layers if i != removed]) for removed in layers]
    return np.array([mean_loss(smaller, text, length) for smaller in without])


def head_importance(decoder: Decoder, tokens: np.ndarray) -> np.ndarray:
    """Root mean square, over tokens, of the length of what each key/value head's group adds to the stream.

    Parameters
    ----------
    decoder : of any shape
    tokens : (batch, T) calibration ids

    Returns
    -------
    (L, K)

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> tiny.weights.layers[0].output.values[:8] = 0  # nobody hears the first head, of width 8
    >>> (head_importance(tiny, np.array([[1, 2, 3]])) > 0).tolist()
    [[False, True], [True, True]]
    """
    mixed, K = _watched(decoder, tokens, "output"), decoder.shape.n_kv_heads
    scores = []
    for layer, x in zip(decoder.weights.layers, mixed, strict=True):
        parts = x.reshape(len(x), K, -1).swapaxes(0, 1) @ layer.output.values.reshape(K, -1, decoder.shape.d_model)
        scores.append(np.sqrt((parts**2).sum(axis=-1).mean(axis=-1)))
    return np.array(scores)


def neuron_importance(decoder: Decoder, tokens: np.ndarray) -> np.ndarray:
    """√(mean activation²)·‖its row of down‖: root mean square of what each neuron of the MLP adds to the stream.

    Parameters
    ----------
    decoder : of any shape
    tokens : (batch, T) calibration ids

    Returns
    -------
    (L, F)
    """
    hidden = _watched(decoder, tokens, "down")
    rows = np.array([np.linalg.norm(layer.down.values, axis=1) for layer in decoder.weights.layers])
    return np.sqrt((hidden**2).mean(axis=1)) * rows


def channel_importance(decoder: Decoder, tokens: np.ndarray) -> np.ndarray:
    """Root mean square of each channel of the stream after its norms, over all layers and the head.

    Parameters
    ----------
    decoder : of any shape
    tokens : (batch, T) calibration ids

    Returns
    -------
    (D,)
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
