"""Safetensors headers: the exact bytes of a checkpoint, with the model that the config.json beside it describes.

The format: 8 bytes of length, then a JSON object {tensor: {dtype, shape, data_offsets}}, then the data.
"""

import os
import struct
from dataclasses import replace
from fractions import Fraction
from math import prod
from pathlib import Path

from costmodel.common.errors import ConfigError
from costmodel.model import WIDEST, Model
from costmodel.zoo.config import model_from_config
from costmodel.zoo.json_file import describe, parse_object, read_object

LONGEST_HEADER = 100 * 2**20  # as the reference reader has it


def read_header(path: Path) -> dict[str, tuple[int, int]]:
    """{tensor: (numbers, bytes)} of one file.

    Raises
    ------
    ConfigError
        naming the file and what is wrong: cut short, no JSON, offsets that do not fit
    """
    try:
        with path.open("rb") as file:
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if not 2 <= length <= LONGEST_HEADER:
                raise ConfigError(f"{path}: not a safetensors file: its header would have {length:,} bytes")
            text = file.read(length)
        data = path.stat().st_size - 8 - length
        header = parse_object(text.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: its header is not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    return {name: _tensor(path, name, entry, data) for name, entry in header.items() if name != "__metadata__"}


def _tensor(path: Path, name: str, entry: object, data: int) -> tuple[int, int]:
    entry = entry if isinstance(entry, dict) else {}
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    counts = lambda x: isinstance(x, list) and all(type(n) is int and n >= 0 for n in x)  # noqa: E731
    if not counts(shape) or not counts(offsets) or len(offsets) != 2:
        raise ConfigError(f"{path}: tensor {name!r} needs a shape and two data_offsets, got {describe(entry)}")
    begin, end = offsets
    if not begin <= end <= data:
        raise ConfigError(f"{path}: tensor {name!r} lies at {begin:,} to {end:,}, outside the {data:,} bytes of data")
    return prod(shape), end - begin


def model_from_safetensors(path: str | Path, name: str | None = None) -> Model:
    """The model of the config.json beside a checkpoint, with the bytes that its tensors really take.

    Parameters
    ----------
    path : of a .safetensors file, or of the index of several
    name : what the Model is called; the path if not given

    Raises
    ------
    ConfigError
        when a file is missing, damaged, or not described by its configuration
    """
    path = Path(path)
    config = path.with_name("config.json")
    if not os.path.isfile(config):
        raise ConfigError(f"{path}: no config.json beside it, so the architecture is not known")
    model = model_from_config(read_object(config), str(config), name or str(path))
    if path.name.endswith(".json"):
        index = read_object(path)
        total = index.get("metadata", {}).get("total_size") if isinstance(index.get("metadata"), dict) else None
        if type(total) is not int or total <= 0:
            raise ConfigError(f"{path}: metadata.total_size must be a positive integer, got {describe(total)}")
        return replace(model, dtype=_bytes_per_weight(path, total, model))
    tensors = read_header(path)
    numbers, stored = (sum(column) for column in zip(*tensors.values(), strict=True)) if tensors else (0, 0)
    if not stored:
        raise ConfigError(f"{path}: no tensors in it")
    notes = model.notes
    if numbers != model.params:
        notes += (f"the file holds {numbers:,} numbers where the configuration counts {model.params:,}",)
    return replace(model, dtype=_bytes_per_weight(path, stored, model), notes=notes)


def _bytes_per_weight(path: Path, stored: int, model: Model) -> Fraction:
    if stored > WIDEST * model.params:
        raise ConfigError(
            f"{path}: {stored:,} bytes are too many for the {model.params:,} parameters of its config.json"
        )
    return Fraction(stored, model.params)
