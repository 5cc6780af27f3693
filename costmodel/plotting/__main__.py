"""`python -m costmodel.plotting FOLDER` writes every figure as SVG and PNG."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from costmodel.plotting import FIGURES
from costmodel.plotting.style import save


def main(arguments: Sequence[str] | None = None) -> None:
    """Write them all; what else lies in the folder stays."""
    parser = argparse.ArgumentParser(
        prog="python -m costmodel.plotting", description="Write every figure, SVG and PNG."
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where to; made if it is not there")
    images = parser.parse_args(arguments).folder
    for name, figure in FIGURES.items():
        save(figure(), images, name)


if __name__ == "__main__":
    main()
