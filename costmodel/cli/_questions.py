"""Arguments that the what-if commands share: a deployment, and how it is used."""

import argparse
from typing import Any

from costmodel.cli._arguments import add_assume_family, add_deployment, parallel, price, used
from costmodel.cli._forecast import add_calibrated
from costmodel.hardware import accelerator
from costmodel.sizing import Deployment
from costmodel.zoo import load


def add_question(parser: argparse.ArgumentParser) -> None:
    """MODEL, --on, how it is used, --price, --utilisation, --calibrated."""
    parser.add_argument("model", metavar="MODEL", help="a preset (see 'costmodel models') or the path of a config.json")
    parser.add_argument("--on", required=True, metavar="ACCELERATOR", help="see 'costmodel hardware'")
    add_deployment(parser)
    add_assume_family(parser)
    add_money(parser)
    add_calibrated(parser)


def add_money(parser: argparse.ArgumentParser) -> None:
    """--price and --utilisation."""
    parser.add_argument("--price", type=price, metavar="X", help="of one device for one hour [$]")
    parser.add_argument("--utilisation", type=used, default=1, metavar="SHARE", help="share of paid time used (1)")


def deployed(options: argparse.Namespace) -> Deployment:
    """The deployment that the options describe."""
    return Deployment(
        load(options.model, assume_family=options.assume_family), accelerator(options.on), weights=options.weights,
        cache=options.cache, parallel=parallel(options), calibrated=options.calibrated,
    )  # fmt: skip


def where(options: argparse.Namespace) -> dict[str, Any]:
    """How it is used: what was given of batch, context, prompt, price and utilisation."""
    given = {name: getattr(options, name) for name in ("batch", "context", "prompt", "price", "utilisation")}
    return {name: value for name, value in given.items() if value is not None}
