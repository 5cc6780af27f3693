"""GPTQ: round column by column and let the columns to come make up for the error (Frantar et al., 2210.17323).

Rounding weight j by δ changes the outputs on the calibration inputs least when the later weights move by
δ·U[j, later]/U[j, j], with UᵀU the inverse of the Hessian XᵀX, U upper triangular. Columns with the largest inputs go
first (the authors' "act-order"): their errors are the dearest, and then all others can still make up for them.
"""

import numpy as np

from costmodel.common.checks import number
from costmodel.common.errors import CostModelError
from costmodel.lab.quantization.groups import in_groups
from costmodel.lab.quantization.rounding import checked_weights
from costmodel.lab.quantization.schemes import Quantized, Scheme

BLOCK = 128  # columns whose mutual corrections are made one by one; those to the rest are one product


def gptq(W: np.ndarray, X: np.ndarray, scheme: Scheme, damping: float = 0.01) -> Quantized:
    """Round W so that X·Wᵀ changes little.

    Parameters
    ----------
    W : (rows, columns), one row for each output
    X : (tokens, columns) calibration inputs, finite
    scheme : the grid; every group's scale is that of plain rounding
    damping : share of the Hessian's mean diagonal that is added to its diagonal, at least 0; 0 takes inputs that span
        all columns

    Returns
    -------
    Quantized, (rows, columns)

    Raises
    ------
    CostModelError
        for shapes that do not match, values that are not finite, or a damping that is negative, infinite or too small
        for the inputs

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> W, X = rng.normal(size=(8, 16)), rng.normal(size=(64, 4)) @ rng.normal(size=(4, 16))
    >>> rounded = Scheme(4).quantize(W), gptq(W, X, Scheme(4))
    >>> [round(output_error(W, q.values(), X), 2) for q in rounded]
    [0.09, 0.03]

    References
    ----------
    Frantar et al., GPTQ, 2210.17323, section 4.
    """
    number("damping", damping, 0)
    W = checked_weights(W)
    X = checked_inputs(W, X)
    parts = in_groups(W, scheme.group)
    scales, zeros = scheme.grid(parts, in_groups(np.ones_like(W), scheme.group))
    owner = np.arange(W.shape[1]) // parts.shape[2] if scheme.group else np.zeros(W.shape[1], int)  # group of a column
    order = np.argsort(-np.vecdot(X.T, X.T), kind="stable")
    factor = _inverse_factor(X[:, order], damping).astype(W.dtype)
    todo = np.ascontiguousarray(W.T[order])  # columns of W as rows, corrected as those before them are rounded
    codes = np.empty(todo.shape, np.int8 if zeros is None else np.uint8)
    for start in range(0, len(todo), BLOCK):
        end = min(start + BLOCK, len(todo))
        errors = np.empty((end - start, todo.shape[1]), W.dtype)
        for j in range(start, end):
            scale = scales[:, owner[order[j]], 0]
            zero = None if zeros is None else zeros[:, owner[order[j]], 0]
            codes[j] = scheme.codes(todo[j], scale, zero)
            errors[j - start] = (todo[j] - scale * (codes[j] if zero is None else codes[j] - zero)) / factor[j, j]
            todo[j + 1 : end] -= np.outer(factor[j, j + 1 : end], errors[j - start])
        todo[end:] -= factor[start:end, end:].T @ errors
    found = np.empty_like(codes)
    found[order] = codes
    zeros = None if zeros is None else zeros[..., 0]
    return Quantized(scheme, np.ascontiguousarray(found.T), scales[..., 0], zeros, W.dtype)


def checked_inputs(W: np.ndarray, X: np.ndarray) -> np.ndarray:
    """X in W's precision, when X·Wᵀ exists and everything is finite."""
    X = np.asarray(X, dtype=W.dtype)
    if W.ndim != 2 or X.ndim != 2 or X.shape[1] != W.shape[1] or not len(X):
        raise CostModelError(f"X must be (tokens, columns) for W (rows, columns), got {X.shape} and {W.shape}")
    for name, array in (("W", W), ("X", X)):
        if not np.isfinite(array).all():
            raise CostModelError(f"{name} has a value that is NaN or infinite; every number must be finite")
    return X


def output_error(W: np.ndarray, approximation: np.ndarray, X: np.ndarray) -> float:
    """‖X·(W - Ŵ)ᵀ‖/‖X·Wᵀ‖: how far the layer's outputs are off, 0 where both are all zeros.

    Parameters
    ----------
    W, approximation : W and Ŵ, (rows, columns), one row for each output
    X : (tokens, columns) inputs

    Returns
    -------
    ratio of the two Frobenius norms, at least 0; inf where only X·Wᵀ is all zeros

    Raises
    ------
    CostModelError
        for shapes that do not match

    Examples
    --------
    >>> output_error([[3.0, 4.0]], [[3.0, 3.0]], np.eye(2))  # outputs 3 and 4, a vector of length 5, become 3 and 3
    0.2
    """
    if np.ndim(W) != 2 or np.shape(W) != np.shape(approximation) or np.shape(X)[1:] != np.shape(W)[1:]:
        shapes = f"{np.shape(W)}, {np.shape(approximation)} and {np.shape(X)}"
        raise CostModelError(f"W and Ŵ must be (rows, columns) and X (tokens, columns), got {shapes}")
    lost, size = np.linalg.norm(X @ np.subtract(W, approximation).T), np.linalg.norm(X @ np.transpose(W))
    return float(lost / size) if size else (0.0 if lost == 0 else np.inf)


def _inverse_factor(X: np.ndarray, damping: float) -> np.ndarray:
    """U, upper triangular, with UᵀU = (XᵀX + damping·mean diagonal)⁻¹, in float64: with both axes reversed, L⁻¹."""
    hessian = (X.T @ X).astype(np.float64)
    diagonal = np.einsum("jj->j", hessian)  # a view that can be written to
    diagonal += damping * diagonal.mean()
    diagonal[diagonal == 0] = 1.0  # inputs that are all 0: nothing to compensate
    try:
        return np.linalg.inv(np.linalg.cholesky(hessian[::-1, ::-1]))[::-1, ::-1]
    except np.linalg.LinAlgError as error:
        raise CostModelError(f"damping must be larger where X does not span all columns, got {damping}") from error
