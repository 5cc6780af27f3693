"""`make bench`: every comparison in one table; exit code 1 when a floor is missed."""

import sys

from costmodel.tables import Table, with_prefix
from tests.benchmarks import lab, serving, spine


def main() -> int:
    """Run and print."""
    results = [*spine.results(), *lab.results(), *serving.results()]
    rows = [
        [r.what, with_prefix(r.ours, "s", 3), r.alternative, with_prefix(r.other, "s", 3), f"{r.ratio:.2f}", r.floor,
         "holds" if r.holds else "MISSED"]
        for r in results
    ]  # fmt: skip
    print(Table(["what", "ours", "against", "theirs", "ratio", "floor", ""], rows))
    return 0 if all(r.holds for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
