"""Neighbours that share a scale: a matrix cut into groups along its rows, and put together again."""

import numpy as np


def in_groups(rows: np.ndarray, group: int | None) -> np.ndarray:
    """(rows, groups, group), the ragged last group filled with zeros; 0 makes the whole matrix one group.

    Examples
    --------
    >>> in_groups(np.array([[1, 2, 3]]), 2).tolist()
    [[[1, 2], [3, 0]]]
    """
    if group == 0:
        return rows.reshape(1, 1, -1)
    size = min(group or rows.shape[1], rows.shape[1])
    missing = -rows.shape[1] % size
    filled = np.pad(rows, ((0, 0), (0, missing))) if missing else rows
    return filled.reshape(len(rows), -1, size)


def from_groups(parts: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The matrix of that shape, without what filled its groups."""
    if parts.size == shape[0] * shape[1]:
        return parts.reshape(shape)
    return np.ascontiguousarray(parts.reshape(shape[0], -1)[:, : shape[1]])
