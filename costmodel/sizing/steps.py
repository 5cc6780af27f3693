"""What one step takes: a decode step with its memory, and the textbook's two simplified timings."""

from dataclasses import dataclass

from costmodel.exact import Number, ratio
from costmodel.roofline import Timing


@dataclass(frozen=True)
class Decode:
    """One decode step of a batch: its timing, and the memory it needs.

    Attributes
    ----------
    timing : roofline (or textbook) timing of the step
    batch, context : B [sequence] and S [token], of one replica
    memory_bytes : weights + batch x cache per sequence, on the fullest device [byte]
    replicas : number of copies that serve a batch each

    Examples
    --------
    >>> timing = Timing(flops=1e9, bytes=20e9, peak=1e15, bandwidth=2e12)
    >>> step = Decode(timing, batch=8, context=1024, memory_bytes=20 * 10**9, replicas=2)
    >>> step.seconds_per_token, step.tokens_per_s_per_user, step.tokens_per_s, step.bound
    (0.01, 100.0, 1600.0, 'memory')
    """

    timing: Timing
    batch: Number
    context: Number
    memory_bytes: Number
    replicas: Number = 1

    @property
    def seconds_per_token(self) -> Number:
        """Time of one step [s]."""
        return self.timing.seconds

    @property
    def tokens_per_s_per_user(self) -> Number:
        """1/seconds per token [token/s]."""
        return ratio(1, self.seconds_per_token)

    @property
    def tokens_per_s(self) -> Number:
        """replicas·batch/seconds per token [token/s]."""
        return ratio(self.replicas * self.batch, self.seconds_per_token)

    @property
    def bound(self) -> str:
        """ "memory", "compute" or "communication"."""
        return self.timing.bound


class MemoryBound(Timing):
    """The textbook's simplification of decoding: bytes/bandwidth, whatever the arithmetic."""

    @property
    def seconds(self) -> Number:
        """bytes/bandwidth [s]."""
        return self.memory_seconds

    @property
    def bound(self) -> str:
        """Memory, by assumption."""
        return "memory"


class ComputeBound(Timing):
    """The textbook's simplification of prefilling: flops/peak, whatever the traffic."""

    @property
    def seconds(self) -> Number:
        """flops/peak [s]."""
        return self.compute_seconds

    @property
    def bound(self) -> str:
        """Compute, by assumption."""
        return "compute"
