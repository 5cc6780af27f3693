"""Damage to files: bytes flipped, cut, repeated or overwritten with lengths that lie."""

import atexit
import os
import struct
import tempfile
from functools import lru_cache
from pathlib import Path
from random import Random

LIES = (0, 1, 2, 7, 31, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
JUNK = (
    "", " ", "0", "-1", "1e3", "1e400", "nan", "inf", "-inf", "1.5", "1_000", "9" * 30, "9" * 5000, "٣", "²", "é",
    "\x00",
    "\ufeff", "\u2028", '"', '""', "'", ",", ";", "\n", "\r", "\t", "[", "[" * 3000, "{", "}", "null", "true", "x", "-",
    "1:2", "=", "\ud7ff", "0x10", "+5", "--", "%s", "{0}",
)  # fmt: skip


@lru_cache(maxsize=1)
def _folder() -> tempfile.TemporaryDirectory:
    memory = Path("/dev/shm")  # where there is one: a million files need no disk
    folder = tempfile.TemporaryDirectory(prefix="fuzzed", dir=memory if os.access(memory, os.W_OK) else None)
    atexit.register(folder.cleanup)
    return folder


def file_with(content: bytes | str, name: str) -> Path:
    """A file of that content in a folder of this process."""
    path = Path(_folder().name) / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


def damaged_bytes(rng: Random, data: bytes, times: int) -> bytes:
    """Bytes changed, cut, repeated, dropped, or overwritten with a length."""
    found = bytearray(data)
    for _ in range(times):
        if not found:
            break
        at, what = rng.randrange(len(found)), rng.random()
        if what < 0.3:
            found[at] ^= 1 << rng.randrange(8)
        elif what < 0.5:
            lie = struct.pack("<Q", rng.choice(LIES))
            found[at : at + 8] = lie
        elif what < 0.65:
            found[at : at + 4] = struct.pack("<I", rng.choice(LIES) % 2**32)
        elif what < 0.75:
            del found[at:]
        elif what < 0.85:
            del found[at : at + rng.randint(1, 40)]
        elif what < 0.95:
            found[at:at] = found[at : at + rng.randint(1, 200)] * rng.choice((1, 2, 50))
        else:
            found[at:at] = rng.randbytes(rng.randint(1, 64))
    return bytes(found)


def damaged_text(rng: Random, text: str, times: int) -> str:
    """Text cut, repeated, or with junk in it."""
    for _ in range(times):
        at, what = rng.randrange(len(text) + 1), rng.random()
        if what < 0.15:
            text = text[:at]
        elif what < 0.4:
            text = text[:at] + text[at + rng.randint(1, 10) :]
        elif what < 0.5:
            text = text[:at] + text[at : at + rng.randint(1, 300)] * rng.choice((1, 2, 20)) + text[at:]
        else:
            text = text[:at] + rng.choice(JUNK) + text[at:]
    return text
