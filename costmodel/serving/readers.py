"""Published request traces: the Azure 2023 CSV and the Mooncake JSONL. What is wrong is refused with file and line.

Patel et al., Splitwise, ISCA 2024 (Azure LLM inference trace 2023); Qin et al., Mooncake, FAST 2025.
"""

import csv
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.serving.trace import Trace
from costmodel.zoo.json_file import describe

AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
MOONCAKE_KEYS = ("timestamp", "input_length", "output_length", "hash_ids")
MOONCAKE_BLOCK = 512  # tokens of one hashed block
TICKS = 10**7  # the Azure clock counts 100 ns

Line = tuple[float, int, int, list[int] | None]


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CostModelError(f"{path}: cannot be read: it is not UTF-8 text") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = getattr(error, "strerror", None) or error
        raise CostModelError(f"{path}: cannot be read: {reason}") from error
    if not text.strip():
        raise CostModelError(f"{path}:1: the file is empty; a trace needs at least one request")
    return text.splitlines()


def _tokens(value: object, name: str, at_least: int = 1) -> int:
    try:
        count = int(value) if isinstance(value, str) else value
    except ValueError:
        count = None
    if not isinstance(count, int) or isinstance(count, bool) or not at_least <= count < 2**31:
        raise CostModelError(f"{name} must be a whole number from {at_least}, got {_shown(value)}")
    return count


def _shown(value: object) -> str:
    return describe(value) if isinstance(value, list | dict) else repr(str(value)[:40])


def _collected(path: Path, lines: Iterator[tuple[int, Callable[[], Line]]], blocks: bool) -> Trace:
    """The requests as a trace that begins at 0; every complaint carries file and line."""
    rows: list[Line] = []
    number = 1
    for number, read in lines:
        try:
            row = read()
        except CostModelError as error:
            raise CostModelError(f"{path}:{number}: {error}") from None
        if rows and row[0] < rows[-1][0]:
            raise CostModelError(f"{path}:{number}: time goes backwards, by {rows[-1][0] - row[0]:g} s")
        rows.append(row)
    if not rows:
        raise CostModelError(f"{path}:{number}: no request follows; a trace needs at least one")
    arrival, prompt, output, ids = (list(column) for column in zip(*rows, strict=True))
    return Trace(
        np.array(arrival) - arrival[0], np.array(prompt), np.array(output),
        blocks=ids if blocks else None, block_tokens=MOONCAKE_BLOCK,
    )  # fmt: skip


def _azure_seconds(text: str, day: list[datetime]) -> float:
    """Seconds since midnight of the first request's day; the clock has seven decimals."""
    whole, _, decimals = text.partition(".")
    try:
        moment = datetime.fromisoformat(whole)
        ticks = int(decimals.ljust(7, "0")) if decimals.isdigit() and len(decimals) <= 7 else 0 if not decimals else -1
    except ValueError:
        ticks = -1
    if ticks < 0:
        raise CostModelError(f"TIMESTAMP must read like 2023-11-16 18:15:46.6805900, got {text[:40]!r}")
    if not day:
        day.append(datetime(moment.year, moment.month, moment.day, tzinfo=moment.tzinfo))
    if (moment.tzinfo is None) != (day[0].tzinfo is None):
        raise CostModelError(f"TIMESTAMP must keep to one time zone, got {text[:40]!r}")
    seconds = moment - day[0]
    return ((seconds.days * 86_400 + seconds.seconds) * TICKS + ticks) / TICKS


def read_azure(path: str | Path) -> Trace:
    r"""Read an Azure 2023 trace: a CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens.

    Parameters
    ----------
    path : a CSV file in UTF-8; other columns are left out

    Returns
    -------
    Trace, whose first request arrives at 0

    Raises
    ------
    CostModelError
        with file and line, for a missing column, a bad number, time going backwards, an empty file, half a line

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> rows = ["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 09:00:00,100,10", "2023-11-16 09:00:01.5,200,20"]
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "azure.csv").write_text("\n".join(rows))
    ...     trace = read_azure(Path(folder, "azure.csv"))
    >>> trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist()
    ([0.0, 1.5], [100, 200], [10, 20])

    References
    ----------
    Patel et al., Splitwise, ISCA 2024.
    """
    path = Path(path)
    text = _lines(path)
    try:
        header, *records = ([field.strip() for field in fields] for fields in csv.reader(text))
    except csv.Error as error:
        raise CostModelError(f"{path}: cannot be read as CSV: {error}") from error
    missing = [name for name in AZURE_COLUMNS if name not in header]
    if missing:
        raise CostModelError(f"{path}:1: no column {missing[0]}; an Azure trace has {', '.join(AZURE_COLUMNS)}")
    places = [header.index(name) for name in AZURE_COLUMNS]
    day: list[datetime] = []

    def read(fields: list[str]) -> Line:
        if len(fields) != len(header):
            raise CostModelError(f"{len(fields)} fields where the header has {len(header)}: is the line whole?")
        when, prompt, output = (fields[place] for place in places)
        return (
            _azure_seconds(when, day), _tokens(prompt, "ContextTokens"), _tokens(output, "GeneratedTokens"), None
        )  # fmt: skip

    return _collected(path, ((number, partial(read, fields)) for number, fields in enumerate(records, 2)), blocks=False)


def _mooncake_line(text: str) -> Line:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # RecursionError: nested too deeply
        raise CostModelError("not a JSON object: is the line whole?") from None
    if not isinstance(found, dict):
        raise CostModelError(f"must be a JSON object, got {text[:40]!r}")
    missing = [name for name in MOONCAKE_KEYS if name not in found]
    if missing:
        raise CostModelError(f"no key {missing[0]}; a Mooncake trace has {', '.join(MOONCAKE_KEYS)}")
    when, prompt, output, ids = (found[name] for name in MOONCAKE_KEYS)
    prompt = _tokens(prompt, "input_length")
    if not isinstance(ids, list) or not all(isinstance(name, int) for name in ids):
        raise CostModelError(f"hash_ids must be a list of whole numbers, got {_shown(ids)}")
    if len(ids) != -(-prompt // MOONCAKE_BLOCK):
        raise CostModelError(f"{len(ids)} hash_ids for a prompt of {prompt} tokens in blocks of {MOONCAKE_BLOCK}")
    return _tokens(when, "timestamp", 0) / 1000, prompt, _tokens(output, "output_length"), ids


def read_mooncake(path: str | Path) -> Trace:
    r"""Read a Mooncake trace: one JSON object a line, with the blocks that prompts share.

    Parameters
    ----------
    path : a JSONL file in UTF-8, with timestamp [ms], input_length, output_length [token] and hash_ids, one for each
        block of 512 tokens of the prompt

    Returns
    -------
    Trace with blocks, whose first request arrives at 0

    Raises
    ------
    CostModelError
        with file and line, for a missing key, a bad number, time going backwards, an empty file, half a line

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> about = {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}
    >>> lines = [json.dumps(about), json.dumps(about | {"timestamp": 1500, "hash_ids": [0, 2]})]
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "mooncake.jsonl").write_text("\n".join(lines))
    ...     trace = read_mooncake(Path(folder, "mooncake.jsonl"))
    >>> trace.arrival.tolist(), trace.blocks
    ([0.0, 1.5], [[0, 1], [0, 2]])

    References
    ----------
    Qin et al., Mooncake, FAST 2025.
    """
    path = Path(path)
    return _collected(path, ((n, partial(_mooncake_line, line)) for n, line in enumerate(_lines(path), 1)), blocks=True)


READERS = {".csv": read_azure, ".jsonl": read_mooncake}


def read_trace(path: str | Path) -> Trace:
    r"""Read a trace by the ending of its name: .csv as Azure's, .jsonl as Mooncake's.

    Parameters
    ----------
    path : a file, as `read_azure` or `read_mooncake` takes it

    Returns
    -------
    Trace, whose first request arrives at 0

    Raises
    ------
    CostModelError
        for another ending, or what the reader refuses

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> rows = ["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 09:00:00,100,10", "2023-11-16 09:00:01.5,200,20"]
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "azure.csv").write_text("\n".join(rows))
    ...     trace = read_trace(Path(folder, "azure.csv"))
    >>> trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist()
    ([0.0, 1.5], [100, 200], [10, 20])
    """
    reader = READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise CostModelError(f"{path}: a trace is a .csv like Azure's or a .jsonl like Mooncake's")
    return reader(path)
