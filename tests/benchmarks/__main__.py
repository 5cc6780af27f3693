"""`make bench`: every comparison in one table; exit code 1 when a floor is missed."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from costmodel.tables import Table, with_prefix

HELPERS = ("__init__", "__main__", "side_by_side")


def main(names: Sequence[str]) -> int:
    """Run the modules of this folder, or those named, and print."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in HELPERS)
    results = [result for name in names or found for result in import_module(f"tests.benchmarks.{name}").results()]
    rows = [
        [r.what, with_prefix(r.ours, "s", 3), r.alternative, with_prefix(r.other, "s", 3), f"{r.ratio:.2f}", r.floor,
         "holds" if r.holds else "MISSED"]
        for r in results
    ]  # fmt: skip
    print(Table(["what", "ours", "against", "theirs", "ratio", "floor", ""], rows))
    return 0 if all(r.holds for r in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
