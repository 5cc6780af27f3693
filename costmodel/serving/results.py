"""What a simulated service achieved: waiting times, throughput, goodput, memory and money."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.serving.policy import Slo
from costmodel.serving.trace import Trace

PERCENTILES = (50, 90, 99)
NO_LIMITS = Slo()


def percentiles(values: np.ndarray) -> dict[str, float | None]:
    """Of values, nan left out, under p50, p90, p99; None where there are none."""
    known = values[~np.isnan(values)]
    if not len(known):
        return {f"p{p}": None for p in PERCENTILES}
    return {f"p{p}": float(v) for p, v in zip(PERCENTILES, np.percentile(known, PERCENTILES), strict=True)}


@dataclass(frozen=True)
class ServingResult:
    """The outcome of serving a trace.

    Attributes
    ----------
    trace : the requests
    first_s, last_s : when each one's first and last token were out, (requests,); nan where rejected [s]
    rejected : request -> the reason
    devices : accelerators that served, those of every replica
    replicas : that shared the work
    budget_bytes : for caches, of all replicas that decode [byte]
    peak_cache_bytes : the most that one replica ever gave out [byte]
    busy_s, held_byte_s : replica-seconds in passes [s]; integral of the bytes held by caches in passes [byte·s]
    steps, events, preempted : passes over the model; times a replica had to think; sequences that gave way
    prefix_hit_ratio : blocks of prompts reused/all; None where not known

    Examples
    --------
    >>> found = ServingResult(
    ...     Trace([0.0, 10.0], [100, 100], [11, 1]), first_s=np.array([1.0, 12.0]), last_s=np.array([3.0, 12.0]),
    ...     rejected={}, devices=1, replicas=1, budget_bytes=100, peak_cache_bytes=10, busy_s=6.0, held_byte_s=60.0,
    ...     steps=12, events=3, preempted=0, prefix_hit_ratio=None,
    ... )
    >>> found.ttft_s.tolist(), found.tpot_s.tolist(), found.tokens_per_s, found.utilisation
    ([1.0, 2.0], [0.2, nan], 1.0, 0.5)
    >>> found.met(Slo(ttft=1.5)).tolist()
    [True, False]
    """

    trace: Trace
    first_s: np.ndarray
    last_s: np.ndarray
    rejected: Mapping[int, str]
    devices: int
    replicas: int
    budget_bytes: int
    peak_cache_bytes: int
    busy_s: float
    held_byte_s: float
    steps: int
    events: int
    preempted: int
    prefix_hit_ratio: float | None

    @property
    def ttft_s(self) -> np.ndarray:
        """Time to first token: first token − arrival [s]."""
        return self.first_s - self.trace.arrival

    @property
    def tpot_s(self) -> np.ndarray:
        """Time per output token after the first: (last − first)/(output − 1); nan for answers of one token [s]."""
        after = np.where(self.trace.output > 1, self.trace.output - 1, np.nan)
        return (self.last_s - self.first_s) / after

    @property
    def e2e_s(self) -> np.ndarray:
        """Last token − arrival [s]."""
        return self.last_s - self.trace.arrival

    @property
    def served(self) -> int:
        """Requests answered in full."""
        return len(self.trace) - len(self.rejected)

    @property
    def tokens(self) -> int:
        """Tokens of all answers given."""
        return int(self.trace.output[~np.isnan(self.last_s)].sum())

    @property
    def makespan_s(self) -> float:
        """From the first arrival to the last token [s]; 0 if nothing was served."""
        return float(np.nanmax(self.last_s) - self.trace.arrival[0]) if self.served else 0.0

    def _per_second(self, amount: float) -> float:
        return amount / self.makespan_s if self.served else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Answer tokens/makespan [token/s]."""
        return self._per_second(self.tokens)

    def met(self, slo: Slo = NO_LIMITS) -> np.ndarray:
        """Which requests were served within every limit; one-token answers have no time per token to miss."""
        within = ~np.isnan(self.last_s)
        for name in ("ttft", "tpot", "e2e"):
            limit = getattr(slo, name)
            if limit is not None:
                took = getattr(self, f"{name}_s")
                within &= np.isnan(took) | (took <= limit)
        return within

    def goodput(self, slo: Slo = NO_LIMITS) -> float:
        """Requests served within the limits/makespan [request/s]."""
        return self._per_second(float(self.met(slo).sum()))

    @property
    def utilisation(self) -> float:
        """Share of the makespan that a replica spent in passes, on average."""
        return self._per_second(self.busy_s / self.replicas)

    @property
    def cache_occupancy(self) -> float:
        """Bytes held by caches/budget, averaged over the makespan."""
        return self._per_second(self.held_byte_s / self.budget_bytes) if self.budget_bytes else 0.0

    def dollars(self, per_device_hour: float) -> float:
        """What the accelerators cost for the makespan [$]."""
        if not per_device_hour >= 0:
            raise CostModelError(f"a price must be at least 0 $/hour, got {per_device_hour}")
        return per_device_hour * self.devices * self.makespan_s / 3600

    def dollars_per_million_tokens(self, per_device_hour: float) -> float:
        """Dollars per 10⁶ answer tokens [$]."""
        if not self.tokens:
            raise CostModelError("nothing was served: there is no price per token")
        return 1e6 * self.dollars(per_device_hour) / self.tokens

    def summary(self, slo: Slo = NO_LIMITS) -> dict[str, Any]:
        """The answer of `costmodel serve --json`, under its keys."""
        return {
            "requests": len(self.trace),
            "makespan_s": self.makespan_s,
            "ttft_s": percentiles(self.ttft_s),
            "tpot_s": percentiles(self.tpot_s),
            "e2e_s": percentiles(self.e2e_s),
            "tokens_per_s": self.tokens_per_s,
            "goodput": self.goodput(slo),
            "utilisation": self.utilisation,
            "peak_cache_bytes": self.peak_cache_bytes,
            "prefix_hit_ratio": self.prefix_hit_ratio,
            "rejected": [{"request": index, "reason": reason} for index, reason in sorted(self.rejected.items())],
        }
