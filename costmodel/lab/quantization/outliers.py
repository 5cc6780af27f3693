"""LLM.int8(): multiply in 8-bit integers, the few columns with outliers in 16 bits (Dettmers et al., 2208.07339)."""

import numpy as np

from costmodel.common.checks import number
from costmodel.common.errors import CostModelError
from costmodel.lab.quantization.compensated import checked_inputs
from costmodel.lab.quantization.rounding import checked_weights, quantize

THRESHOLD = 6.0  # of the paper, section 3.2


def outlier_columns(X: np.ndarray, threshold: float = THRESHOLD) -> np.ndarray:
    """The columns in which some magnitude reaches the threshold.

    Parameters
    ----------
    X : (tokens, columns) activations
    threshold : a magnitude that makes an outlier, a number of at least 0 on X's scale, may be infinite; by default the
        paper's 6

    Returns
    -------
    column numbers (n,), ascending

    Raises
    ------
    CostModelError
        for other than two axes, or a threshold that is not such a number

    Examples
    --------
    >>> outlier_columns(np.array([[0.1, -7.0, 1.0], [0.2, 0.3, 6.0]])).tolist()
    [1, 2]

    References
    ----------
    Dettmers et al., LLM.int8(), 2208.07339, section 3.2.
    """
    number("threshold", threshold, 0, infinite=True)
    if np.ndim(X) != 2:
        raise CostModelError(f"X must be (tokens, columns), got shape {np.shape(X)}")
    return np.flatnonzero((np.abs(X) >= threshold).any(axis=0))


def int8_multiply(X: np.ndarray, W: np.ndarray, threshold: float | None = THRESHOLD) -> np.ndarray:
    """X·Wᵀ with a scale for each row of X and each row of W; columns of outliers are multiplied in 16 bits and added.

    Parameters
    ----------
    X : (tokens, columns) activations
    W : (rows, columns) weights, one row for each output
    threshold : a magnitude that makes an outlier; None rounds every column to 8 bits

    Returns
    -------
    (tokens, rows), in W's precision

    Raises
    ------
    CostModelError
        for shapes that do not match, values that are not finite, a threshold that is not a number of at least 0, or
        outliers beyond fp16's 65,504

    Examples
    --------
    >>> X = np.array([[0.5, 0.25, 100.0]])
    >>> int8_multiply(X, np.array([[1.0, 1.0, 0.5]])).round(2), int8_multiply(X, np.ones((1, 3)), None).round(2)
    (array([[50.75]]), array([[100.79]]))

    References
    ----------
    Dettmers et al., LLM.int8(), 2208.07339, sections 3.1 and 3.2.
    """
    W = checked_weights(W)
    X = checked_inputs(W, X)
    kept = np.zeros(0, int) if threshold is None else outlier_columns(X, threshold)
    rest = np.setdiff1d(np.arange(X.shape[1]), kept)
    product = np.zeros((len(X), len(W)), W.dtype)
    if rest.size:
        (x_codes, x_scales), (w_codes, w_scales) = quantize(X[:, rest]), quantize(W[:, rest])
        exact = x_codes.astype(np.float64) @ w_codes.T.astype(np.float64)  # whole numbers: what int32 sums would hold
        product += exact * x_scales * w_scales.T
    if kept.size:
        with np.errstate(over="ignore"):
            x, w = X[:, kept].astype(np.float16), W[:, kept].astype(np.float16)
        if not (np.isfinite(x).all() and np.isfinite(w).all()):
            raise CostModelError("an outlier is beyond the largest fp16, 65,504; scale the activations down")
        product += x.astype(W.dtype) @ w.T.astype(W.dtype)
    return product
