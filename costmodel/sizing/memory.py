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

FOREVER = 2**62  # a batch or context that no machine holds: what still fits there is unbounded


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
    def used_params(self) -> Number:
        """Parameters that the textbook multiplies a token with: those in matrices, idle experts left out."""
        parts = [(layer, count) for block, count in self.stored.blocks for layer in block.layers]
        idle = sum((layer.matrix_params - layer.active_matrix_params) * count for layer, count in parts)
        return self.stored.matrix_params - idle

    @cached_property
    def weight_bytes(self) -> Number:
        """Params x bytes per weight [byte]."""
        return stored_bytes(self.params, self.widths.weight)

    @property
    def usable_bytes(self) -> Number:
        """capacity·(1 − reserve) [byte]."""
        return tidy(self.accelerator.capacity * (1 - self.reserve))

    def cache_bytes(self, context: Number = S) -> Number:
        """Cache of one sequence, on the fullest device that has a part of it [byte].

        Parameters
        ----------
        context : tokens of the sequence [token], a number or a symbol

        Returns
        -------
        memory of one sequence [byte]

        Raises
        ------
        CostModelError
            for a context that is no whole number

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
        >>> d.cache_bytes(1024) == 2 * 32 * 8 * 128 * 1024 * 2  # 2·L·K·H·S elements of 2 bytes
        True
        """
        return self.stored.cache_bytes(context, self.widths.cache)

    def memory_bytes(self, batch: Number = B, context: Number = S) -> Number:
        """Weights + ⌈batch/data⌉ x cache per sequence, on the fullest device [byte].

        Parameters
        ----------
        batch : sequences of one replica [sequence], a number or a symbol
        context : tokens of each [token], likewise

        Returns
        -------
        memory [byte]

        Raises
        ------
        CostModelError
            for a batch or context that is no whole number

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
        >>> d.memory_bytes(8, 1024) == 16060522496 + 8 * 1024 * 131072
        True
        """
        batch = whole(batch, "batch", at_least=0)
        return self.weight_bytes + self.parallel.share(batch, self.parallel.data) * self.cache_bytes(context)

    def fits(self, batch: int, context: int) -> bool:
        """Whether memory ≤ capacity·(1 − reserve).

        Parameters
        ----------
        batch, context : sequences of one replica [sequence], tokens of each [token]

        Returns
        -------
        True or False

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
        >>> d.fits(59, 8192), d.fits(60, 8192)
        (True, False)
        """
        return bool(self.memory_bytes(batch, context) <= self.usable_bytes)

    def wall(self, batch: int, context: int) -> str | None:
        """What does not fit: "weights" alone, the "cache" beside them, or nothing (None).

        Parameters
        ----------
        batch, context : sequences of one replica [sequence], tokens of each [token]

        Returns
        -------
        "weights", "cache" or None

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> small, large = (Deployment(load(name), accelerator("h100-sxm")) for name in ("llama-3-8b", "llama-3-70b"))
        >>> small.wall(1, 8192), small.wall(60, 8192), large.wall(1, 1)
        (None, 'cache', 'weights')
        """
        if self.fits(batch, context):
            return None
        return "weights" if self.weight_bytes > self.usable_bytes else "cache"

    def largest_batch(self, context: int) -> int | None:
        """data·⌊(capacity·(1 − reserve) − weights)/cache per sequence⌋, at least 0; None if unbounded.

        Parameters
        ----------
        context : tokens of each sequence [token]

        Returns
        -------
        sequences of one replica [sequence]; None for as many as one likes, as where nothing is cached

        Raises
        ------
        CostModelError
            for a context that is no whole number of at least 1

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> Deployment(load("llama-3-8b"), accelerator("h100-sxm")).largest_batch(8192)
        59
        >>> (80 * 10**9 - 16060522496) // (8192 * 131072)
        59
        """
        per_sequence = self.cache_bytes(whole(context, "context"))
        if per_sequence == 0:
            return None if self.wall(1, context) is None else 0
        most = max(0, int((self.usable_bytes - self.weight_bytes) // per_sequence)) * self.parallel.data
        return most if most < FOREVER else None

    def longest_context(self, batch: int) -> int | None:
        """The most tokens per sequence that memory holds at this batch, at least 0; None if unbounded.

        Parameters
        ----------
        batch : sequences of one replica [sequence]

        Returns
        -------
        tokens of each sequence [token], whatever context the model was made for

        Raises
        ------
        CostModelError
            for a batch that is no whole number of at least 1

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> Deployment(load("llama-3-8b"), accelerator("h100-sxm")).longest_context(1)
        487819
        >>> (80 * 10**9 - 16060522496) // 131072
        487819
        """
        batch = whole(batch, "batch")
        if self.fits(batch, FOREVER):
            return None
        low, high = 0, FOREVER  # the cache never shrinks as the context grows
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(batch, middle) else (low, middle)
        return low
