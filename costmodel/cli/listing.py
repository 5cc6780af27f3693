"""`costmodel models` and `costmodel hardware`: what is on record."""

import argparse

from costmodel.cli._arguments import add_json, print_json
from costmodel.hardware import accelerators
from costmodel.tables import Table
from costmodel.zoo import load, preset_config, presets


class Models:
    """`costmodel models`."""

    NAME = "models"
    HELP = "list the models known by name, or write one out as a config.json"

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("--config", metavar="NAME", help="print this preset as a config.json")
        add_json(parser)

    @staticmethod
    def run(options: argparse.Namespace) -> None:
        """Print the list, or one configuration."""
        if options.config is not None:
            print_json(preset_config(options.config))
            return
        models = {name: load(name) for name in presets()}
        if options.json:
            print_json([{"name": name, "family": m.family, "params": m.params} for name, m in models.items()])
            return
        rows = [[name, m.family, m.params, m.cache_bytes(1), presets()[name]["title"]] for name, m in models.items()]
        print(Table(["name", "family", "parameters", "cache B/token", "what"], rows))


class Hardware:
    """`costmodel hardware`."""

    NAME = "hardware"
    HELP = "list the accelerators on record: dense peaks, bandwidth, capacity, source"

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("--sources", action="store_true", help="show where each record comes from")
        add_json(parser)

    @staticmethod
    def run(options: argparse.Namespace) -> None:
        """Print the records."""
        records = accelerators().values()
        if options.json:
            keys = (
                "name",
                "title",
                "capacity",
                "driver_bytes",
                "bandwidth",
                "peaks",
                "fp16_accumulate",
                "interconnect",
                "tdp",
            )
            print_json(
                [
                    {k: getattr(a, k) for k in keys} | {"source": a.source, "date": str(a.date), "note": a.note}
                    for a in records
                ]
            )
        elif options.sources:
            print("\n\n".join(f"{a.name}: {a.title} ({a.date})\n  {a.source}\n  {a.note}" for a in records))
        else:
            header = ["name", "16-bit TFLOP/s", "TB/s", "GB", "ridge", "what"]
            rows = [
                [
                    a.name,
                    f"{a.peak() / 1e12:g}",
                    f"{a.bandwidth / 1e12:g}",
                    f"{a.capacity / 1e9:g}",
                    f"{a.ridge():.0f}",
                    a.title,
                ]
                for a in records
            ]
            print(Table(header, rows))
            print(
                "\nDense peaks, fp32 accumulation; GB and TB are decimal. --sources says where each figure comes from."
            )
