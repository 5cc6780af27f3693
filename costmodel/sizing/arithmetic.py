"""What a deployment multiplies in, and how fast: the dtype asked for, or in a forecast the one that its weights get."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from costmodel.calibration import Setting
from costmodel.exact import Number, quotient
from costmodel.sizing.forecast import setting

if TYPE_CHECKING:
    from costmodel.hardware import Accelerator
    from costmodel.operation import Widths
    from costmodel.parallel import Parallel


class Arithmetic:
    """Mixed into Deployment: dtype and rate of its products."""

    if TYPE_CHECKING:  # the deployment's own
        accelerator: Accelerator
        parallel: Parallel
        compute: str
        calibrated: bool | str

        @property
        def widths(self) -> Widths:
            """As in `Memory`."""

    @cached_property
    def _setting(self) -> Setting:
        several = self.accelerator if self.parallel.tensor == 1 else self.accelerator.times(self.parallel.tensor)
        return setting(several, self.widths, self.calibrated)

    @property
    def arithmetic(self) -> str:
        """The dtype of the products: `compute`, fp16 where a device has no bf16; in a forecast what such weights get.

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), weights="fp8")
        >>> d.arithmetic, Deployment(d.model, d.accelerator, weights="fp8", calibrated="vllm").arithmetic
        ('bf16', 'fp8')
        """
        supposed = self._setting.arithmetic if self.calibrated else None
        return supposed or self.accelerator.peak_dtype(self.compute)

    @property
    def peak(self) -> Number:
        """Dense peak of one device in that arithmetic [FLOP/s].

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), weights="fp8")
        >>> d.peak / 1e12, Deployment(d.model, d.accelerator, weights="fp8", calibrated="vllm").peak / 1e12
        (989.0, 1979.0)
        """
        supposed = self._setting.peak if self.calibrated else None
        return self.accelerator.peak(self.compute) if supposed is None else quotient(supposed, self.parallel.tensor)
