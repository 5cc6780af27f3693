"""Metrics over labelled axes: an xarray Dataset, in memory or as Dask chunks that are computed when asked.

Peak and bandwidth stay symbols in the compiled formula, so that what is divided are whole numbers: up to 2^53 a point
of the sweep is then the same float64 that a single call gives, to the last bit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from costmodel.common.errors import CostModelError, unknown_name
from costmodel.common.extras import needed
from costmodel.evaluate import compile_formulas
from costmodel.hardware import Accelerator, accelerator
from costmodel.parallel import Parallel
from costmodel.sizing.deployment import Deployment
from costmodel.sizing.heads import with_kv_heads
from costmodel.sizing.levers import ALIASES, LEVERS, METRICS, Lever, Use, formula, lever, metric, turnable
from costmodel.sizing.money import checked_utilisation, paid_devices
from costmodel.sizing.words import as_spread, several, spread_words

DEFAULT = ("latency", "throughput", "memory")
FORMATS_OF = {"weights": "weight_bits", "cache": "cache_bits", "activations": "activation_bits"}  # and the same in bits
CHOICES = (*FORMATS_OF, "accelerator", "parallel")  # axes of names: one deployment each
ALWAYS_GIVEN = {"batch": 1, "context": 1024}
ALWAYS_OPEN = ("bandwidth", "peak", "interconnect")


def sweep(deployment: Deployment, *, metrics: Sequence[str] = DEFAULT, chunks: int | None = None, **axes: Any) -> Any:
    """Metrics over the product of the axes.

    Parameters
    ----------
    deployment : what is varied
    metrics : latency [s], ttft [s], throughput [token/s], memory [byte], dollars_per_million [$], …
    chunks : number of points per chunk; the variables are then Dask arrays, computed chunk by chunk on threads, or
        wherever an active `dask.distributed` client has its workers: a reduction of any number of points fits in memory
    axes : numbers (a sequence makes an axis, a single number a condition) for batch, context, prompt, bandwidth, peak,
        weight_bits, cache_bits, activation_bits, kv_heads, interconnect, replicas, price, utilisation; names for
        weights, cache, activations (formats, or bytes of an element), accelerator and parallel

    Returns
    -------
    xarray.Dataset, its axes in the order given, units in the variables' attributes, the deployment in its own

    Raises
    ------
    CostModelError
        for an unknown axis or metric, an axis without values, values that are not above 0, a utilisation above 1,
        key/value heads that the model cannot have, a format together with its bits, and where xarray (or Dask) is not
        installed
    """
    xarray = needed("xarray", "a sweep", "studies")
    for name in axes:
        if name not in (*CHOICES, *LEVERS, "bits"):
            raise unknown_name("axis", name, (*LEVERS, *CHOICES))
    metrics = [metric(name).name for name in several("metrics", metrics)]
    given = {ALIASES.get(name, name) for name in axes}
    for form, bits in FORMATS_OF.items():
        if {form, bits} <= given:
            raise CostModelError(f"{form} and {bits} say the same thing twice; give one of them")
    chosen = next((name for name in axes if name in CHOICES), None)
    if chosen is None:
        return _numbers(deployment, metrics, chunks, {lever(name).name: values for name, values in axes.items()})
    options = axes[chosen]
    rest = {name: values for name, values in axes.items() if name != chosen}
    if isinstance(options, str | Real | Accelerator | Parallel):
        return sweep(_set(deployment, chosen, options), metrics=metrics, chunks=chunks, **rest)
    options = several(chosen, options)
    if not options or (chosen in FORMATS_OF and not all(isinstance(one, str | Real) for one in options)):
        raise CostModelError(f"{chosen} must be a name or a sequence of names, got {axes[chosen]!r}")
    parts = [sweep(_set(deployment, chosen, one), metrics=metrics, chunks=chunks, **rest) for one in options]
    axis = xarray.DataArray([_called(chosen, one) for one in options], dims=chosen)
    found = xarray.concat(parts, dim=axis, data_vars="all", coords="minimal", compat="equals", join="exact",
                          combine_attrs="drop_conflicts")  # fmt: skip
    order = [name for name in axes if name in found.dims]
    found.attrs = {key: value for key, value in about(deployment).items() if key not in order}
    return found.transpose(*order)


def _set(deployment: Deployment, name: str, value: Any) -> Deployment:
    if name == "accelerator" and isinstance(value, str):
        value = accelerator(value)
    if name == "parallel":
        value = as_spread(value)
    return replace(deployment, **{name: value})


def _called(axis: str, value: Any) -> str:
    if axis == "parallel":
        return spread_words(as_spread(value))
    if axis == "accelerator":
        return value if isinstance(value, str) else value.name
    return str(value)


def about(deployment: Deployment) -> dict[str, str | float | int]:
    """The deployment in attributes that any file format holds."""
    d = deployment
    return {
        "model": d.model.name, "accelerator": d.accelerator.name, "devices": paid_devices(d) * d.parallel.replicas,
        "weights": str(d.model.stored_dtype() if d.weights is None else d.weights), "cache": str(d.cache),
        "activations": str(d.activations), "compute": d.arithmetic, "reserve": float(d.reserve),
        "parallel": spread_words(d.parallel),
        "method": "textbook" if d.textbook else "calibrated" if d.calibrated else "roofline",
    }  # fmt: skip


def _numbers(d: Deployment, metrics: Sequence[str], chunks: int | None, given: Mapping[str, Any]) -> object:
    """The sweep of one deployment over axes of numbers."""
    import xarray

    given = {**given, **{name: value for name, value in ALWAYS_GIVEN.items() if name not in given}}
    values = {name: _checked(LEVERS[name], value) for name, value in given.items()}
    for heads in values.get("kv_heads", np.array([])).flat:
        _ = replace(d, model=with_kv_heads(d.model, int(heads))).part  # refuses heads that the model cannot have
    axes = list(values)  # a single number is an axis of one point, so that it is computed like any other
    use = Use()
    symbols = {LEVERS[name].symbol: np.atleast_1d(value) / LEVERS[name].scale for name, value in values.items()}
    turned = [LEVERS[name] for name in axes]
    for one in turnable(d, use):
        if one.name in ALWAYS_OPEN and one.name not in values:
            turned.append(one)
            symbols[one.symbol] = np.asarray(float(one.now(d, use)))
    lengths = tuple(value.size for value in values.values())
    pieces = None if chunks is None else _chunk_shape(lengths, chunks)
    formulas = {name: formula(name, d, use, turned) for name in metrics}
    found = {}
    for dims, names in _by_dims(formulas, axes).items():
        arrays = _evaluated(
            [formulas[name] for name in names], symbols, dims, dict(zip(axes, pieces or (), strict=False))
        )
        for name, array in zip(names, arrays, strict=True):
            attrs = {"units": METRICS[name].unit, "long_name": METRICS[name].meaning}
            found[name] = xarray.Variable(dims, array, attrs)
    coords = {
        name: xarray.Variable((name,), np.atleast_1d(value), {"units": LEVERS[name].unit})
        for name, value in values.items()
    }
    swept = xarray.Dataset({name: found[name] for name in metrics}, coords, about(d))
    return swept.squeeze([name for name, value in values.items() if value.ndim == 0])


def _checked(turned: Lever, value: object) -> np.ndarray:
    """Numbers above 0 along at most one axis, whole where they count something."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        array = np.empty(0)
    if array.ndim > 1 or array.dtype.kind not in "iuf" or not array.size:
        raise CostModelError(f"{turned.name} must be a number or a sequence of numbers, got {value!r}")
    if not np.all((array > 0) & (array < np.inf)) or (turned.whole and np.any(array != np.floor(array))):
        wanted = "whole numbers, at least 1" if turned.whole else "above 0 and finite"
        raise CostModelError(f"{turned.name} must be {wanted}, got {array.min():g}")
    if turned.name == "utilisation":
        checked_utilisation(float(array.max()))
    return array


def _by_dims(formulas: Mapping[str, Expr], axes: Sequence[str]) -> dict[tuple[str, ...], list[str]]:
    """Metrics grouped by the axes that they vary along: one group is computed together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, expression in formulas.items():
        groups.setdefault(tuple(a for a in axes if expression.has(LEVERS[a].symbol)), []).append(name)
    return groups


def _evaluated(
    formulas: Sequence[Expr], symbols: Mapping[Symbol, np.ndarray], dims: tuple[str, ...], sizes: Mapping[str, int]
) -> list[Any]:
    """The values of formulas that vary along `dims`, as one array each; lazily where chunk sizes are given."""
    inputs = tuple(LEVERS[name].symbol for name in dims)
    constants = {s: float(v) for s, v in symbols.items() if s not in inputs and v.ndim == 0}
    if not sizes or not dims:
        return compile_formulas(formulas, inputs, constants)(*np.ix_(*(symbols[s] for s in inputs)))
    dask = needed("dask.array", "a sweep in chunks", "studies")
    pairs = []
    for at, name in enumerate(dims):
        pairs += [dask.from_array(symbols[LEVERS[name].symbol], chunks=sizes[name]), (at,)]
    over = {"inputs": inputs, "constants": constants, "dtype": np.float64}
    return [dask.blockwise(_block, tuple(range(len(dims))), *pairs, formula=one, **over) for one in formulas]


def _block(
    *values: np.ndarray, formula: Expr, inputs: tuple[Symbol, ...], constants: Mapping[Symbol, float]
) -> np.ndarray:
    """The values over one block of the axes; a worker compiles each formula once."""
    return compile_formulas([formula], inputs, constants)(*np.ix_(*values))[0]


def _chunk_shape(lengths: tuple[int, ...], points: int) -> tuple[int, ...]:
    """Chunks of about `points` points, the last axes whole where they fit."""
    if isinstance(points, bool) or not isinstance(points, int) or points < 1:
        raise CostModelError(f"chunks must be a whole number of points, at least 1, got {points!r}")
    shape = []
    for length in reversed(lengths):
        shape.append(max(1, min(length, points)))
        points //= shape[-1]
    return tuple(reversed(shape))
