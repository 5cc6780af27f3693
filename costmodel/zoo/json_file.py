"""Reading a JSON object from a file nobody vouched for: every fault is a ConfigError that names the file."""

import json
import os
from pathlib import Path

from costmodel.common.errors import ConfigError

LARGEST_FILE = 16 * 2**20  # a configuration is a few kilobytes; a quantized one with a list of modules, a megabyte


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"field {twice!r} is given twice")
    return found


def parse_object(text: str, source: str) -> dict[str, object]:
    """Parse a JSON object.

    Parameters
    ----------
    text : the JSON
    source : the name that errors give it

    Raises
    ------
    ConfigError
        for an empty text, broken JSON, nesting too deep, numbers too long, a field given twice, or no object
    """
    if not text.strip():
        raise ConfigError(f"{source}: file is empty; a JSON object is expected")
    try:
        found = json.loads(text, object_pairs_hook=_no_duplicates)
    except json.JSONDecodeError as error:
        ends = "file ends early" if error.pos >= len(text.rstrip()) else error.msg
        raise ConfigError(f"{source}: not valid JSON: {ends} at line {error.lineno} column {error.colno}") from error
    except RecursionError:
        raise ConfigError(f"{source}: JSON is nested too deeply to be a configuration") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    except ValueError as error:  # an integer of more than 4,300 digits
        raise ConfigError(f"{source}: a number is too long to read ({str(error).split(';')[0]})") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{source}: config must be a JSON object, got {describe(found)}")
    return found


def is_gguf(path: Path) -> bool:
    """Whether a file is no JSON but GGUF, by its name or by its first bytes; not if it cannot be read."""
    if path.suffix == ".gguf" or not os.path.isfile(path):  # unlike Path's, it refuses no path
        return path.suffix == ".gguf"
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


def read_object(path: Path) -> dict[str, object]:
    """Read a JSON object from a file.

    Raises
    ------
    ConfigError
        naming the file, when it cannot be read or `parse_object` refuses it
    """
    if os.path.isdir(path):
        inside = path / "config.json"
        hint = f"; did you mean {inside}?" if os.path.isfile(inside) else "; give the config.json itself"
        raise ConfigError(f"{path} is a directory{hint}")
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise ConfigError(f"{path}: {size:,} bytes is too large for a configuration (at most {LARGEST_FILE:,})")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{path}: cannot be read: {reason}") from error
    return parse_object(text, str(path))


def describe(value: object) -> str:
    """A JSON value in JSON's own words, cut to a readable length.

    Examples
    --------
    >>> describe(None), describe("4096"), describe([1]), describe(7)
    ('null', 'the string "4096"', 'a list', 'number 7')
    """
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    kind = "the string " if isinstance(value, str) else "number "
    text = json.dumps(value) if isinstance(value, str) else repr(value)
    return kind + (text if len(text) <= 40 else text[:37] + "...")
