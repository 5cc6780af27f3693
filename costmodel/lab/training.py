"""Training a decoder in seconds: Adam on the one block of memory that its weights are."""

from collections.abc import Callable

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.common.progress import watched
from costmodel.lab.gradients import batch_logits, loss_and_gradient
from costmodel.lab.losses import Loss, cross_entropy, distillation
from costmodel.lab.ragged import checked_ids
from costmodel.lab.transformer import Decoder
from costmodel.lab.weights import DecoderWeights

MOMENTUM, SPREAD, FLOOR = 0.9, 0.99, 1e-8  # β₁, β₂ and ε of Adam; β₂ below the paper's 0.999 as runs are short


def train(
    decoder: Decoder,
    tokens: np.ndarray,
    *,
    steps: int,
    batch: int = 32,
    length: int = 32,
    rate: float = 3e-3,
    seed: int = 0,
    loss: Callable[[np.ndarray], Loss] | None = None,
    project: Callable[[DecoderWeights], DecoderWeights] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[float]:
    """Change the decoder's weights by Adam on random windows of a text; the rate falls linearly to 0.

    m ← β₁·m + (1 - β₁)·g, v ← β₂·v + (1 - β₂)·g², w ← w - rate·m̂/(√v̂ + ε), with m̂ and v̂ corrected for their start
    at 0, β₁ = 0.9, β₂ = 0.99 and ε = 1e-8.

    Parameters
    ----------
    decoder : trained in place
    tokens : (n,) ids of a text, at least length + 1
    steps, batch, length : updates, windows in each, and tokens predicted in each window
    rate : factor of the first update, above 0; update i of n has rate·(1 - (i - 1)/n)
    seed : of the windows; the same seed gives the same weights
    loss : what to make small, chosen for each batch of windows (batch, length + 1), as `distil` does; the mean
        cross-entropy unless given
    project : weights -> those that the passes use in their place, while the update goes to the full ones: the
        straight-through way to train under quantization
    progress : told (steps done, steps); by default a bar for a long run on a terminal

    Returns
    -------
    the loss before each update [nat per token]

    Raises
    ------
    CostModelError
        before any update, for a text shorter than a window, ids outside the vocabulary, a window longer than max_len, a
        count that is not a positive integer, or a rate that is not finite and above 0

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> losses = train(TinyDecoder(vocab=2), np.arange(100) % 2, steps=40, length=8, rate=1e-2)  # 0 1 0 1 …
    >>> losses[0] > 0.5, losses[-1] < 0.05
    (True, True)

    References
    ----------
    Kingma and Ba, Adam, 1412.6980, algorithm 1.
    `project`: Bengio, Léonard and Courville, Estimating or propagating gradients …, 1308.3432 (straight-through).
    """
    tokens = np.asarray(tokens)
    for name, value in {"steps": steps, "batch": batch, "length": length}.items():
        whole(name, value, 1)
    if not 0 < rate < np.inf:
        raise CostModelError(f"rate must be a finite number above 0, got {rate!r}")
    _check_text(decoder, tokens, length)
    progress = progress or watched("training", "steps", steps)
    rng, weights = np.random.default_rng(seed), decoder.weights.memory
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    losses: list[float] = []
    for step in range(1, steps + 1):
        starts = rng.integers(0, len(tokens) - length, batch)
        windows = tokens[starts[:, np.newaxis] + np.arange(length + 1)]
        used = decoder if project is None else Decoder(decoder.shape, project(decoder.weights))
        reached, gradient = loss_and_gradient(used, windows, loss and loss(windows))
        losses.append(reached)
        mean += (1 - MOMENTUM) * (gradient.memory - mean)
        square += (1 - SPREAD) * (gradient.memory**2 - square)
        step_rate = rate * (1 - (step - 1) / steps) / (1 - MOMENTUM**step)
        weights -= step_rate * mean / (np.sqrt(square / (1 - SPREAD**step)) + FLOOR)
        if progress is not None:
            progress(step, steps)
    return losses


def distil(teacher: Decoder, temperature: float = 1.0) -> Callable[[np.ndarray], Loss]:
    """The loss that `train` makes small to imitate a teacher: `distillation` from its logits on each batch.

    Parameters
    ----------
    teacher : of the student's vocabulary, with room for its windows; stays as it is, and runs forward for every batch
    temperature : τ, a number above 0, by which both logits are divided

    Returns
    -------
    windows (batch, T + 1) -> their Loss, for the argument `loss` of `train`

    Raises
    ------
    CostModelError
        from what is returned: for a temperature that is not finite and above 0, windows that the teacher cannot read,
        or a student of another vocabulary

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> student, teacher = TinyDecoder(seed=1), TinyDecoder(seed=2)
    >>> losses = train(student, np.arange(200) % 16, steps=40, length=8, loss=distil(teacher))
    >>> losses[-1] < losses[0] / 5
    True

    References
    ----------
    Hinton, Vinyals and Dean, Distilling the knowledge in a neural network, 1503.02531, section 2.
    """
    return lambda windows: distillation(batch_logits(teacher, windows[:, :-1]), temperature)


def mean_loss(decoder: Decoder, tokens: np.ndarray, length: int = 32, batch: int = 64) -> float:
    """Mean cross-entropy over a text [nat per token], cut into windows of `length` predicted tokens.

    Every token but the first is predicted once, from those before it in its window; what is left of a last window that
    is not full is not counted.

    Parameters
    ----------
    decoder : of any shape
    tokens : (n,) ids, at least length + 1
    length : tokens predicted in each window, 1 to max_len
    batch : windows at a time, at least 1; it changes memory and time, not the loss

    Returns
    -------
    loss [nat per token]; its exponential is the perplexity

    Raises
    ------
    CostModelError
        for a length or batch that is not a positive integer, a text shorter than a window, a window longer than
        max_len, or ids outside the vocabulary

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> tiny.weights.head.values[...] = 0  # all logits 0: every one of 16 tokens equally likely, ln 16
    >>> round(mean_loss(tiny, np.arange(33) % 16), 4)
    2.7726
    """
    tokens = np.asarray(tokens)
    whole("length", length, 1), whole("batch", batch, 1)
    _check_text(decoder, tokens, length)
    starts = np.arange(0, len(tokens) - length, length)
    total = 0.0
    for some in np.split(starts, range(batch, len(starts), batch)):
        windows = tokens[some[:, np.newaxis] + np.arange(length + 1)]
        total += cross_entropy(batch_logits(decoder, windows[:, :-1]), windows[:, 1:])[0] * len(some)
    return total / len(starts)


def _check_text(decoder: Decoder, tokens: np.ndarray, length: int) -> None:
    if tokens.ndim != 1 or len(tokens) < length + 1:
        raise CostModelError(f"tokens must be one text of at least {length + 1} ids, got shape {tokens.shape}")
    if length > decoder.shape.max_len:
        raise CostModelError(f"length must be 1 to max_len, {decoder.shape.max_len}, got {length}")
    checked_ids(tokens, decoder.shape.vocab)
