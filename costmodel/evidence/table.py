"""A published measurement: what ran, on what, and how long it took; rows are read from CSV and refused by line."""

import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from costmodel.common.checks import amount, whole
from costmodel.common.errors import CostModelError
from costmodel.evidence.layout import COLUMNS, MOST, UNITS, from_published, is_published

PHASES = ("decode", "prefill", "request", "throughput", "gemm", "gemv", "attention", "speculative")
LARGEST = 1e30  # of a value, whatever its unit
MODEL_PHASES = ("decode", "prefill", "request", "throughput", "speculative")
SMALLEST = 1e-12  # of a value, likewise
LEAST = {"devices": 1, "weight_bits": 1, "cache_bits": 1, "batch": 1, "prompt": 0, "generated": 0}
COUNTS = ("devices", "batch", "prompt")


@dataclass(frozen=True)
class Measurement:
    """One row of evidence.

    Attributes
    ----------
    id, software, source, note : what it is called, what ran, where it was read, and what to know
    model, hardware, devices : what was served, and on how many of what
    weight_bits, cache_bits : nominal, per weight and cached element [bit]; None if not stated
    batch : sequences at once [sequence]; None if not stated
    prompt, generated : of each request [token]; None if not stated
    phase : decode (value: seconds per step), prefill (seconds to the first token), request (seconds of a whole one),
        throughput (generated tokens per second of all devices), gemm (FLOP/s), gemv (byte/s), attention (seconds of one
        kernel), speculative (seconds per token)
    value : in the unit of its phase [s, token/s, FLOP/s or byte/s]
    unit : that unit, as text
    excluded : why it is not an honest single-token measurement; empty for an honest one

    Raises
    ------
    CostModelError
        for another phase, a model or hardware that is no name, and a number out of range: bits, devices and a batch are
        at least 1, lengths at least 0, the value above 0

    Examples
    --------
    >>> row = measurements()[0]
    >>> row.prompt, row.generated, row.context  # a step attends to 5 + 200/2 tokens on average
    (5, 200.0, 105)
    """

    id: str
    model: str
    hardware: str
    devices: int
    weight_bits: float | None
    cache_bits: float | None
    batch: int | None
    prompt: int | None
    generated: float | None
    phase: str
    value: float
    unit: str
    software: str
    source: str
    excluded: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        _check_phase(self.phase)
        for name in ("model", "hardware"):
            if not isinstance(getattr(self, name), str):
                raise CostModelError(f"{name} must be a name, got {getattr(self, name)!r}")
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None or name == "devices":
                amount(name, value, least, MOST)
                if name in COUNTS:
                    whole(name, value, least)
        amount("value", self.value, SMALLEST, LARGEST)

    @property
    def honest(self) -> bool:
        """Whether it says how long one pass, request or kernel took, so that no bound may be beaten."""
        return not self.excluded

    @property
    def context(self) -> int:
        """Tokens that a decode step attends to on average: prompt + generated/2, at least 1; what is unstated is 0."""
        return max(1, int((self.prompt or 0) + (self.generated or 0) / 2))

    @property
    def published_decode(self) -> bool:
        """Whether it is a decode latency with its batch and lengths stated: what a forecast is judged on."""
        return self.honest and self.phase == "decode" and None not in (self.batch, self.prompt, self.generated)


def _check_phase(phase: str) -> None:
    if phase not in PHASES:
        raise CostModelError(f"phase {phase!r} is not known; give one of {', '.join(PHASES)}")


def _number(field: str, text: str, kind: type, *, least: float, needed: bool) -> float | None:
    if not text:
        if needed:
            raise CostModelError(f"{field} is empty; give a number")
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    most = LARGEST if field == "value" else MOST
    if not (least <= value < most) or (kind is int and value != int(value)):
        what = "a whole number" if kind is int else "a number"
        limit = f" and below {most:g}" if value >= most else ""
        raise CostModelError(f"{field} must be {what} of at least {least:g}{limit}, got {text[:40]!r}")
    return kind(value)


def _measurement(fields: Mapping[str, str]) -> Measurement:
    phase, unit = fields["phase"], fields["unit"]
    _check_phase(phase)
    if unit != UNITS[phase]:
        raise CostModelError(f"unit of {phase} must be {UNITS[phase]}, got {unit!r}")
    for name in ("id", "model", "hardware", "source"):
        if not fields[name]:
            raise CostModelError(f"{name} is empty; give a name")
    numbers: dict[str, Any] = {
        "devices": _number("devices", fields["devices"], int, least=1, needed=True),
        "weight_bits": _number("weight_bits", fields["weight_bits"], float, least=1, needed=phase != "attention"),
        "cache_bits": _number("cache_bits", fields["cache_bits"], float, least=1, needed=phase == "attention"),
        "batch": _number("batch", fields["batch"], int, least=1, needed=phase not in ("throughput", "gemm")),
        "prompt": _number(
            "prompt", fields["prompt"], int, least=0, needed=phase in ("prefill", "request", "attention")
        ),
        "generated": _number(
            "generated",
            fields["generated"],
            float,
            least=int(phase == "throughput"),
            needed=phase in ("request", "throughput"),
        ),
        "value": _number("value", fields["value"], float, least=SMALLEST, needed=True),
    }
    if 0 < (numbers["generated"] or 0) < 1:
        raise CostModelError(f"generated must be 0 or a number of at least 1, got {fields['generated']!r}")
    return Measurement(**(dict(fields) | numbers))


def _lines(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        published = is_published(header)
        if not published and (missing := [name for name in COLUMNS if name not in header]):
            raise CostModelError(f"{path}, line 1: no column {missing[0]!r}; the columns are {', '.join(COLUMNS)}")
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(header):
                problem = f"{len(cells)} cells for {len(header)} columns"
                raise CostModelError(f"{path}, line {reader.line_num}: {problem}")
            fields = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
            yield reader.line_num, fields


def read(path: str | os.PathLike[str]) -> tuple[Measurement, ...]:
    r"""Measurements of a CSV file, in this table's columns or in those of a published list (metric, value, unit, …).

    Parameters
    ----------
    path : a CSV file in UTF-8 whose first line names the columns

    Returns
    -------
    tuple of Measurement, in the order of the file

    Raises
    ------
    CostModelError
        naming the file, the line, the cell and what would be accepted

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> row = "x-1,llama-3-8b,h100-sxm,1,16,16,1,100,100,decode,0.007,s,mine,here,,"
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "mine.csv").write_text(",".join(COLUMNS) + "\n" + row)
    ...     found = read(Path(folder, "mine.csv"))
    >>> found[0].model, found[0].value, found[0].honest
    ('llama-3-8b', 0.007, True)
    """
    path = Path(path)
    found: dict[str, Measurement] = {}
    try:
        for line, fields in _lines(path):
            try:
                fields = from_published(fields) if "metric" in fields else {name: fields[name] for name in COLUMNS}
                row = _measurement(fields)
                if row.id in found:
                    raise CostModelError(f"id {row.id!r} occurs twice; ids are unique")
            except CostModelError as error:
                raise CostModelError(f"{path}, line {line}: {error}") from None
            found[row.id] = row
    except CostModelError:
        raise
    except (OSError, ValueError, csv.Error) as error:  # ValueError: not UTF-8, or a NUL byte in the path
        raise CostModelError(f"{path} cannot be read as CSV: {error}") from None
    return tuple(found.values())


@lru_cache(maxsize=1)
def measurements() -> tuple[Measurement, ...]:
    """The project's own table of published measurements.

    Returns
    -------
    tuple of Measurement, read once

    Examples
    --------
    >>> measurements()[0].id, measurements()[0].model, measurements()[0].hardware
    ('gptfast-001', 'llama-2-7b', 'a100-sxm-80gb')
    """
    with as_file(files("costmodel") / "data" / "evidence.csv") as path:
        return read(path)
