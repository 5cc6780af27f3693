"""What training makes small: a loss of logits and its gradient, together."""

from collections.abc import Callable

import numpy as np

from costmodel.common.errors import CostModelError

Loss = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]
"""Logits (batch, T, V) and targets (batch, T) -> the mean loss [nat per token] and its gradient (batch, T, V)."""


def unchecked_log_softmax(logits: np.ndarray) -> np.ndarray:
    """`beam.log_softmax` of logits that a decoder computed: once they are NaN, so is the loss, and a run shows it."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def cross_entropy(logits: np.ndarray, targets: np.ndarray) -> tuple[float, np.ndarray]:
    """How surprised the logits are by the targets: mean of -ln softmax(logits)[target], and its gradient.

    ∂/∂logits = (softmax(logits) - one-hot(target))/(batch·T).

    Parameters
    ----------
    logits : (batch, T, V)
    targets : (batch, T) ids, the tokens that came

    Returns
    -------
    loss : mean over batch·T [nat per token]
    gradient : ∂loss/∂logits (batch, T, V)

    Examples
    --------
    >>> loss, gradient = cross_entropy(np.zeros((1, 1, 4)), np.array([[2]]))  # four tokens, all equally likely: ln 4
    >>> round(loss, 4), gradient.tolist()
    (1.3863, [[[0.25, 0.25, -0.75, 0.25]]])
    """
    log_probs, chosen = unchecked_log_softmax(logits), targets[..., np.newaxis]
    loss = -np.take_along_axis(log_probs, chosen, axis=-1).mean(dtype=np.float64)
    gradient = np.exp(log_probs)
    np.put_along_axis(gradient, chosen, np.take_along_axis(gradient, chosen, axis=-1) - 1, axis=-1)
    return float(loss), gradient / gradient.dtype.type(targets.size)


def distillation(teacher_logits: np.ndarray, temperature: float = 1.0) -> Loss:
    """How far the logits are from a teacher's on the same tokens: τ²·KL(softmax(teacher/τ) ‖ softmax(logits/τ)).

    ∂/∂logits = τ·(softmax(logits/τ) - softmax(teacher/τ))/(batch·T); the factor τ² keeps it from vanishing as τ grows.
    The targets are not looked at: a teacher says more than one word.

    Parameters
    ----------
    teacher_logits : (batch, T, V)
    temperature : τ, a number above 0; 1 compares the models as they are, a larger one weighs what is unlikely more

    Returns
    -------
    a Loss: (logits, targets) -> its value [nat per token] and ∂/∂logits

    Raises
    ------
    CostModelError
        for a temperature that is not finite and above 0; from the Loss: for logits of another shape than the teacher's

    Examples
    --------
    >>> teacher = np.array([[[0.0, 1.0]]])
    >>> loss, gradient = distillation(teacher)(teacher, np.array([[0]]))
    >>> loss, gradient.tolist()
    (0.0, [[[0.0, 0.0]]])

    References
    ----------
    Hinton, Vinyals and Dean, Distilling the knowledge in a neural network, 1503.02531, section 2.
    """
    if not 0 < temperature < np.inf:
        raise CostModelError(f"temperature of a distillation must be a finite number above 0, got {temperature!r}")
    log_teacher = unchecked_log_softmax(teacher_logits / teacher_logits.dtype.type(temperature))
    teacher = np.exp(log_teacher)

    def loss(logits: np.ndarray, targets: np.ndarray) -> tuple[float, np.ndarray]:
        if logits.shape != teacher_logits.shape:
            raise CostModelError(f"logits must have the teacher's shape, {teacher_logits.shape}, got {logits.shape}")
        log_probs = unchecked_log_softmax(logits / logits.dtype.type(temperature))
        divergence = temperature**2 * (teacher * (log_teacher - log_probs)).sum(axis=-1).mean(dtype=np.float64)
        gradient = (np.exp(log_probs) - teacher) * logits.dtype.type(temperature / targets.size)
        return float(divergence), gradient

    return loss
