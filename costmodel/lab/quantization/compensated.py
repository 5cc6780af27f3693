"""GPTQ: round column by column and let the columns to come make up for the error (Frantar et al., 2210.17323).

Rounding weight j by δ changes the outputs on the calibration inputs least when the later weights move by
δ·U[j, later]/U[j, j], with UᵀU the inverse of the Hessian XᵀX, U upper triangular.
"""

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.quantization.rounding import checked_weights
from costmodel.lab.quantization.schemes import Quantized, Scheme

BLOCK = 128  # columns whose mutual corrections are made one by one; those to the rest are one product


def gptq(W: np.ndarray, X: np.ndarray, scheme: Scheme, damping: float = 0.01) -> Quantized:
    """Round W so that X·Wᵀ changes little.

    Parameters
    ----------
    W : (rows, columns), one row for each output
    X : (tokens, columns) calibration inputs, finite
    scheme : the grid; a group's scale is taken when its first column is reached
    damping : share of the Hessian's mean diagonal that is added to its diagonal

    Returns
    -------
    Quantized

    Raises
    ------
    CostModelError
        for shapes that do not match, or values that are not finite

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> W, X = rng.normal(size=(8, 16)), rng.normal(size=(64, 4)) @ rng.normal(size=(4, 16))
    >>> rounded = Scheme(4).quantize(W), gptq(W, X, Scheme(4))
    >>> [round(output_error(W, q.values(), X), 2) for q in rounded]
    [0.09, 0.05]
    """
    W, X = checked_weights(W), checked_inputs(W, X)
    todo = np.array(W.T, order="C")  # columns of W as contiguous rows; each is corrected as the ones before are rounded
    factor = _inverse_factor(X, damping).astype(W.dtype)
    columns, rows = todo.shape
    group = columns if not scheme.group else min(scheme.group, columns)
    block = group * max(1, BLOCK // group) if scheme.group else BLOCK
    codes, scales, zeros = np.empty((columns, rows), np.int8 if scheme.symmetric else np.uint8), [], []
    if not scheme.group:
        whole = scheme.grid(W.reshape(1, -1) if scheme.group == 0 else W)
    for start in range(0, columns, block):
        end = min(start + block, columns)
        errors = np.empty((end - start, rows), W.dtype)
        for j in range(start, end):
            if j % group == 0:
                scale, zero = whole if not scheme.group else scheme.grid(todo[j : min(j + group, columns)].T)
                scales.append(scale)
                zeros.append(zero)
                scale, zero = scale[:, 0], None if zero is None else zero[:, 0]
            codes[j] = scheme.codes(todo[j], scale, zero)
            value = scale * (codes[j] if zero is None else codes[j] - zero)
            errors[j - start] = (todo[j] - value) / factor[j, j]
            todo[j + 1 : end] -= np.outer(factor[j, j + 1 : end], errors[j - start])
        todo[end:] -= factor[start:end, end:].T @ errors
    found = None if scheme.symmetric else np.concatenate(zeros, axis=1)
    return Quantized(scheme, np.ascontiguousarray(codes.T), np.concatenate(scales, axis=1), found, W.dtype)


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
    W, approximation : (rows, columns)
    X : (tokens, columns)
    """
    lost, size = np.linalg.norm(X @ np.subtract(W, approximation).T), np.linalg.norm(X @ np.transpose(W))
    return float(lost / size) if size else (0.0 if lost == 0 else np.inf)


def _inverse_factor(X: np.ndarray, damping: float) -> np.ndarray:
    """U, upper triangular, with UᵀU = (XᵀX + damping·mean diagonal)⁻¹, in float64: with both axes reversed, L⁻¹."""
    hessian = (X.T @ X).astype(np.float64)
    diagonal = np.einsum("jj->j", hessian)  # a view that can be written to
    diagonal += damping * diagonal.mean() or 1.0  # inputs that are all 0: nothing to compensate
    diagonal[diagonal == 0] = 1.0
    return np.linalg.inv(np.linalg.cholesky(hessian[::-1, ::-1]))[::-1, ::-1]
