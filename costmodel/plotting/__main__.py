"""`python -m costmodel.plotting FOLDER` writes every figure as SVG and PNG."""

import sys
from pathlib import Path

from costmodel.plotting import FIGURES
from costmodel.plotting.style import save


def main(folder: str) -> None:
    """Write them all; files of figures that no longer exist are removed."""
    images = Path(folder)
    for name, figure in FIGURES.items():
        save(figure(), images, name)
    for path in images.glob("*.*g"):
        if path.stem not in FIGURES:
            path.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
