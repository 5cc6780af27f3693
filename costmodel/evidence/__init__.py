"""Evidence: published measurements against the bound and against a calibrated prediction."""

from costmodel.evidence.ideal import Bound, bound
from costmodel.evidence.table import Measurement, measurements, read

__all__ = ["Bound", "Measurement", "bound", "measurements", "read"]
