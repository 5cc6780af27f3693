"""GGUF files: the header read here, bounds checked and without other packages; tensors dequantized by `gguf`.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian).
"""

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from costmodel.common.errors import ConfigError
from costmodel.common.extras import needed

# metadata value type -> struct code; 8 is a string, 9 an array
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
# tensor type -> (numbers in a block, bytes of a block), as ggml.h defines them
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 16: (256, 66), 17: (256, 74),
    18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2),
    26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip


@dataclass(frozen=True)
class GGUFTensor:
    """One tensor of the file: its shape, rows first; ggml's number for its type; its first byte in the file."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """What it takes in the file, scales included [byte].

        Raises
        ------
        ConfigError
            for a type that is not on record, or a row that does not fill its blocks
        """
        numbers, size = BLOCKS.get(self.kind, (0, 0))
        if not numbers or self.shape[-1] % numbers:
            raise ConfigError(f"tensor {self.name!r} of shape {self.shape} cannot be stored as ggml type {self.kind}")
        return self.size // numbers * size


@dataclass(frozen=True)
class GGUFFile:
    """A GGUF header: metadata as Python values, and where each tensor is.

    Attributes
    ----------
    path : of the file
    metadata : key -> number, string, bool or list of them
    tensors : name -> GGUFTensor
    """

    path: Path
    metadata: dict[str, object]
    tensors: dict[str, GGUFTensor]

    @property
    def params(self) -> int:
        """Σ of the tensors' sizes."""
        return sum(tensor.size for tensor in self.tensors.values())

    @property
    def weight_bytes(self) -> int:
        """Σ of what the tensors take in the file [byte]."""
        try:
            return sum(tensor.nbytes for tensor in self.tensors.values())
        except ConfigError as error:
            raise ConfigError(f"{self.path}: {error}") from error

    def array(self, name: str) -> np.ndarray:
        """A tensor as float32, rows first, dequantized.

        Raises
        ------
        ConfigError
            for an unknown name, a type that cannot be dequantized, data beyond the end, or a value that is not finite
        CostModelError
            without the package `gguf`
        """
        if name not in self.tensors:
            raise ConfigError(f"{self.path}: no tensor {name!r}; it has {', '.join(list(self.tensors)[:5])}, …")
        tensor = self.tensors[name]
        gguf, quants = (needed(m, "reading GGUF weights", "lab") for m in ("gguf", "gguf.quants"))
        try:
            kind = gguf.GGMLQuantizationType(tensor.kind)
            stored = quants.quant_shape_to_byte_shape(tensor.shape, kind)
            data = np.memmap(self.path, np.uint8, "r", tensor.start, stored)
            with np.errstate(all="ignore"):  # what is not finite is refused below, without a warning before
                values = quants.dequantize(data, kind).astype(np.float32, copy=False)
        except (ValueError, NotImplementedError, KeyError) as error:
            raise ConfigError(f"{self.path}: tensor {name!r} cannot be read: {error}") from error
        if not np.isfinite([values.min(), values.max()]).all():
            raise ConfigError(f"{self.path}: tensor {name!r} has values that are not finite")
        return values.reshape(tensor.shape)


def read_gguf(path: str | Path) -> GGUFFile:
    """Read the header of a GGUF file.

    Raises
    ------
    ConfigError
        naming the file and what is wrong: not there, not GGUF, another version, damaged or cut short
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ConfigError(f"{path}: not a GGUF file; it must begin with the letters GGUF")
        cursor = _Cursor(np.memmap(path, np.uint8, "r").data)
        metadata, tensors = _header(cursor)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path, or ConfigError
        if isinstance(error, ConfigError):
            raise
        if isinstance(error, _DamagedError):
            raise ConfigError(f"{path}: damaged or foreign GGUF: {error} (byte {error.at:,})") from error
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return GGUFFile(path, metadata, tensors)


class _DamagedError(ValueError):
    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class _Cursor:
    """Reads values one after another and never past the end."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 4

    def fail(self, message: str) -> _DamagedError:
        return _DamagedError(message, self.at)

    def take(self, code: str) -> tuple[Any, ...]:
        size = struct.calcsize("<" + code)
        if self.at + size > len(self.data):
            raise self.fail("the file ends early")
        values = struct.unpack_from("<" + code, self.data, self.at)
        self.at += size
        return values

    def number(self, code: str) -> int:
        return self.take(code)[0]

    def string(self) -> str:
        length = self.number("Q")
        if length > len(self.data) - self.at:
            raise self.fail(f"a string of {length:,} bytes passes the end of the file")
        raw = bytes(self.data[self.at : self.at + length])
        self.at += length
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.fail("a string is not UTF-8") from None

    def value(self, kind: int) -> object:
        if kind in SCALARS:
            return self.number(SCALARS[kind])
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            raise self.fail(f"unknown value type {kind}")
        inner, count = self.take("IQ")
        if count > len(self.data) - self.at:
            raise self.fail(f"an array of {count:,} values passes the end of the file")
        if inner in SCALARS:
            return list(self.take(f"{count}{SCALARS[inner]}"))
        if inner != STRING:
            raise self.fail(f"arrays of type {inner} are not supported")
        return [self.string() for _ in range(count)]


def _header(cursor: _Cursor) -> tuple[dict[str, object], dict[str, GGUFTensor]]:
    version = cursor.number("I")
    if version not in (2, 3):
        raise cursor.fail(f"version {version} is not supported; 2 and 3 are")
    tensor_count, value_count = cursor.take("QQ")
    metadata: dict[str, object] = {}
    for _ in range(value_count):
        key = cursor.string()
        if key in metadata:
            raise cursor.fail(f"key {key!r} is given twice")
        metadata[key] = cursor.value(cursor.number("I"))
    found: dict[str, tuple[tuple[int, ...], int, int]] = {}
    for _ in range(tensor_count):
        name, dimensions = cursor.string(), cursor.number("I")
        if name in found or not 1 <= dimensions <= 4:
            fault = "is given twice" if name in found else f"has {dimensions} dimensions; 1 to 4 are possible"
            raise cursor.fail(f"tensor {name!r} {fault}")
        found[name] = cursor.take(f"{dimensions}Q")[::-1], *cursor.take("IQ")
        if 0 in found[name][0]:
            raise cursor.fail(f"tensor {name!r} is empty")
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise cursor.fail(f"general.alignment must be a positive integer, got {alignment!r}")
    start = -(-cursor.at // alignment) * alignment
    tensors = {name: GGUFTensor(name, shape, kind, start + offset) for name, (shape, kind, offset) in found.items()}
    _check_places(cursor, tensors, start, alignment)
    return metadata, tensors


def _check_places(cursor: _Cursor, tensors: dict[str, GGUFTensor], start: int, alignment: int) -> None:
    """The data fill the file one behind the other, as ggml demands: a gap or an overlap means a damaged header."""
    place = start
    for tensor in sorted(tensors.values(), key=lambda tensor: tensor.start):
        numbers, size = BLOCKS.get(tensor.kind, (8, 1))  # no type takes less than a bit per number
        end = tensor.start + -(-tensor.size // numbers) * size
        if end > len(cursor.data):
            raise cursor.fail(f"the data of tensor {tensor.name!r} passes the end of the file")
        if place and tensor.start != place:
            said = f"begin at byte {tensor.start:,}; what comes before them ends at {place:,}, padding included"
            raise cursor.fail(f"the data of tensor {tensor.name!r} {said}")
        place = -(-end // alignment) * alignment if tensor.kind in BLOCKS else 0  # after another type: anywhere
