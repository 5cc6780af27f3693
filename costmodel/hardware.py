"""Accelerators: dense peaks per dtype, memory bandwidth and capacity, each record with its source and date."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import date as Date
from functools import lru_cache
from importlib.resources import files
from math import inf

from costmodel.common.errors import CostModelError, resolve_name
from costmodel.exact import SMALLEST, Number, amount, ratio, whole
from costmodel.symbols import capacity, memory_bandwidth, peak

GROWING = ("capacity", "bandwidth", "driver_bytes", "fp16_accumulate", "devices")  # with the number of devices


@dataclass(frozen=True)
class Accelerator:
    """One accelerator, or several taken as one; any figure may be a symbol.

    Attributes
    ----------
    name, title : short name (slug), and the name in full
    capacity : memory as marketed, decimal [byte]; what a driver reports is `driver_bytes`
    bandwidth : memory bandwidth [byte/s]
    peaks : dense peak per dtype [FLOP/s], fp32 accumulation for floating point
    driver_bytes : memory that the driver reports, where known [byte]
    fp16_accumulate : dense fp16 peak with 16-bit accumulation, where it differs [FLOP/s]
    interconnect : per device, one direction [byte/s]; None where not on record
    tdp : power [W]; None where not on record
    source, date, note : where the figures were read, when, and what they leave in doubt
    devices : number of devices that this record adds up

    Raises
    ------
    CostModelError
        for peaks that are no mapping, and a figure that is neither a symbol nor a number from 1e-15 to 1e45 (a capacity
        may be 0, a peak infinite)

    Examples
    --------
    >>> card = Accelerator("card", capacity=80 * 10**9, bandwidth=2 * 10**12, peaks={"bf16": 300 * 10**12})
    >>> card.ridge(), card.times(2).capacity
    (150.0, 160000000000)
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

        Parameters
        ----------
        dtype : name of the format of the arithmetic

        Returns
        -------
        a key of `peaks`

        Raises
        ------
        CostModelError
            naming the dtypes on record when none serves

        Examples
        --------
        >>> accelerator("h100-sxm").peak_dtype(), accelerator("t4").peak_dtype()
        ('bf16', 'fp16')
        """
        for candidate in (dtype, "fp16") if dtype == "bf16" else (dtype,):
            if candidate in self.peaks:
                return candidate
        raise CostModelError(f"{self.name} has no {dtype} peak on record; it has {', '.join(self.peaks)}")

    def peak(self, dtype: str = "bf16") -> Number:
        """Dense peak for a dtype [FLOP/s].

        Parameters
        ----------
        dtype : name of the format of the arithmetic

        Returns
        -------
        the peak on record [FLOP/s]; of fp16 where a device has no bf16 units

        Raises
        ------
        CostModelError
            naming the dtypes on record when none serves

        Examples
        --------
        >>> accelerator("h100-sxm").peak(), accelerator("h100-sxm").peak("fp8")
        (989000000000000, 1979000000000000)
        """
        return self.peaks[self.peak_dtype(dtype)]

    def ridge(self, dtype: str = "bf16") -> Number:
        """peak/bandwidth, the intensity at which compute and memory take equally long [FLOP/byte].

        Parameters
        ----------
        dtype : name of the format of the arithmetic

        Returns
        -------
        the ridge [FLOP/byte]

        Raises
        ------
        CostModelError
            naming the dtypes on record when none serves

        Examples
        --------
        >>> round(accelerator("h100-sxm").ridge(), 2)  # 989 TFLOP/s over 3.35 TB/s
        295.22

        References
        ----------
        Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009.
        """
        return ratio(self.peak(dtype), self.bandwidth)

    def times(self, n: int) -> "Accelerator":
        """The ideal aggregate of n devices: n times what they do and hold, communication left out.

        Parameters
        ----------
        n : number of devices, or a symbol

        Returns
        -------
        Accelerator with n times the peaks, bandwidth and capacity (as marketed and as reported); interconnect and
        power stay those of one device

        Raises
        ------
        CostModelError
            for n that is neither a symbol nor a whole number of at least 1

        Examples
        --------
        >>> eight = accelerator("h100-sxm").times(8)
        >>> eight.capacity, eight.ridge() == accelerator("h100-sxm").ridge()
        (640000000000, True)
        """
        n = whole(n, "devices")
        scaled = {dtype: value * n for dtype, value in self.peaks.items()}
        figures = {name: getattr(self, name) for name in GROWING}
        grown = {name: figure * n for name, figure in figures.items() if figure is not None}
        return replace(self, name=f"{n} x {self.name}", peaks=scaled, **grown)


SYMBOLIC_ACCELERATOR = Accelerator("any accelerator", capacity, memory_bandwidth, {"bf16": peak})


@lru_cache(maxsize=1)
def _on_record() -> dict[str, Accelerator]:
    import tomllib  # only when a record is asked for: `import costmodel` stays light

    records = tomllib.loads((files("costmodel") / "data" / "hardware.toml").read_text(encoding="utf-8"))
    return {slug: Accelerator(slug, title=record.pop("name"), **record) for slug, record in records.items()}


def accelerators() -> dict[str, Accelerator]:
    """Every accelerator on record, by name; the reader's own, to keep or to change.

    Returns
    -------
    {short name: Accelerator}

    Examples
    --------
    >>> accelerators()["h100-sxm"].bandwidth
    3350000000000
    """
    return deepcopy(_on_record())


def accelerator(name: str) -> Accelerator:
    """Look up an accelerator; other case and an unambiguous prefix are accepted.

    Parameters
    ----------
    name : short name, such as "h100-sxm"

    Returns
    -------
    Accelerator on record

    Raises
    ------
    UnknownNameError
        suggesting the near ones

    Examples
    --------
    >>> accelerator("H200").capacity
    141000000000
    """
    return deepcopy(_on_record()[resolve_name("accelerator", name, _on_record())])
