"""`costmodel explore`: the interactive page as one file."""

import argparse
import os
from pathlib import Path

from costmodel.cli._arguments import add_formats, add_lengths
from costmodel.common.errors import CostModelError
from costmodel.explore import Catalogue, page
from costmodel.explore.catalogue import STARTING, STORED
from costmodel.hardware import accelerator
from costmodel.zoo import load, presets


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--model", default=STARTING["model"], metavar="MODEL", help="opens with this preset or config.json"
    )
    parser.add_argument("--on", default=STARTING["on"], metavar="ACCELERATOR", help="and this accelerator")
    parser.add_argument("--out", required=True, type=Path, metavar="PAGE.html", help="where to write the page")
    add_lengths(parser, STARTING["batch"], STARTING["context"])
    add_formats(parser)


def run(options: argparse.Namespace) -> None:
    """Write the page."""
    device = accelerator(options.on)
    load(options.model)  # what is refused is refused before any model is counted
    if not os.path.isdir(options.out.parent):
        raise CostModelError(f"cannot write {options.out}: {options.out.parent} is not a folder")
    catalogue = Catalogue.of([*presets(), options.model])
    html = page(
        catalogue, model=options.model, on=device.name, batch=options.batch, context=options.context,
        weights=options.weights or STORED, cache=options.cache,
    )  # fmt: skip
    try:
        options.out.write_text(html, encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = getattr(error, "strerror", None) or error
        raise CostModelError(f"cannot write {options.out}: {reason}") from None
    print(f"{options.out}: {len(html.encode()):,} bytes, {len(catalogue.models)} models; open it in a browser")
