"""Accelerators: dense peaks per dtype, memory bandwidth and capacity, each record with its source and date."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date as Date
from functools import lru_cache
from importlib.resources import files
from math import inf

from costmodel.common.errors import CostModelError, resolve_name
from costmodel.exact import SMALLEST, Number, amount, is_plain, ratio
from costmodel.symbols import capacity, memory_bandwidth, peak


@dataclass(frozen=True)
class Accelerator:
    """One accelerator, or several taken as one; any figure may be a symbol.

    Attributes
    ----------
    name : short name (slug)
    capacity : memory as marketed, decimal [byte]; what a driver reports is `driver_bytes`
    bandwidth : memory bandwidth [byte/s]
    peaks : dense peak per dtype [FLOP/s], fp32 accumulation for floating point
    fp16_accumulate : dense fp16 peak with 16-bit accumulation, where it differs [FLOP/s]
    interconnect : per device, one direction [byte/s]
    tdp : power [W]
    devices : how many this record adds up
    """

    name: str
    capacity: Number
    bandwidth: Number
    peaks: Mapping[str, Number]
    title: str = ""
    driver_bytes: int | None = None
    fp16_accumulate: int | None = None
    interconnect: int | None = None
    tdp: int | None = None
    source: str = ""
    date: Date | None = None
    note: str = ""
    devices: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.peaks, Mapping):
            raise CostModelError(f"peaks of {self.name} must map dtypes to FLOP/s, got {self.peaks!r}")
        for name in ("capacity", "bandwidth", "fp16_accumulate", "interconnect", "tdp"):
            if getattr(self, name) is not None or name in ("capacity", "bandwidth"):
                amount(getattr(self, name), f"{name} of {self.name}", 0 if name == "capacity" else SMALLEST)
        for dtype, figure in self.peaks.items():
            amount(figure, f"{dtype} peak of {self.name}", at_most=inf)

    def peak_dtype(self, dtype: str = "bf16") -> str:
        """The dtype whose peak serves `dtype`: fp16 stands in for bf16 on devices without bf16 units.

        Raises
        ------
        CostModelError
            naming the dtypes on record when none serves
        """
        for candidate in (dtype, "fp16") if dtype == "bf16" else (dtype,):
            if candidate in self.peaks:
                return candidate
        raise CostModelError(f"{self.name} has no {dtype} peak on record; it has {', '.join(self.peaks)}")

    def peak(self, dtype: str = "bf16") -> Number:
        """Dense peak for a dtype [FLOP/s]."""
        return self.peaks[self.peak_dtype(dtype)]

    def ridge(self, dtype: str = "bf16") -> Number:
        """peak/bandwidth, the intensity at which compute and memory take equally long [FLOP/byte].

        Examples
        --------
        >>> round(accelerator("h100-sxm").ridge(), 2)
        295.22
        """
        return ratio(self.peak(dtype), self.bandwidth)

    def times(self, n: int) -> "Accelerator":
        """The ideal aggregate of n devices: n times everything, communication left out."""
        if is_plain(n) and not n >= 1:
            raise CostModelError(f"devices must be at least 1, got {n}")
        scaled = {dtype: value * n for dtype, value in self.peaks.items()}
        grown = {"capacity": self.capacity * n, "bandwidth": self.bandwidth * n, "devices": self.devices * n}
        return replace(self, name=f"{n} x {self.name}", peaks=scaled, **grown)


SYMBOLIC_ACCELERATOR = Accelerator("any accelerator", capacity, memory_bandwidth, {"bf16": peak})


@lru_cache(maxsize=1)
def accelerators() -> dict[str, Accelerator]:
    """Every accelerator on record, by name."""
    import tomllib  # only when a record is asked for: `import costmodel` stays light

    records = tomllib.loads((files("costmodel") / "data" / "hardware.toml").read_text(encoding="utf-8"))
    return {slug: Accelerator(slug, title=record.pop("name"), **record) for slug, record in records.items()}


def accelerator(name: str) -> Accelerator:
    """Look up an accelerator; other case and an unambiguous prefix are accepted.

    Raises
    ------
    UnknownNameError
        suggesting the near ones

    Examples
    --------
    >>> accelerator("H200").capacity
    141000000000
    """
    records = accelerators()
    return records[resolve_name("accelerator", name, records)]
