"""Quantizing a large layer against the plain NumPy expression, and GPTQ against the loop as the paper states it."""

from collections.abc import Callable, Iterator

import numpy as np

from costmodel.lab.quantization import Scheme, gptq, quantize
from tests.benchmarks.side_by_side import Result, faster, timed

SIZE = 4096


def plain(W: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The expression that everybody writes."""
    top = 2 ** (bits - 1) - 1
    scale = np.abs(W).max(axis=1, keepdims=True) / top
    return np.clip(np.round(W / scale), -top, top).astype(np.int8), scale


def textbook_gptq(W: np.ndarray, X: np.ndarray, bits: int) -> np.ndarray:
    """Every column's error goes to all later columns at once; scales per row, the same order of columns."""
    hessian = (X.T @ X).astype(np.float64)
    order = np.argsort(-np.diag(hessian), kind="stable")
    hessian = hessian[np.ix_(order, order)] + 0.01 * np.diag(hessian).mean() * np.eye(len(hessian))
    upper = np.linalg.cholesky(np.linalg.inv(hessian), upper=True).astype(W.dtype)
    top, W = 2 ** (bits - 1) - 1, W[:, order]
    scale, rounded = np.abs(W).max(axis=1) / np.float32(top), np.empty_like(W)
    for i, j in enumerate(order):
        rounded[:, j] = scale * np.clip(np.round(W[:, i] / scale), -top, top)
        W[:, i:] -= np.outer((W[:, i] - rounded[:, j]) / upper[i, i], upper[i, i:])
    return rounded


def rounding() -> Iterator[Result]:
    """int8 and int4, a scale per row."""
    W = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32)
    for bits in (8, 4):
        codes, scales = quantize(W, bits)
        other, same = plain(W, bits)
        assert np.mean(codes != other) < 1e-6  # ties that a last bit of the scale decides
        np.testing.assert_allclose(scales, same, rtol=1e-6)
        ours, theirs = calls(W, bits)
        yield faster(f"int{bits} of {SIZE} x {SIZE} fp32, per row", ours, theirs, "plain NumPy", times=3)


def calls(W: np.ndarray, bits: int) -> tuple[Callable, Callable]:
    """Ours and the plain expression, bound to a width."""
    return lambda: quantize(W, bits), lambda: plain(W, bits)


def compensation() -> Iterator[Result]:
    """One layer of 2,048 x 2,048 at 4 bits, a scale per row, Hessian and its factor included."""
    rng = np.random.default_rng(0)
    W, X = (rng.normal(size=(n, 2048)).astype(np.float32) for n in (2048, 1024))
    found = []
    theirs = timed(lambda: found.append(textbook_gptq(W, X, 4)))  # once each: the loop takes long
    ours = timed(lambda: found.append(gptq(W, X, Scheme(4)).values()))
    assert np.mean(~np.isclose(*found, atol=1e-5)) < 0.02  # float32 sums in another order flip some ties
    ratio = theirs / ours
    yield Result("GPTQ of 2048 x 2048 fp32", ours, theirs, "the textbook loop", ratio, "≥ 2x as fast", ratio >= 2)


def results() -> Iterator[Result]:
    """Every comparison of this module."""
    yield from rounding()
    yield from compensation()
