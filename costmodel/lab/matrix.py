"""A weight matrix laid out for decoding: one token's product streams contiguous memory."""

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.work import Work


class Matrix:
    """W (D × F), seen as inputs × outputs whatever its layout; products with it are counted.

    Decode multiplies one row by W, so its time is that of reading W once. W is stored output by output: each output is
    one dot product over contiguous memory, and the next lies right behind it.

    Parameters
    ----------
    storage : (D·F,) contiguous memory to live in
    inputs : D
    outputs : step -> columns of the steps that read the same input, side by side; they sum to F

    Examples
    --------
    >>> w = Matrix(np.arange(6.0), 2, {"up": 2, "gate": 1})
    >>> w.values
    array([[0., 2., 4.],
           [1., 3., 5.]])
    >>> w.part("gate")
    array([[4.],
           [5.]])
    """

    def __init__(self, storage: np.ndarray, inputs: int, outputs: dict[str, int]) -> None:
        self.outputs = outputs
        self.values = storage.reshape(sum(outputs.values()), inputs).T

    def part(self, step: str) -> np.ndarray:
        """The columns of one step, a view that can be written to."""
        start = 0
        for name, columns in self.outputs.items():
            if name == step:
                return self.values[:, start : start + columns]
            start += columns
        raise CostModelError(f"no step {step!r} in this matrix; it holds {', '.join(self.outputs)}")

    def multiply(self, x: np.ndarray, work: Work) -> np.ndarray:
        """x·W, counted step by step.

        Parameters
        ----------
        x : (rows, D)
        work : where 2·rows·D·F FLOPs are added

        Returns
        -------
        (rows, F)
        """
        rows, inner = x.shape
        for step, columns in self.outputs.items():
            work.count(step, rows=rows, inner=inner, columns=columns)
        return np.vecdot(self.values.T, x[0])[np.newaxis] if rows == 1 else x @ self.values
