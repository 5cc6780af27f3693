"""`costmodel explain`: a quantity's formula, its symbols, and its value."""

import argparse

from costmodel.cli._arguments import add_deployment, count
from costmodel.hardware import accelerator
from costmodel.quantities import QUANTITIES, At, Quantity, quantity
from costmodel.sizing import Deployment
from costmodel.tables import display_form, latex_of, notation, plain
from costmodel.zoo import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("quantity", metavar="QUANTITY", help=", ".join(QUANTITIES))
    parser.add_argument("--latex", action="store_true", help="the formula as LaTeX")
    parser.add_argument("--model", metavar="MODEL", help="also its value for this preset or config.json")
    parser.add_argument(
        "--on", default="h100-sxm", metavar="ACCELERATOR", help="accelerator for the value (default h100-sxm)"
    )
    parser.add_argument("--generated", type=count, default=256, metavar="N", help="tokens generated (default 256)")
    add_deployment(parser)


def run(options: argparse.Namespace) -> None:
    """Print formula, symbols and value."""
    asked = quantity(options.quantity)
    value = value_line(asked, options) if options.model else None  # refuse a bad model before anything is printed
    formula = display_form(asked.formula())
    unit = f" [{asked.unit}]" if asked.unit else ""
    print(f"{asked.name}{unit}: {asked.meaning}\n")
    print(f"  {latex_of(formula) if options.latex else formula}\n")
    print(notation(formula))
    if value:
        print(f"\n{value}")


def value_line(asked: Quantity, options: argparse.Namespace) -> str:
    """The value for one model on one accelerator, and at which sizes."""
    deployment = Deployment(load(options.model), accelerator(options.on), weights=options.weights, cache=options.cache)
    at = At(options.batch, options.context, options.prompt or options.context, options.generated)
    value = asked.of(deployment, at)
    where = f"batch {at.batch}, context {at.context}, prompt {at.prompt}, generated {at.generated}"
    return f"{deployment.model.name} on {deployment.accelerator.name} ({where}): {plain(value)} {asked.unit}".rstrip()
