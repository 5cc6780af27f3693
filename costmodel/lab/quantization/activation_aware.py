"""AWQ: scale up the columns that large activations meet, so that rounding hits them less (Lin et al., 2306.00978).

X·Wᵀ = (X/s)·(W·s)ᵀ for any s > 0. A column made larger within its group is rounded more finely relative to its size.
At run time 1/s is folded into the operation before; nothing stays in 16 bits.
"""

from dataclasses import dataclass

import numpy as np

from costmodel.common.checks import present
from costmodel.lab.quantization.compensated import checked_inputs, output_error
from costmodel.lab.quantization.rounding import checked_weights
from costmodel.lab.quantization.schemes import Quantized, Scheme


@dataclass(frozen=True)
class ActivationAware:
    """W·s rounded, and s.

    Attributes
    ----------
    quantized : of W·s
    scales : (columns,) s
    alpha : s = (mean |x|)^alpha, with alpha found by search; 0 is plain rounding
    """

    quantized: Quantized
    scales: np.ndarray
    alpha: float

    def values(self) -> np.ndarray:
        """What takes the place of W: the rounded W·s, over s."""
        return self.quantized.values() / self.scales


def awq(W: np.ndarray, X: np.ndarray, scheme: Scheme, points: int = 20) -> ActivationAware:
    """Round W·s with the s = (mean |x|)^α, 0 ≤ α ≤ 1, that changes X·Wᵀ least; α = 0 is tried, so never worse than it.

    Parameters
    ----------
    W : (rows, columns), one row for each output
    X : (tokens, columns) calibration inputs, finite
    scheme : the grid for W·s
    points : α is searched among 0, 1/points, …, 1

    Returns
    -------
    ActivationAware

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> W, X = rng.normal(size=(8, 16)), rng.normal(size=(64, 16))
    >>> X[:, 3] *= 50
    >>> awq(W, X, Scheme(3)).scales.argmax()
    np.int64(3)
    """
    W = checked_weights(W)
    X = checked_inputs(W, X)
    typical = np.maximum(np.abs(X).mean(axis=0), W.dtype.type(1e-4))
    best, least = None, np.inf
    for alpha in np.linspace(0, 1, points + 1).tolist():
        scales = (typical**alpha).astype(W.dtype)
        scales /= np.sqrt(scales.max() * scales.min())
        candidate = ActivationAware(scheme.quantize(W * scales), scales, alpha)
        error = output_error(W, candidate.values(), X)
        if error < least or best is None:
            best, least = candidate, error
    return present("a scale", best)
