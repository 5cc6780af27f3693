"""Speeds of what-if: a sweep against its bare compiled formulas, and a hundred million points in bounded memory."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from costmodel import Deployment, accelerator, load
from costmodel.evaluate import compile_formulas
from costmodel.symbols import B, S
from tests.benchmarks.side_by_side import Result, faster, timed

SIDE = 1000
CHUNKED = 100_000_000
MEMORY = 4e9  # bytes that the chunked sweep may take, the interpreter and its libraries included
PROGRAM = """
from pathlib import Path
from costmodel import Deployment, accelerator, load
d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
found = d.sweep(batch=range(1, 10_001), context=range(10, 100_001, 10), chunks=1_000_000)
best = float(found.throughput.where(found.memory <= 80e9).max())
assert found.latency.size == 100_000_000 and best > 0
peak = next(line for line in Path('/proc/self/status').read_text().splitlines() if line.startswith('VmHWM'))
print(1024 * int(peak.split()[1]))  # ru_maxrss would count the process that started this one
"""


def million_points() -> Iterator[Result]:
    """A million labelled points, against the same formulas compiled and called on bare arrays."""
    d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    batch, context = range(1, SIDE + 1), np.arange(1, SIDE + 1) * 100
    bare = compile_formulas(list(d.formulas.values()), (B, S))
    ours = lambda: d.sweep(batch=batch, context=context)  # noqa: E731
    other = lambda: bare(np.arange(1, SIDE + 1)[:, None], context[None])  # noqa: E731
    for mine, theirs in zip(ours().values(), other(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    yield faster("10^6 points through sweep", ours, other, "the bare compiled formulas", times=0.5)


def in_chunks() -> Iterator[Result]:
    """The best throughput that fits among 10^8 points, through Dask: peak memory of the whole process."""
    peak: list[int] = []
    run = lambda: peak.append(int(subprocess.check_output([sys.executable, "-c", PROGRAM])))  # noqa: E731
    seconds = timed(run)
    share = peak[0] / MEMORY
    what = f"10^8 points through Dask: {peak[0] / 1e9:.2f} GB at most"
    yield Result(what, seconds, seconds, "4 GB", share, "≤ 1x of 4 GB", share <= 1)


def results() -> Iterator[Result]:
    """Every comparison of this file."""
    yield from million_points()
    yield from in_chunks()
