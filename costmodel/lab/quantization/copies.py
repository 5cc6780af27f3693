"""A decoder whose matrices went through fewer bits, and what that decoder would take in memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from costmodel.common.checks import number
from costmodel.common.errors import CostModelError
from costmodel.lab.matrix import Matrix
from costmodel.lab.quantization.activation_aware import awq
from costmodel.lab.quantization.compensated import gptq
from costmodel.lab.quantization.schemes import Scheme
from costmodel.lab.transformer import Decoder
from costmodel.lab.weights import allocate
from costmodel.lab.work import Work

MATRICES = ("qkv", "output", "up", "down")
METHODS = {
    "nearest": lambda W, _, scheme: scheme.quantize(W),
    "awq": lambda W, X, scheme: awq(W, X, scheme, points=10),
    "gptq": gptq,
}


def quantized_copy(
    decoder: Decoder,
    bits: int = 4,
    *,
    group: int | None = None,
    method: str = "nearest",
    calibration: Sequence[Sequence[int]] = (),
    symmetric: bool = True,
    scale_bits: int | None = 16,
) -> Decoder:
    """A decoder of the same shape with every matrix of its layers rounded; embedding, head and norms stay as they are.

    Parameters
    ----------
    decoder : left as it is
    bits, group, symmetric, scale_bits : of the `Scheme`
    method : "nearest"; or "awq" or "gptq", which look at the layers' inputs
    calibration : sequences of ids whose inputs those two see, as the given decoder computes them

    Returns
    -------
    Decoder that holds the rounded numbers in its own dtype; `copy_bytes` says what they would take packed

    Raises
    ------
    CostModelError
        for an unknown method, or one that needs calibration and has none

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> rounded = quantized_copy(tiny, 3, group=8, method="gptq", calibration=[range(8)])
    >>> len(np.unique(rounded.weights.layers[0].down.values[:8, 0])) <= 7
    True

    References
    ----------
    AWQ, Lin et al., 2306.00978; GPTQ, Frantar et al., 2210.17323.
    """
    if method not in METHODS:
        raise CostModelError(f"method must be {', '.join(METHODS)}, got {method!r}")
    if method != "nearest" and not len(calibration):
        raise CostModelError(f"method {method!r} needs calibration: sequences of token ids")
    scheme = Scheme(bits, group, symmetric, scale_bits)
    return changed_copy(decoder, lambda W, X: METHODS[method](W, X, scheme).values(), calibration)


def changed_copy(
    decoder: Decoder,
    change: Callable[[np.ndarray, np.ndarray | None], np.ndarray],
    calibration: Sequence[Sequence[int]] = (),
) -> Decoder:
    """A decoder of the same shape with change(W, X) in place of every matrix of its layers.

    Parameters
    ----------
    decoder : left as it is
    change : W (outputs, inputs) and its inputs X (tokens, inputs), None without calibration -> W's successor
    calibration : sequences of ids; each X is what the given decoder, not yet changed, feeds that matrix

    Returns
    -------
    Decoder with the same embedding, head and norms

    Raises
    ------
    CostModelError
        for a sequence that the decoder refuses, or a successor of another shape

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> doubled = changed_copy(tiny, lambda W, X: 2 * W)
    >>> before, after = (model.weights.layers[0].up.values for model in (tiny, doubled))
    >>> bool((after == 2 * before).all())
    True
    """
    copy = Decoder(decoder.shape, allocate(decoder.shape))
    copy.weights.memory[...] = decoder.weights.memory
    inputs = layer_inputs(decoder, calibration) if len(calibration) else None
    for index, layer in enumerate(copy.weights.layers):
        for name in MATRICES:
            rows = getattr(layer, name).values.T
            changed = change(rows.copy(), None if inputs is None else inputs[index][name])
            if np.shape(changed) != rows.shape:
                raise CostModelError(f"{name} of layer {index} must stay {rows.shape}, got shape {np.shape(changed)}")
            rows[...] = changed
    return copy


def layer_inputs(decoder: Decoder, sequences: Sequence[Sequence[int]]) -> list[dict[str, np.ndarray]]:
    """What each matrix of each layer is multiplied with when the decoder reads these sequences.

    Parameters
    ----------
    decoder : left as it is, its count of work too
    sequences : (T_i,) ids each, at least one sequence

    Returns
    -------
    for each layer {"qkv", "output", "up", "down": (ΣT_i, inputs)}, one sequence after another; "up" is the gate's too

    Raises
    ------
    CostModelError
        for no sequences, or one that the decoder refuses

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> first, second = layer_inputs(TinyDecoder(), [[1, 2, 3], [4, 5]])
    >>> {name: X.shape for name, X in first.items()}
    {'qkv': (5, 16), 'output': (5, 16), 'up': (5, 16), 'down': (5, 64)}
    """
    if not len(sequences):
        raise CostModelError("no sequences: give at least one of token ids")
    weights = decoder.weights
    watched = []
    for layer in weights.layers:
        matrices: dict[str, Any] = {m: _Watched(getattr(layer, m)) for m in MATRICES}
        watched.append(replace(layer, **matrices))
    Decoder(decoder.shape, replace(weights, layers=watched)).forward_batch(sequences)
    return [{m: np.concatenate(getattr(layer, m).seen) for m in MATRICES} for layer in watched]


class _Watched(Matrix):
    """A matrix that keeps what it is multiplied with."""

    def __init__(self, matrix: Matrix) -> None:
        self.outputs, self.values = matrix.outputs, matrix.values
        self.seen: list[np.ndarray] = []

    def multiply(self, x: np.ndarray, work: Work) -> np.ndarray:
        self.seen.append(x)
        return super().multiply(x, work)


def copy_bytes(decoder: Decoder, scheme: Scheme, other_bits: int = 16) -> int:
    """What `quantized_copy` would take packed: layer matrices by the scheme, all other numbers in `other_bits` [byte].

    Parameters
    ----------
    decoder : whose sizes are counted, a tied head once
    scheme : of the layers' matrices; scales that it keeps in the weights' precision count 32 bits
    other_bits : of each other number, at least 0: embedding, head, positions, norms [bit]

    Returns
    -------
    whole bytes, rounded up [byte]

    Raises
    ------
    CostModelError
        for other_bits that are negative or infinite

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> copy_bytes(tiny, Scheme(4, 16, scale_bits=16)), 2 * tiny.params  # 6144 numbers at 4 + 16/16 bits, 1280 at 16
    (6400, 14848)
    """
    number("other_bits", other_bits, 0)
    bits, others = 0, decoder.params
    for layer in decoder.weights.layers:
        for name in MATRICES:
            inputs, outputs = getattr(layer, name).values.shape
            bits += inputs * outputs * scheme.effective_bits(inputs, outputs)
            others -= inputs * outputs
    return int(-(-(bits + others * other_bits) // 8))
