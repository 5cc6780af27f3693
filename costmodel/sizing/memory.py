"""What a deployment stores, and what fits beside it: bytes of weights and caches against the capacity."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from costmodel.exact import Number, stored_bytes, tidy, whole
from costmodel.model import Model, element_bytes
from costmodel.operation import Widths
from costmodel.symbols import B, S

if TYPE_CHECKING:
    from costmodel.hardware import Accelerator
    from costmodel.parallel import Parallel

FOREVER = 2**62  # a context no machine holds: what still fits there is unbounded


class Memory:
    """Mixed into Deployment: what the fullest device stores, and how much more it holds."""

    if TYPE_CHECKING:  # the deployment's own fields
        model: Model
        accelerator: Accelerator
        parallel: Parallel
        weights: str | Number | None
        cache: str | Number
        activations: str | Number
        reserve: Number
        textbook: bool

    @cached_property
    def widths(self) -> Widths:
        """Bytes per weight, cache element and activation."""
        weights = self.model.stored_dtype() if self.weights is None else self.weights
        return Widths(*(tidy(element_bytes(width)) for width in (weights, self.cache, self.activations)))

    @cached_property
    def stored(self) -> Model:
        """What the fullest device stores."""
        if not self.parallel.shards:
            return self.model
        from costmodel.parallel.device import device_share

        return device_share(self.model, self.parallel)

    @cached_property
    def params(self) -> Number:
        """Parameters stored on the fullest device; in matrices only for the textbook form."""
        return self.stored.matrix_params if self.textbook else self.stored.params

    @cached_property
    def weight_bytes(self) -> Number:
        """Params x bytes per weight [byte]."""
        return stored_bytes(self.params, self.widths.weight)

    @property
    def usable_bytes(self) -> Number:
        """capacity·(1 − reserve) [byte]."""
        return tidy(self.accelerator.capacity * (1 - self.reserve))

    def cache_bytes(self, context: Number = S) -> Number:
        """Cache of one sequence, on the fullest device that has a part of it [byte]."""
        return self.stored.cache_bytes(context, self.widths.cache)

    def memory_bytes(self, batch: Number = B, context: Number = S) -> Number:
        """Weights + ⌈batch/data⌉ x cache per sequence, on the fullest device [byte]."""
        batch = whole(batch, "batch", at_least=0)
        return self.weight_bytes + self.parallel.share(batch, self.parallel.data) * self.cache_bytes(context)

    def fits(self, batch: int, context: int) -> bool:
        """Whether memory ≤ capacity·(1 − reserve)."""
        return bool(self.memory_bytes(batch, context) <= self.usable_bytes)

    def wall(self, batch: int, context: int) -> str | None:
        """What does not fit: "weights" alone, the "cache" beside them, or nothing (None)."""
        if self.fits(batch, context):
            return None
        return "weights" if self.weight_bytes > self.usable_bytes else "cache"

    def largest_batch(self, context: int) -> int | None:
        """data·⌊(capacity·(1 − reserve) − weights)/cache per sequence⌋, at least 0; None if nothing is cached."""
        per_sequence = self.cache_bytes(whole(context, "context"))
        if per_sequence == 0:
            return None if self.wall(1, context) is None else 0
        return max(0, int((self.usable_bytes - self.weight_bytes) // per_sequence)) * self.parallel.data

    def longest_context(self, batch: int) -> int | None:
        """The most tokens per sequence that memory holds at this batch, at least 0; None if unbounded."""
        batch = whole(batch, "batch")
        if self.fits(batch, FOREVER):
            return None
        low, high = 0, FOREVER  # the cache never shrinks as the context grows
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(batch, middle) else (low, middle)
        return low
