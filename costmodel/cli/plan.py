"""`costmodel plan`: the cheapest deployment that keeps its promises, the runner-up, and why not the others."""

import argparse
from typing import Any

from costmodel.cli._arguments import (
    add_assume_family,
    add_json,
    count,
    once,
    positive,
    price,
    print_json,
    share,
    storage,
    used,
)
from costmodel.cli._forecast import add_calibrated, noted
from costmodel.common.errors import CostModelError
from costmodel.hardware import accelerator
from costmodel.sizing.choice import Choice, Load, Slo
from costmodel.sizing.plan import plan
from costmodel.zoo import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="a preset (see 'costmodel models') or the path of a config.json")
    parser.add_argument(
        "--on", nargs="+", required=True, metavar="ACCELERATOR=PRICE", help="what to consider, each with its $ per hour"
    )
    parser.add_argument("--rate", type=positive, required=True, metavar="X", help="requests per second")
    parser.add_argument("--prompt", type=count, required=True, metavar="N", help="tokens that each reads")
    parser.add_argument("--generated", type=count, required=True, metavar="N", help="tokens that each writes")
    parser.add_argument("--latency", type=positive, metavar="X", help="most seconds per output token")
    parser.add_argument("--ttft", type=positive, metavar="X", help="most seconds to the first token")
    parser.add_argument(
        "--tensor", type=count, nargs="+", default=[1], metavar="N", help="devices that split a copy, to try"
    )
    parser.add_argument(
        "--weights", type=storage, nargs="+", default=[None], metavar="FORMAT", help="formats to try (as stored)"
    )
    parser.add_argument("--cache", type=storage, nargs="+", default=["bf16"], metavar="FORMAT", help="likewise (bf16)")
    parser.add_argument("--utilisation", type=used, default=1, metavar="SHARE", help="share of time that may be busy")
    parser.add_argument("--reserve", type=share, default=share("0"), metavar="SHARE", help="share of memory kept free")
    parser.add_argument("--most-devices", type=count, metavar="N", help="how many can be had")
    add_assume_family(parser)
    add_calibrated(parser)
    add_json(parser)


def prices(texts: list[str]) -> dict[str, float]:
    """{accelerator: $ per hour} from "h100-sxm=3.00"."""
    found = []
    for text in texts:
        name, _, dollars = text.partition("=")
        try:
            found.append((accelerator(name).name, price(dollars)))
        except argparse.ArgumentTypeError as error:
            raise CostModelError(f"--on takes ACCELERATOR=PRICE, as in h100-sxm=3.00; the price {error}") from None
    once("the accelerator", (name for name, _ in found))
    return dict(found)


def as_json(choice: Choice) -> dict[str, Any]:
    """A choice under fixed keys."""
    return {
        "hardware": choice.hardware, "devices": choice.devices, "tensor": choice.deployment.parallel.tensor,
        "replicas": choice.deployment.parallel.replicas, "weights": choice.deployment.weights,
        "cache": choice.deployment.cache, "batch": choice.batch, "seconds_per_token": choice.latency,
        "ttft_s": choice.ttft, "dollars_per_hour": choice.dollars_per_hour,
        "dollars_per_million": choice.dollars_per_million,
    }  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Print the plan."""
    found = plan(
        load(options.model, assume_family=options.assume_family), Slo(options.latency, options.ttft),
        Load(options.rate, options.prompt, options.generated), prices=prices(options.on),
        shardings=once("--tensor", options.tensor), weights=once("--weights", options.weights),
        cache=once("--cache", options.cache), utilisation=options.utilisation,
        most_devices=options.most_devices, reserve=options.reserve, calibrated=options.calibrated,
    )  # fmt: skip
    if options.json:
        second = found.runner_up and as_json(found.runner_up)
        rejected = [{"choice": what, "reason": why} for what, why in found.rejected]
        print_json({"best": as_json(found.best), "runner_up": second, "rejected": rejected})
    else:
        print(noted(found, options.calibrated))
