"""Rows against their bound and their forecast, one by one and in sum."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from costmodel.common.errors import CostModelError
from costmodel.evidence.ideal import Bound, bound
from costmodel.evidence.predict import forecast, forecastable, measured_seconds
from costmodel.evidence.table import MODEL_PHASES, Measurement, measurements, read


@dataclass(frozen=True)
class Verdict:
    """One row with its bound and its forecast.

    Attributes
    ----------
    row, bound : the measurement, and what could have been
    forecast : time that the calibrated model expects [s]; None where the row does not say enough

    Examples
    --------
    >>> from dataclasses import replace
    >>> row = replace(measurements()[0], value=2.0)
    >>> verdict = Verdict(row, Bound(measured=2.0, ideal=1.0, binds="memory"), forecast=2.5)
    >>> verdict.error, verdict.impossible
    (0.25, False)
    """

    row: Measurement
    bound: Bound
    forecast: float | None

    @property
    def error(self) -> float | None:
        """forecast/measured − 1."""
        return None if self.forecast is None else self.forecast / measured_seconds(self.row) - 1

    @property
    def impossible(self) -> bool:
        """Whether a row that should be honest beats the bound."""
        return self.row.honest and self.bound.beaten


@dataclass(frozen=True)
class Report:
    """Verdicts on rows, in their order.

    Attributes
    ----------
    verdicts : one for each row

    Examples
    --------
    >>> from dataclasses import replace
    >>> row = replace(measurements()[0], value=2.0)
    >>> report = Report((Verdict(row, Bound(2.0, 1.0), forecast=2.5), Verdict(row, Bound(2.0, 3.0), forecast=None)))
    >>> report.median_error, len(report.impossible)  # the second beats its bound
    (0.25, 1)
    """

    verdicts: tuple[Verdict, ...]

    @property
    def impossible(self) -> tuple[Verdict, ...]:
        """Honest rows that beat the bound: a wrong row, or a wrong record."""
        return tuple(verdict for verdict in self.verdicts if verdict.impossible)

    @property
    def median_error(self) -> float | None:
        """Median of |forecast/measured − 1| over decode rows with batch and lengths stated; None without any."""
        found = [abs(v.error) for v in self.verdicts if v.row.published_decode and v.error is not None]
        return median(found) if found else None


def _verdict(row: Measurement) -> Verdict:
    return Verdict(row, bound(row), forecast(row) if forecastable(row) else None)


def against_the_bound(
    rows: Iterable[Measurement] | None = None, *, model: str | None = None, hardware: str | None = None
) -> Report:
    """Verdicts on the table, or on rows of yours.

    Parameters
    ----------
    rows : measurements; the project's own table unless given
    model, hardware : keep rows whose name contains this, in any case

    Returns
    -------
    Report, with a verdict on each row kept

    Raises
    ------
    CostModelError
        when nothing is left

    Examples
    --------
    >>> report = against_the_bound(model="palm", hardware="tpu")
    >>> [(v.row.id, v.bound.binds, f"{v.bound.utilisation:.0%}") for v in report.verdicts if v.row.phase == "prefill"]
    [('pope-001', 'compute', '43%'), ('pope-003', 'compute', '75%')]
    """
    rows = measurements() if rows is None else tuple(rows)
    kept = [
        row
        for row in rows
        if (model is None or model.lower() in row.model) and (hardware is None or hardware.lower() in row.hardware)
    ]
    if not rows:
        raise CostModelError("the table has no rows")
    if not kept:
        asked = " and ".join(f"{k} {v!r}" for k, v in (("model", model), ("hardware", hardware)) if v is not None)
        served = [row for row in rows if row.phase in MODEL_PHASES]
        names = sorted({row.model for row in served if model} | {row.hardware for row in served if hardware})
        raise CostModelError(f"no row for {asked}; there are {', '.join(names) or 'none that serve a model'}")
    return Report(tuple(_verdict(row) for row in kept))


def check(path: str | os.PathLike[str]) -> Report:
    r"""Verdicts on any CSV file of the same columns: is a row impossible, and how far off is the forecast?

    Parameters
    ----------
    path : a CSV file, as `read` takes it

    Returns
    -------
    Report, with a verdict on each row

    Raises
    ------
    CostModelError
        naming the file, the line and the cell that cannot be right, or the name that is not known

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from costmodel.evidence.layout import COLUMNS
    >>> row = "x-1,llama-3-8b,h100-sxm,1,16,16,1,100,100,decode,0.004,s,mine,here,,"
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "mine.csv").write_text(",".join(COLUMNS) + "\n" + row)
    ...     report = check(Path(folder, "mine.csv"))
    >>> [verdict.row.id for verdict in report.impossible]  # 16 GB in 4 ms, from a memory that reads 3.35 TB/s
    ['x-1']
    """
    verdicts = []
    for row in read(path):
        try:
            verdicts.append(_verdict(row))
        except CostModelError as error:
            raise CostModelError(f"{path}, row {row.id!r}: {error}") from None
    return Report(tuple(verdicts))
