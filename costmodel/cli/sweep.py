"""`costmodel sweep`: metrics over axes as a table, CSV or JSON."""

import argparse
from math import prod
from typing import Any

from costmodel.cli._arguments import (
    SPREADS,
    add_assume_family,
    add_parallel,
    add_weights,
    once,
    parallel,
    positive,
    print_json,
)
from costmodel.cli._forecast import add_calibrated, noted
from costmodel.common.errors import CostModelError
from costmodel.hardware import accelerator
from costmodel.sizing import Deployment
from costmodel.sizing.levers import ALIASES, LEVERS, METRICS, metric
from costmodel.sizing.sweep import CHOICES, DEFAULT
from costmodel.tables import Table
from costmodel.zoo import load

NAMED = tuple(name for name in CHOICES if name != "parallel")  # axes whose values are names
MOST_ROWS = 10_000  # a table that nobody reads is a Dataset's job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="a preset (see 'costmodel models') or the path of a config.json")
    parser.add_argument("--on", required=True, metavar="ACCELERATOR", help="see 'costmodel hardware'")
    parser.add_argument(
        "axes", nargs="+", metavar="AXIS=VALUES",
        help=f"batch=1,8,64 or batch=1:65:8 or weights=bf16,int4; axes: {', '.join((*LEVERS, *NAMED))}",
    )  # fmt: skip
    parser.add_argument("--metrics", default=",".join(DEFAULT), help=f"of {', '.join(METRICS)} (default %(default)s)")
    printed = parser.add_mutually_exclusive_group()
    printed.add_argument("--csv", action="store_true", help="print comma-separated values, in SI base units")
    printed.add_argument("--json", action="store_true", help="print JSON, in SI base units")
    add_weights(parser)
    add_assume_family(parser)
    add_parallel(parser)
    add_calibrated(parser)


def axis(text: str) -> tuple[str, Any]:
    """An axis: its name, and the values as numbers (a list, or start:stop:step) or as names.

    Examples
    --------
    >>> axis("batch=1:9:4"), axis("weights=bf16,int4")
    (('batch', range(1, 9, 4)), ('weights', ['bf16', 'int4']))
    """
    name, equals, values = text.partition("=")
    if not equals or not values:
        raise CostModelError(f"an axis is written NAME=VALUES, as in batch=1,8,64; got {text!r}")
    if name in NAMED:
        return name, values.split(",")
    try:
        if ":" in values:
            return name, range(*(int(part) for part in values.split(":")))
        return name, [positive(part) if set(part) & set(".eEnN") else int(part) for part in values.split(",")]
    except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
        raise CostModelError(
            f"{name} must be finite numbers above 0 like 1,8,64, or start:stop:step, got {values!r}"
        ) from error


def run(options: argparse.Namespace) -> None:
    """Print one row for each point."""
    deployment = Deployment(
        load(options.model, assume_family=options.assume_family), accelerator(options.on), weights=options.weights,
        parallel=parallel(options), calibrated=options.calibrated,
    )  # fmt: skip
    metrics = once("the metric", (metric(name).name for name in options.metrics.split(",")))
    axes = [(ALIASES.get(name, name), values) for name, values in map(axis, options.axes)]
    once("the axis", (name for name, _ in axes))
    asked = dict(axes)
    given = {name for name in (*SPREADS, "weights") if getattr(options, name) not in (None, 1)}
    for name in given & asked.keys():
        raise CostModelError(f"{name} is given twice: as an axis, and by --{name}")
    points = prod(len(values) for values in asked.values())
    if points > MOST_ROWS:  # before any of them is counted
        raise CostModelError(f"{points:,} points are too many to print, {MOST_ROWS:,} at most; use Deployment.sweep")
    found = deployment.sweep(metrics=metrics, **asked)
    names = [name for name in asked if name in found.sizes]
    frame = found[metrics].broadcast_like(found).to_dataframe(dim_order=names).reset_index()[[*names, *metrics]]
    if options.json:
        print_json({"attributes": found.attrs, "points": frame.to_dict(orient="records")})
    elif options.csv:
        print(frame.to_csv(index=False), end="")
    else:
        units = [f"{name} [{found[name].units}]" for name in metrics]
        print(noted(Table([*names, *units], frame.to_dict(orient="split")["data"]), options.calibrated))
