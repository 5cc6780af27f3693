"""Fit the constants to the table, and hold parts of it back to see how wrong they are on what they have not seen."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from math import log
from typing import Any

import numpy as np

from costmodel.calibration import AVERAGE, OVERLAPPED, engine, families
from costmodel.evidence.predict import forecastable, measured_seconds, passes
from costmodel.evidence.table import Measurement, measurements

# What a constant is expected to be before any row is seen, and how far (as a factor e^spread) it may reasonably stray.
PRIORS = {
    "bandwidth.16": (0.85, 0.2), "bandwidth.8": (0.8, 0.2), "bandwidth.4": (0.65, 0.2), "bandwidth.fp4": (0.55, 0.2),
    "bandwidth.cache": (0.8, 0.2),
    "bandwidth.consumer": (1, 0.1), "bandwidth.graphics": (1, 0.1), "bandwidth.apple": (1, 0.1),
    "bandwidth.edge": (1, 0.1), "bandwidth.tpu": (1, 0.1),
    "compute.16": (0.65, 0.3), "compute.8": (0.5, 0.3), "compute.4": (0.4, 0.3), "compute.fp4": (0.4, 0.3),
    "layer.fused": (20e-6, 0.3), "layer.eager": (300e-6, 0.5), "step": (500e-6, 0.7), "sequence": (10e-6, 0.7),
    "all_reduce.fast": (8e-6, 0.3), "all_reduce.slow": (60e-6, 0.5), "all_reduce.growth": (1.5, 0.2),
    "link": (0.6, 0.3), "interruption": (1, 0.2),
}  # fmt: skip
# No rate above the recorded one: a share of at most 0.9, times a class of devices or a family of at most 1.1. (What a
# family gains on narrow weights has no limit here: a term caps it. Rates that lie on that cap would stall the fit.)
MOST = {f"{kind}.{p}": 0.9 for kind in ("bandwidth", "compute") for p in ("16", "8", "4", "fp4", "cache")}
MOST |= {f"bandwidth.{name}": 1.1 for name in ("consumer", "graphics", "apple", "edge", "tpu")}
MOST |= {f"compute.{family}": 1.1 for family in families()}
OFFSETS = {"overhead": 0.5, "narrow": 0.25, "compute": 0.3, "communication": 0.7}  # spread of a family around the rest
WEIGHTS = {"decode": 1.0, "prefill": 0.5, "request": 0.5, "throughput": 0.5}
NOISE = 0.08  # relative scatter of a published figure that is nobody's fault


def source_of(row: Measurement) -> str:
    """The publication a row belongs to: its id without the number.

    Parameters
    ----------
    row : a measurement

    Returns
    -------
    the id up to its last "-"

    Examples
    --------
    >>> source_of(measurements()[0]), measurements()[0].id
    ('gptfast', 'gptfast-001')
    """
    return row.id.rsplit("-", 1)[0]


def family_of(row: Measurement) -> str:
    """The family of its software; a name of its own for one that is in no family."""
    family = engine(row.software).family
    return row.software if family == AVERAGE else family


def fifth_of(row: Measurement) -> int:
    """SHA-256(id) mod 5: which fifth a row falls into, the same on every machine.

    Parameters
    ----------
    row : a measurement

    Returns
    -------
    0 to 4

    Examples
    --------
    >>> fifth_of(measurements()[0]), sorted({fifth_of(row) for row in measurements()})
    (1, [0, 1, 2, 3, 4])
    """
    return int(sha256(row.id.encode()).hexdigest(), 16) % 5


class Design:
    """Rows as arrays: every term's log seconds at unit constants, and the powers of the constants as a matrix."""

    def __init__(self, rows: Sequence[Measurement], names: Sequence[str]) -> None:
        parts = [(i, each) for i, row in enumerate(rows) for each in passes(row) if each.times]
        terms = [(p, term) for p, (_, each) in enumerate(parts) for term in each.terms if term.base]
        self.rows, self.parts = len(rows), len(parts)
        self.row_of = np.array([i for i, _ in parts])
        self.times = np.array([float(each.times) for _, each in parts])
        self.part_of = np.array([p for p, _ in terms])
        self.squared = np.array([term.name in OVERLAPPED for _, term in terms])
        self.bases = np.log([float(term.base) for _, term in terms])
        powers = np.array([[float(term.powers.get(name, 0)) for name in names] for _, term in terms])
        self.shares, self.powers = np.minimum(powers, 0), np.maximum(powers, 0)  # what divides, and what multiplies

    def seconds(self, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forecast of each row under constants e^logs [s], and d log(forecast)/d logs."""
        slower, part, overlapped = self.shares @ logs, self.part_of, self.squared
        terms = np.exp(self.bases + self.powers @ logs + np.maximum(slower, 0))  # no rate above the recorded one
        together = np.sqrt(np.bincount(part[overlapped], terms[overlapped] ** 2, self.parts))
        rest = np.bincount(part[~overlapped], terms[~overlapped], self.parts)
        seconds = np.bincount(self.row_of, self.times * (together + rest), self.rows)
        share = self.times[part] * np.where(overlapped, terms**2 / np.maximum(together[part], 1e-30), terms)
        first = np.searchsorted(self.row_of[part], np.arange(self.rows))  # terms stand in the order of their rows
        slopes = np.add.reduceat(share[:, None] * (self.powers + (slower > 0)[:, None] * self.shares), first)
        return seconds, slopes / seconds[:, None]


@lru_cache(maxsize=1)
def training_rows() -> tuple[Measurement, ...]:
    """Every row of the project's table that can be forecast.

    Returns
    -------
    tuple of Measurement, selected once

    Examples
    --------
    >>> {row.phase for row in training_rows()} == {"decode", "prefill", "request", "throughput"}
    True
    """
    return tuple(row for row in measurements() if forecastable(row))


def _priors(rows: Iterable[Measurement]) -> dict[str, tuple[float, float]]:
    families = sorted({engine(row.software).family for row in rows} - {AVERAGE})
    return PRIORS | {f"{kind}.{family}": (1, spread) for family in families for kind, spread in OFFSETS.items()}


def fit(rows: Sequence[Measurement]) -> dict[str, float]:
    """Constants that fit the rows: robust least squares of log(forecast/measured), each constant held near its prior.

    A row's loss is soft-L1 of its log error over the noise; a constant's is (log(constant/prior)/spread)². A family
    with few rows therefore stays near the average of all software.

    Parameters
    ----------
    rows : measurements that can be forecast

    Returns
    -------
    constants by name: efficiencies as shares, overheads in seconds [s], offsets as factors

    Examples
    --------
    >>> found = fit(measurements()[:1])
    >>> found["bandwidth.tpu"], found["link"]  # what a row on one A100 says nothing about stays at its prior
    (1.0, 0.6)

    References
    ----------
    SciPy's `least_squares` (https://docs.scipy.org/doc/scipy/reference/generated/scipy.optimize.least_squares.html);
    maximum a posteriori with normal priors on logarithms.
    """
    from scipy.optimize import least_squares

    priors = _priors(rows)
    names = list(priors)
    means, spreads = np.array([log(m) for m, _ in priors.values()]), np.array([s for _, s in priors.values()])
    design, target = Design(rows, names), np.log([measured_seconds(row) for row in rows])
    weights = np.sqrt([WEIGHTS[row.phase] for row in rows])

    def residuals(logs: np.ndarray) -> np.ndarray:
        scaled = (np.log(design.seconds(logs)[0]) - target) / NOISE
        return np.concatenate([weights * _soft(scaled), (logs - means) / spreads])

    def slopes(logs: np.ndarray) -> np.ndarray:
        seconds, each = design.seconds(logs)
        scaled = (np.log(seconds) - target) / NOISE
        steep = np.abs(scaled / np.sqrt(1 + scaled**2)) / np.maximum(np.abs(_soft(scaled)), 1e-12)
        return np.vstack([(weights * np.where(np.abs(scaled) < 1e-6, 1, steep) / NOISE)[:, None] * each, held])

    held, most = np.diag(1 / spreads), np.log([MOST.get(name, np.inf) for name in names])
    found = least_squares(residuals, np.minimum(means, most - 1e-3), slopes, bounds=(-np.inf, most), max_nfev=200)
    return {name: float(f"{np.exp(value):.6g}") for name, value in zip(names, found.x, strict=True)}


def _soft(x: np.ndarray) -> np.ndarray:
    """sign(x)·√(2(√(1 + x²) − 1)): its square is the soft-L1 loss, x² near 0 and 2|x| far out."""
    return np.sign(x) * np.sqrt(2 * (np.sqrt(1 + x**2) - 1))


def errors(rows: Sequence[Measurement], constants: Mapping[str, float]) -> np.ndarray:
    """|forecast/measured − 1| of each row.

    Parameters
    ----------
    rows : measurements that can be forecast
    constants : by name; one that is not given counts as 1

    Returns
    -------
    (rows,), as shares of what was measured

    Examples
    --------
    >>> from costmodel.calibration import fitted
    >>> bool((errors(measurements()[:2], fitted().constants) < 0.2).all())
    True
    """
    names = list(constants)
    seconds = Design(rows, names).seconds(np.log([constants[name] for name in names]))[0]
    return np.abs(seconds / np.array([measured_seconds(row) for row in rows]) - 1)


def held_out(group: Callable[[Measurement], Any], groups: Iterable[Any] | None = None) -> dict[Any, np.ndarray]:
    """Errors on each group's decode rows with batch and lengths stated, under constants fitted to all other groups.

    Parameters
    ----------
    group : what a row belongs to, such as `source_of`
    groups : which of the groups to hold out, each in turn; None for every one

    Returns
    -------
    {group: (rows,) of |forecast/measured − 1|}, without groups that have no such decode row; every group costs a fit

    Examples
    --------
    >>> held_out(source_of, groups=["trtllm05ttft"])  # a source of prefills alone: nothing to judge
    {}
    """
    rows, found = training_rows(), {}
    for name in sorted({group(row) for row in rows}) if groups is None else groups:
        judged = [row for row in rows if group(row) == name and row.published_decode]
        if judged:
            found[name] = errors(judged, fit([row for row in rows if group(row) != name]))
    return found


def summary(found: Iterable[np.ndarray]) -> dict[str, float]:
    """Rows, median and 90th percentile of errors.

    Parameters
    ----------
    found : arrays of |forecast/measured − 1|, pooled

    Returns
    -------
    {"rows": how many, "median": …, "p90": …}, the last two as shares, to four decimals

    Examples
    --------
    >>> summary([np.array([0.1, 0.2]), np.array([0.3])])
    {'rows': 3, 'median': 0.2, 'p90': 0.28}
    """
    every = np.concatenate(list(found))
    median, p90 = (float(f"{np.quantile(every, q):.4f}") for q in (0.5, 0.9))
    return {"rows": len(every), "median": median, "p90": p90}
