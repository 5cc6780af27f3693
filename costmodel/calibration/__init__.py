"""From the bound to a forecast: constants fitted to published measurements, and how wrong they were on unseen ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from costmodel.calibration.engine import AVERAGE, Engine, engine, families
from costmodel.calibration.setting import Setting
from costmodel.calibration.terms import OVERLAPPED, Term, interruption_terms, pass_terms, total_seconds

__all__ = [
    "AVERAGE", "OVERLAPPED", "Calibration", "Engine", "Setting", "Term", "engine", "families", "fitted",
    "interruption_terms", "pass_terms", "total_seconds",
]  # fmt: skip


@dataclass(frozen=True)
class Calibration:
    r"""Fitted constants, and how wrong they were on measurements they had not seen.

    Attributes
    ----------
    constants : by name; efficiencies as shares, overheads in seconds [s], offsets of software as factors
    error : {"hash": …, "source": …, "software": …}, each with "rows", "median" and "p90" of |predicted/measured − 1|

    Examples
    --------
    >>> unseen = {"hash": {"median": 0.07, "p90": 0.25}, "source": {"median": 0.22, "p90": 0.54}}
    >>> print(*Calibration({"bandwidth.16": 0.79}, unseen).stated_error.split(", "), sep="\n")
    half of such forecasts
    and nine of ten
    were within 7% and 25% on rows set aside
    22% and 54% on a source set aside
    """

    constants: Mapping[str, float]
    error: Mapping[str, Mapping[str, float]]

    @property
    def stated_error(self) -> str:
        """Its error in words."""
        parts = {"hash": "rows set aside", "source": "a source set aside"}
        found = (f"{self.error[k]['median']:.0%} and {self.error[k]['p90']:.0%} on {what}" for k, what in parts.items())
        return f"half of such forecasts, and nine of ten, were within {', '.join(found)}"


@lru_cache(maxsize=1)
def fitted() -> Calibration:
    """The constants that come with the package (`python -m costmodel.evidence` fits them anew).

    Returns
    -------
    Calibration, read once

    Examples
    --------
    >>> 0.5 < fitted().constants["bandwidth.16"] < 1  # share of the recorded bandwidth that 16-bit weights get
    True
    """
    import tomllib

    record = tomllib.loads((files("costmodel") / "data" / "calibration.toml").read_text(encoding="utf-8"))
    return Calibration(record["constants"], record["error"])
