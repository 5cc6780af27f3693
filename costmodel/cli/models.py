"""`costmodel models`: the models known by name, or one of them as a config.json."""

import argparse

from costmodel.cli._arguments import add_json, print_json
from costmodel.hardware import SYMBOLIC_ACCELERATOR
from costmodel.quantities import At, quantity
from costmodel.sizing import Deployment
from costmodel.tables import Table
from costmodel.zoo import load, preset_config, presets


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--config", metavar="NAME", help="print this preset as a config.json")
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the list, or one configuration."""
    if options.config is not None:
        print_json(preset_config(options.config))
        return
    records = presets()
    models = {name: load(name) for name in records}
    if options.json:
        print_json([{"name": name, "family": m.family, "params": m.params} for name, m in models.items()])
        return
    growth = quantity("cache-bytes-per-token")
    rows = [
        [name, m.family, m.params, growth.of(Deployment(m, SYMBOLIC_ACCELERATOR), At()), records[name]["title"]]
        for name, m in models.items()
    ]
    print(Table(["name", "family", "parameters", "cache B/token, windows open", "what"], rows))
