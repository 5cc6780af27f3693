"""`costmodel explain`: a quantity's formula, its symbols, and its value."""

import argparse

from costmodel.cli._arguments import add_deployment, count, filled, only_with
from costmodel.common.errors import CostModelError
from costmodel.hardware import SYMBOLIC_ACCELERATOR, accelerator
from costmodel.model import Model
from costmodel.quantities import QUANTITIES, At, Quantity, quantity
from costmodel.sizing import Deployment
from costmodel.symbols import b_a, b_kv, b_w, used_in
from costmodel.tables import display_form, latex_of, notation, plain
from costmodel.zoo import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("quantity", metavar="QUANTITY", help=", ".join(QUANTITIES))
    parser.add_argument("--latex", action="store_true", help="the formula as LaTeX")
    parser.add_argument(
        "--model", metavar="MODEL", help="of this preset or config.json: its own formula, and the value"
    )
    parser.add_argument(
        "--on", default="h100-sxm", metavar="ACCELERATOR", help="accelerator for the value (default h100-sxm)"
    )
    parser.add_argument("--generated", type=count, default=256, metavar="N", help="tokens generated (default 256)")
    add_deployment(parser)
    only_with(parser, "model", "on", "generated", "batch", "context", "prompt", "weights", "cache")


def run(options: argparse.Namespace) -> None:
    """Print formula, symbols and value; what is refused is refused before anything is printed."""
    asked = quantity(options.quantity)
    filled(options)
    model = options.model and load(options.model)
    value = value_line(asked, model, options) if model else ""
    formula = own_formula(asked, model, options.weights) if model else display_form(asked.formula())
    unit = f" [{asked.unit}]" if asked.unit else ""
    shown = latex_of(formula) if options.latex else plain(formula)
    letters = str(notation(formula)) if used_in(formula) else ""
    parts = (f"{asked.name}{unit}: {asked.meaning}", f"  {shown}", letters, value)
    print("\n\n".join(part for part in parts if part))


def own_formula(asked: Quantity, model: Model, weights: str | None) -> object:
    """The model's formula, its sizes as numbers; in words where there is none in letters."""
    mixed = weights is None and not isinstance(
        model.stored_dtype(), str
    )  # of several widths: no one letter stands for it
    open_widths = Deployment(model, SYMBOLIC_ACCELERATOR, weights=None if mixed else b_w, cache=b_kv, activations=b_a)
    try:
        return display_form(asked.of(open_widths, At()))
    except CostModelError as error:
        return f"no formula in letters: {error}"


def value_line(asked: Quantity, model: Model, options: argparse.Namespace) -> str:
    """The value for one model on one accelerator, and at which sizes."""
    deployment = Deployment(model, accelerator(options.on), weights=options.weights, cache=options.cache)
    at = At(options.batch, options.context, options.prompt or options.context, options.generated)
    value = asked.of(deployment, at)
    where = f"batch {at.batch}, context {at.context}, prompt {at.prompt}, generated {at.generated}"
    return f"{model.name} on {deployment.accelerator.name} ({where}): {plain(value)} {asked.unit}".rstrip()
