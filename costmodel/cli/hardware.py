"""`costmodel hardware`: the accelerators on record."""

import argparse

from costmodel.cli._arguments import add_json, print_json
from costmodel.hardware import accelerators
from costmodel.tables import Table

KEYS = ("name", "title", "capacity", "driver_bytes", "bandwidth", "peaks", "fp16_accumulate", "interconnect", "tdp")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--sources", action="store_true", help="show where each record comes from")
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the records."""
    records = accelerators().values()
    if options.json:
        about = [{"source": a.source, "date": str(a.date), "note": a.note} for a in records]
        print_json([{key: getattr(a, key) for key in KEYS} | more for a, more in zip(records, about, strict=True)])
    elif options.sources:
        print("\n\n".join(f"{a.name}: {a.title} ({a.date})\n  {a.source}\n  {a.note}" for a in records))
    else:
        columns = [(a.name, a.peak() / 1e12, a.bandwidth / 1e12, a.capacity / 1e9, a.ridge(), a.title) for a in records]
        rows = [[n, f"{p:g}", f"{b:g}", f"{c:g}", f"{r:.0f}", what] for n, p, b, c, r, what in columns]
        print(Table(["name", "16-bit TFLOP/s", "TB/s", "GB", "ridge", "what"], rows))
        print("\nDense peaks, fp32 accumulation; GB and TB are decimal. --sources: where each figure comes from.")
