"""The textbooks' two simplifications: decoding waits for memory alone, prefilling for arithmetic alone."""

from costmodel.exact import Number
from costmodel.roofline import Timing


class MemoryBound(Timing):
    """The textbook's simplification of decoding: bytes/bandwidth, whatever the arithmetic."""

    @property
    def seconds(self) -> Number:
        """bytes/bandwidth [s]."""
        return self.memory_seconds

    @property
    def bound(self) -> str:
        """Memory, by assumption."""
        return "memory"


class ComputeBound(Timing):
    """The textbook's simplification of prefilling: flops/peak, whatever the traffic."""

    @property
    def seconds(self) -> Number:
        """flops/peak [s]."""
        return self.compute_seconds

    @property
    def bound(self) -> str:
        """Compute, by assumption."""
        return "compute"
