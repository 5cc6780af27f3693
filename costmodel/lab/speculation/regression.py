"""A regression that is trained in one solve: linear in the inputs and in random ReLU features of them."""

from collections.abc import Sequence

import numpy as np

from costmodel.common.checks import number, whole
from costmodel.common.errors import CostModelError
from costmodel.lab.transformer import Decoder


class Regression:
    """y ≈ W·φ(x) with φ(x) = (1, x, ReLU(x·R)), R random and fixed, W by ridge regression in closed form.

    Parameters
    ----------
    x, y : (n, inputs) and (n, outputs)
    width : columns of R, at least 0
    penalty : λ of the ridge, W = (ΦᵀΦ + λ·1)⁻¹·Φᵀ·y, a number of at least 0, above it where columns of Φ
        depend on each other
    seed : of R

    Raises
    ------
    CostModelError
        for other sizes than these, no rows, another number of them in x than in y, or λ too small for its Φ

    Examples
    --------
    >>> x = np.linspace(-1, 1, 50)[:, np.newaxis]
    >>> bool(np.abs(Regression(x, np.abs(x), penalty=1e-6)(x) - np.abs(x)).max() < 0.05)
    True
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, *, width: int = 256, penalty: float = 1e-2, seed: int = 0) -> None:
        if len(x) != len(y) or not len(x):
            raise CostModelError(f"a regression needs as many inputs as outputs, got {len(x)} and {len(y)}")
        whole("width", width, 0)
        number("penalty", penalty, 0)
        self._random = np.random.default_rng(seed).normal(0, x.shape[1] ** -0.5, (x.shape[1], width))
        phi = self._features(x)
        try:
            self.weights = np.linalg.solve(phi.T @ phi + penalty * np.eye(phi.shape[1]), phi.T @ y)
        except np.linalg.LinAlgError as error:
            raise CostModelError(f"penalty must be larger where features repeat each other, got {penalty}") from error

    def _features(self, x: np.ndarray) -> np.ndarray:
        return np.concatenate([np.ones((len(x), 1)), x, np.maximum(x @ self._random, 0)], axis=1)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Predictions (n, outputs) for inputs (n, inputs)."""
        return self._features(x) @ self.weights


def read_by_head(decoder: Decoder, texts: Sequence[Sequence[int]], least: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each text its ids (n,) and what the head reads at each of them, (n, D); one has `least` tokens or more."""
    longest = max(map(len, texts), default=0)
    if longest < least:
        raise CostModelError(f"one text at least must have {least} tokens, the longest of {len(texts)} has {longest}")
    return [(np.asarray(text), decoder.hidden(text)) for text in texts]
