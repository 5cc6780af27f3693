"""The questions that a Deployment answers beside its own: each is one method here and one module beside."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from costmodel.exact import Number

if TYPE_CHECKING:  # heavy or rarely asked: imported when asked
    import xarray

    from costmodel.sizing.deployment import Deployment
    from costmodel.sizing.elasticities import Elasticities
    from costmodel.sizing.solve import Solution


class Questions:
    """Mixed into Deployment: solve for an unknown, rank the levers, sweep over axes."""

    @cached_property
    def asked(self) -> dict[Any, Any]:
        """Formulas made so far, by what they were asked for."""
        return {}

    def solve(self, unknown: str, *, method: str = "auto", **conditions: Number) -> Solution:
        """The value of one unknown at which a metric reaches its target.

        Parameters
        ----------
        unknown : batch, context, prompt, bandwidth, peak, weight_bits (or bits), cache_bits, activation_bits, kv_heads,
            interconnect, replicas, price, utilisation
        method : "closed form", "bracketed root", or "auto": the first where there is one
        conditions : targets, latency [s per token], ttft [s], throughput [token/s], memory [byte], dollars_per_million,
            dollars_per_million_input [$], joules_per_token [J]; and where: batch (1), context (1024), prompt (the
            context), price [$ per device and hour], utilisation (1)

        Returns
        -------
        Solution, a float (the real root, in the unknown's own unit) whose `usable` is the value that can be had

        Raises
        ------
        CostModelError
            naming what forbids it, when no value meets the target; for an unknown condition, no target, or one that the
            unknown does not move

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
        >>> found = d.solve("batch", latency=0.020, context=1024)
        >>> found.usable, found.method
        (372, 'closed form')
        """
        from costmodel.sizing.solve import solve

        return solve(cast("Deployment", self), unknown, method=method, **conditions)

    def elasticities(
        self, batch: int = 1, context: int = 1024, *, metric: str = "latency", **where: Number
    ) -> Elasticities:
        """By how many percent the metric changes when a lever rises by one, for every lever, the strongest first.

        Exact derivatives d ln(metric)/d ln(lever) on the branch that binds; at a tie both are given.

        Parameters
        ----------
        batch, context : where: B [sequence] and S [token]
        metric : latency, ttft, throughput, memory, dollars_per_million, dollars_per_million_input or joules_per_token
        where : prompt [token], price [$ per device and hour], utilisation (share), as in `solve`

        Returns
        -------
        Elasticities: {lever: percent for a percent}, with what binds and a table

        Raises
        ------
        UnknownNameError
            for a metric or a condition that is not known
        CostModelError
            for a lever that is still a symbol, and dollars without a price

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
        >>> found = d.elasticities(batch=64, context=8192)
        >>> found.first, found["bandwidth"]  # memory-bound: a percent more bandwidth, a percent less time
        ('bandwidth', -1.0)
        """
        from costmodel.sizing.elasticities import elasticities

        return elasticities(cast("Deployment", self), metric, batch=batch, context=context, **where)

    def sweep(self, *, chunks: int | None = None, **axes: Any) -> xarray.Dataset:
        """Metrics over labelled axes as an xarray Dataset, units in the attributes.

        Parameters
        ----------
        chunks : number of points per chunk of Dask arrays, computed when asked; None computes at once in memory
        axes : numbers or sequences of them (batch, bandwidth, …) or names (weights, cache, accelerator, …); also
            `metrics`, which to compute: latency, throughput and memory unless given. See `sizing.sweep.sweep`

        Returns
        -------
        xarray.Dataset: latency [s], throughput [token/s], memory [byte], …, its axes in the order given

        Raises
        ------
        CostModelError
            for an unknown axis or metric, values that are not above 0, and where xarray (or Dask) is not installed

        Examples
        --------
        >>> from costmodel import Deployment, accelerator, load
        >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
        >>> found = d.sweep(batch=range(1, 65), context=[1024, 8192])
        >>> dict(found.sizes), found.latency.units
        ({'batch': 64, 'context': 2}, 's')
        """
        from costmodel.sizing.sweep import sweep

        return sweep(cast("Deployment", self), chunks=chunks, **axes)
