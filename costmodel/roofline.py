"""Ledger x accelerator -> seconds. A pass is bound by memory or by compute, whichever takes longer.

Two ways to add up a ledger, never mixed silently: perfect overlap takes one maximum over the whole pass; no overlap
takes a maximum for every row and sums them. (Williams, Waterman, Patterson, CACM 52(4), 2009.)
"""

from dataclasses import dataclass

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain, largest, ratio, smallest
from costmodel.hardware import Accelerator
from costmodel.operation import intensity
from costmodel.ops import Ledger


@dataclass(frozen=True)
class Timing:
    """How long work takes when arithmetic and memory traffic overlap perfectly.

    seconds = max(flops/peak, bytes/bandwidth) + communication, which waits for the arithmetic it shares.

    Attributes
    ----------
    flops, bytes : work [FLOP] and traffic [byte]
    peak, bandwidth : rates [FLOP/s], [byte/s]
    communication_seconds : time that devices spend talking to each other [s]
    hidden : whether that overlaps too: seconds is then the maximum of all three

    Examples
    --------
    >>> Timing(flops=2e12, bytes=1e9, peak=1e15, bandwidth=1e12).bound
    'compute'
    """

    flops: Number
    bytes: Number
    peak: Number
    bandwidth: Number
    communication_seconds: Number = 0
    hidden: bool = False

    @property
    def compute_seconds(self) -> Number:
        """flops/peak [s]."""
        return ratio(self.flops, self.peak)

    @property
    def memory_seconds(self) -> Number:
        """bytes/bandwidth [s]."""
        return ratio(self.bytes, self.bandwidth)

    @property
    def seconds(self) -> Number:
        """max(flops/peak, bytes/bandwidth), and the communication after or beside it [s]."""
        alone = largest(self.compute_seconds, self.memory_seconds)
        if self.hidden:
            return largest(alone, self.communication_seconds)
        return alone if self.communication_seconds == 0 else alone + self.communication_seconds

    @property
    def intensity(self) -> Number:
        """flops/bytes [FLOP/byte]."""
        value = intensity(self.flops, self.bytes)
        return float(value) if is_plain(value) else value

    @property
    def ridge(self) -> Number:
        """peak/bandwidth [FLOP/byte]."""
        return ratio(self.peak, self.bandwidth)

    @property
    def bound(self) -> str:
        """ "memory" below the ridge, "compute" at and above it; "communication" when that takes longer than both.

        Raises
        ------
        CostModelError
            when symbols leave it open
        """
        longer = self.compute_seconds >= self.memory_seconds
        if longer not in (True, False):
            raise CostModelError(
                f"what binds depends on {sorted(s.name for s in longer.free_symbols)}; give them values"
            )
        if self.communication_seconds != 0:
            others = largest(self.compute_seconds, self.memory_seconds)
            if (self.communication_seconds > others) == True:  # noqa: E712  (a relation of symbols is no bool)
                return "communication"
        return "compute" if longer else "memory"


def _rates(
    accelerator: Accelerator, dtype: str, compute_efficiency: Number, bandwidth_efficiency: Number
) -> tuple[Number, Number]:
    for name, value in (("compute_efficiency", compute_efficiency), ("bandwidth_efficiency", bandwidth_efficiency)):
        if is_plain(value) and not 0 < value <= 1:
            raise CostModelError(f"{name} must be above 0 and at most 1, got {value}")
    return accelerator.peak(dtype) * compute_efficiency, accelerator.bandwidth * bandwidth_efficiency


def timing(
    ledger: Ledger,
    accelerator: Accelerator,
    dtype: str = "bf16",
    *,
    compute_efficiency: Number = 1,
    bandwidth_efficiency: Number = 1,
) -> Timing:
    """Time a ledger under one maximum over the whole pass (perfect overlap).

    Parameters
    ----------
    ledger : rows with FLOPs and bytes
    accelerator : peaks and bandwidth
    dtype : which peak
    compute_efficiency, bandwidth_efficiency : measured shares of the two rates, 1 for the bound itself

    Returns
    -------
    Timing, with seconds [s], bound and intensity [FLOP/byte]
    """
    return Timing(ledger.flops, ledger.bytes, *_rates(accelerator, dtype, compute_efficiency, bandwidth_efficiency))


def overlapped_seconds(ledger: Ledger, accelerator: Accelerator, dtype: str = "bf16", **efficiency: Number) -> Number:
    """max(Σ flops/peak, Σ bytes/bandwidth) [s]: everything overlaps with everything."""
    return timing(ledger, accelerator, dtype, **efficiency).seconds


def serial_seconds(
    ledger: Ledger,
    accelerator: Accelerator,
    dtype: str = "bf16",
    *,
    compute_efficiency: Number = 1,
    bandwidth_efficiency: Number = 1,
) -> Number:
    """Σ max(flops/peak, bytes/bandwidth) over the rows [s]: no step overlaps with another."""
    rates = _rates(accelerator, dtype, compute_efficiency, bandwidth_efficiency)
    return sum(row.count * Timing(row.op.flops, row.op.bytes, *rates).seconds for row in ledger.rows)


def attainable(at: Number, accelerator: Accelerator, dtype: str = "bf16") -> Number:
    """min(peak, intensity·bandwidth), the rate that the roofline allows [FLOP/s].

    Parameters
    ----------
    at : arithmetic intensity [FLOP/byte]
    """
    return smallest(accelerator.peak(dtype), at * accelerator.bandwidth)


def model_flops_utilisation(
    *, params: Number, tokens: Number, seconds: Number, accelerator: Accelerator, dtype: str = "bf16"
) -> Number:
    """2·params·tokens/(peak·seconds): share of the peak that useful work took, attention left out.

    References
    ----------
    Chowdhery et al., PaLM, 2204.02311, appendix B; Pope et al., 2211.05102, table 2.
    """
    return ratio(2 * params * tokens, accelerator.peak(dtype) * seconds)
