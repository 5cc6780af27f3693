"""AWQ: scale up the columns that large activations meet, so that rounding hits them less (Lin et al., 2306.00978).

X·Wᵀ = (X/s)·(W·s)ᵀ for any s > 0. A column made larger within its group is rounded more finely relative to its size.
At run time 1/s is folded into the operation before; nothing stays in 16 bits.
"""

from dataclasses import dataclass

import numpy as np

from costmodel.common.checks import present, whole
from costmodel.lab.quantization.compensated import checked_inputs, output_error
from costmodel.lab.quantization.rounding import checked_weights
from costmodel.lab.quantization.schemes import Quantized, Scheme


@dataclass(frozen=True)
class ActivationAware:
    """W·s rounded, and s.

    Attributes
    ----------
    quantized : W·s after rounding, (rows, columns)
    scales : s, (columns,), above 0
    alpha : exponent of the search, s = (mean |x|)^α up to a common factor; 0 is plain rounding

    Examples
    --------
    >>> W, s = np.array([[7.0, 1.4]]), np.array([1.0, 4.0])
    >>> scheme = Scheme(4)  # 7·1 stays the largest, so the step stays 1: 4·1.4 = 5.6 becomes 6
    >>> ActivationAware(scheme.quantize(W * s), s, 0.5).values().tolist(), scheme.quantize(W).values().tolist()
    ([[7.0, 1.5]], [[7.0, 1.0]])

    References
    ----------
    Lin et al., AWQ, 2306.00978, section 3.2.
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
    points : number of steps of the search: α is one of 0, 1/points, …, 1; 0 tries α = 0 alone

    Returns
    -------
    ActivationAware; its `values()` (rows, columns) take the place of W

    Raises
    ------
    CostModelError
        for shapes that do not match, values that are not finite, or points that are not an integer of at least 0

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> W, X = rng.normal(size=(8, 16)), rng.normal(size=(64, 16))
    >>> X[:, 3] *= 50
    >>> int(awq(W, X, Scheme(3)).scales.argmax())
    3

    References
    ----------
    Lin et al., AWQ, 2306.00978, section 3.2.
    """
    whole("points", points, 0)
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
