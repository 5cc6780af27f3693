"""`costmodel solve`: which batch, bandwidth, bits, … meets a target, or what forbids it."""

import argparse

from costmodel.cli._arguments import add_json, add_parallel, positive, print_json
from costmodel.cli._forecast import noted
from costmodel.cli._questions import add_question, deployed, where
from costmodel.sizing.levers import LEVERS, METRICS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("unknown", metavar="UNKNOWN", help=", ".join(("bits", *LEVERS)))
    add_question(parser)
    targets = parser.add_argument_group("targets, at least one")
    for metric in METRICS.values():
        targets.add_argument(
            f"--{metric.name.replace('_', '-')}", type=positive, metavar="X", help=f"{metric.meaning} [{metric.unit}]"
        )
    add_parallel(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the root, and the value that can be had."""
    targets = {name: getattr(options, name) for name in METRICS if getattr(options, name) is not None}
    given = {name: value for name, value in where(options).items() if name != options.unknown}
    found = deployed(options).solve(options.unknown, **given, **targets)
    if options.json:
        print_json(
            {
                "unknown": found.unknown,
                "value": float(found),
                "unit": found.unit,
                "usable": found.usable,
                "fits": found.fits,
                "method": found.method,
                "target": found.target,
            }
        )
    else:
        print(noted(found, options.calibrated))
