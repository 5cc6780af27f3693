"""The roofline: how long a piece of work takes, which rate binds it, and what rate it may reach or has reached."""

from dataclasses import dataclass

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain, largest, ratio, smallest
from costmodel.hardware import Accelerator
from costmodel.operation import intensity


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
    >>> step = Timing(flops=2e12, bytes=1e9, peak=1e15, bandwidth=1e12)  # 2 ms of arithmetic, 1 ms of traffic
    >>> step.seconds, step.bound
    (0.002, 'compute')

    References
    ----------
    Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009.
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


def attainable(at: Number, accelerator: Accelerator, dtype: str = "bf16") -> Number:
    """min(peak, intensity·bandwidth), the rate that the roofline allows [FLOP/s].

    Parameters
    ----------
    at : arithmetic intensity [FLOP/byte]
    accelerator : peaks and bandwidth
    dtype : which peak

    Returns
    -------
    rate [FLOP/s]

    Raises
    ------
    CostModelError
        for a dtype whose peak is not on record

    Examples
    --------
    >>> from costmodel import accelerator
    >>> attainable(100, accelerator("h100-sxm")), attainable(1000, accelerator("h100-sxm"))
    (335000000000000, 989000000000000)

    References
    ----------
    Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009.
    """
    return smallest(accelerator.peak(dtype), at * accelerator.bandwidth)


def model_flops_utilisation(
    *, params: Number, tokens: Number, seconds: Number, accelerator: Accelerator, dtype: str = "bf16"
) -> Number:
    """2·params·tokens/(peak·seconds): share of the peak that useful work took, attention left out.

    Parameters
    ----------
    params : number of parameters that a token uses
    tokens : processed in that time [token]
    seconds : measured duration [s]
    accelerator : whose peak; several devices as `Accelerator.times` adds them up
    dtype : which peak

    Returns
    -------
    share of the peak

    Raises
    ------
    CostModelError
        for a dtype whose peak is not on record

    Examples
    --------
    >>> card = Accelerator("card", capacity=0, bandwidth=1, peaks={"bf16": 10**15})
    >>> model_flops_utilisation(params=8 * 10**9, tokens=1000, seconds=0.032, accelerator=card)  # 0.016 s at best
    0.5

    References
    ----------
    Chowdhery et al., PaLM, 2204.02311, appendix B; Pope et al., 2211.05102, table 2.
    """
    return ratio(2 * params * tokens, accelerator.peak(dtype) * seconds)
