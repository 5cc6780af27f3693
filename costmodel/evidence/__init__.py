"""Evidence: published measurements against the bound and against a calibrated forecast."""

from costmodel.evidence.ideal import Bound, bound
from costmodel.evidence.predict import forecast
from costmodel.evidence.report import Report, Verdict, against_the_bound, check
from costmodel.evidence.table import Measurement, measurements, read

__all__ = [
    "Bound", "Measurement", "Report", "Verdict", "against_the_bound", "bound", "check", "forecast", "measurements",
    "read",
]  # fmt: skip
