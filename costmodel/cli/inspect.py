"""`costmodel inspect`: exact counts of a model."""

import argparse
from typing import Any

from costmodel.cli._arguments import (
    add_assume_family,
    add_json,
    add_weights,
    count,
    format_name,
    notes_on,
    print_json,
    storage,
)
from costmodel.model import Model
from costmodel.tables import Table, with_prefix
from costmodel.zoo import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="a preset or the path of a config.json or GGUF file")
    parser.add_argument(
        "--context", type=count, default=1024, metavar="N", help="tokens of one sequence (default 1024)"
    )
    add_weights(parser)
    add_assume_family(parser)
    parser.add_argument(
        "--cache", type=storage, default="bf16", metavar="FORMAT", help="format of the key/value cache (default bf16)"
    )
    parser.add_argument("--ledger", action="store_true", help="also print the rows of one decode step (batch 1)")
    add_json(parser)


def answer(model: Model, context: int, weights: str | None, cache: str) -> dict[str, Any]:
    """Everything `inspect` says, under the keys that scripts rely on."""
    return {
        "family": model.family,
        "params": model.params,
        "text_params": model.text_params,
        "active_params": model.active_params,
        "weight_bytes": model.weight_bytes(weights),
        "cache_elements": model.cache_elements(context),
        "cache_bytes": model.cache_bytes(context, cache),
        "tied_head": model.tied_head if _has_head(model) else None,
    }


def _has_head(model: Model) -> bool:
    """Of a model known only by its size, nothing is said of its head."""
    return model.family != "rounded"


def run(options: argparse.Namespace) -> None:
    """Print the counts."""
    model = load(options.model, assume_family=options.assume_family)
    found = answer(model, options.context, options.weights, options.cache)
    if options.json:
        print_json(found)
        return
    weights = format_name(options.weights or model.stored_dtype())
    rows = [
        ["family", found["family"]],
        ["parameters", f"{found['params']:,}"],
        ["  of the text model", f"{found['text_params']:,}"],
        ["  active per token", f"{found['active_params']:,}"],
        *([["head", "tied to the embedding" if found["tied_head"] else "its own matrix"]] if _has_head(model) else []),
        ["weights", f"{with_prefix(found['weight_bytes'], 'B')} in {weights}"],
        ["cache", f"{found['cache_elements']:,} elements at {options.context:,} tokens: "
                  f"{with_prefix(found['cache_bytes'], 'B')} in {options.cache}"],
    ]  # fmt: skip
    print(Table([model.name, ""], rows))
    for note in notes_on(model):
        print(f"note: {note}")
    if options.ledger:
        print(f"\none decode step, batch 1, context {options.context:,}, 16 bit; [ ] stays on chip\n")
        print(model.decode(1, options.context))
