"""This machine as an accelerator record: how fast it reads memory and multiplies matrices, measured."""

import os
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.hardware import Accelerator
from costmodel.model import Model
from costmodel.sizing import Deployment

BYTES = 512 * 2**20  # read in turn: more than any cache holds
SIDE = 2048  # of the square matrices multiplied
DTYPES = {"fp32": np.float32, "fp64": np.float64}


@dataclass(frozen=True)
class Host:
    """What was measured, as records to size with.

    Attributes
    ----------
    together, one_core : accelerator records: every core at once, and reading with a single one
    cores : that this process may use
    """

    together: Accelerator
    one_core: Accelerator
    cores: int


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """Physical memory [byte].

    Raises
    ------
    CostModelError
        on systems that do not say
    """
    names = getattr(os, "sysconf_names", {})
    if not {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(names):
        raise CostModelError("this system does not state its memory; give capacity in bytes")
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _fastest(run: Callable[[], object], rounds: int) -> float:
    """The shortest of several runs [s]: what the machine can do when nothing disturbs it."""
    seconds = []
    for _ in range(rounds):
        start = perf_counter()
        run()
        seconds.append(perf_counter() - start)
    return min(seconds)


def read_bandwidth(cores: int, *, rounds: int = 5, size: int = BYTES) -> float:
    """bytes/seconds of adding up products of an array with itself, a slice of it per core [byte/s]."""
    slices = np.array_split(np.ones(size // 4, np.float32), cores)
    with ThreadPoolExecutor(cores) as pool:
        return size / _fastest(lambda: list(pool.map(lambda x: x @ x, slices)), rounds)


def multiply_peak(dtype: str, *, rounds: int = 5, side: int = SIDE) -> float:
    """2·n³/seconds of multiplying two square matrices with NumPy's BLAS [FLOP/s]."""
    a = np.full((side, side), 0.5, DTYPES[dtype])
    out = np.empty_like(a)
    return 2 * side**3 / _fastest(lambda: np.matmul(a, a, out=out), rounds)


def measure_host(*, rounds: int = 5, size: int = BYTES, side: int = SIDE, capacity: int | None = None) -> Host:
    """Measure this machine, in a few seconds.

    Parameters
    ----------
    rounds : runs of each kind; the fastest counts
    size, side : bytes read per run [byte], at least 2^20; rows of the matrices, at least 16
    capacity : memory [byte]; asked of the system unless given

    Returns
    -------
    Host, with bandwidth [byte/s] and peaks in fp32 and fp64 [FLOP/s]

    Raises
    ------
    CostModelError
        for rounds, size or side that is no whole number or too small, or a system that does not state its memory

    Examples
    --------
    >>> host = measure_host(rounds=1, size=2**20, side=16, capacity=16 * 10**9)
    >>> host.together.capacity, sorted(host.together.peaks), host.together.bandwidth >= host.one_core.bandwidth
    (16000000000, ['fp32', 'fp64'], True)
    """
    for name, value, least in (("rounds", rounds, 1), ("size", size, 2**20), ("side", side, 16)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise CostModelError(f"{name} must be a whole number of at least {least}, got {value!r}")
    cores, capacity = usable_cores(), memory_bytes() if capacity is None else capacity
    peaks = {dtype: multiply_peak(dtype, rounds=rounds, side=side) for dtype in DTYPES}
    one = read_bandwidth(1, rounds=rounds, size=size)
    every = max(one, read_bandwidth(cores, rounds=rounds, size=size)) if cores > 1 else one
    about: dict[str, Any] = {
        "source": "measured here by costmodel.host",
        "note": f"{cores} cores; NumPy {np.__version__}",
    }
    title = f"{platform.machine()} with {cores} core{'s' if cores > 1 else ''}"
    together = Accelerator("host", capacity, every, peaks, title=title, **about)
    return Host(together, Accelerator("host-one-core", capacity, one, peaks, title=title, **about), cores)


def ideal_seconds(model: Model, record: Accelerator, *, prompt: int, context: int) -> dict[str, float]:
    """The bound of a prefill and of a decode step of one sequence in fp32 [s], to hold measurements against.

    Parameters
    ----------
    model : what runs
    record : where, with a peak in fp32, such as one of `measure_host`
    prompt : tokens prefilled [token]
    context : S, tokens that the decode step attends to [token]

    Returns
    -------
    {"prefill": the whole prompt [s], "decode": one step [s]}

    Raises
    ------
    CostModelError
        for a record without a peak in fp32

    Examples
    --------
    >>> from costmodel.zoo import load
    >>> laptop = Accelerator("laptop", 16 * 10**9, 50e9, {"fp32": 1e12})
    >>> {name: f"{1e3 * s:.1f} ms" for name, s in
    ...     ideal_seconds(load("smollm2-135m"), laptop, prompt=256, context=256).items()}
    {'prefill': '56.7 ms', 'decode': '11.0 ms'}

    References
    ----------
    Williams et al., Roofline, CACM 52(4), 2009.
    """
    plan = Deployment(model, record, weights="fp32", cache="fp32", activations="fp32", compute="fp32")
    return {
        "prefill": float(plan.prefill(prompt).seconds),
        "decode": float(plan.decode(1, context).seconds_per_token),
    }
