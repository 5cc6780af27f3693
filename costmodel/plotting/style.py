"""One look for every figure: colours that colour-blind readers tell apart, sizes that survive half width."""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette, in the order lines take it.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")  # fmt: skip
GREY, LIGHT = "#555555", "#DDDDDD"

KILO = 2**10  # the k of "32k tokens"

STYLE: dict[Any, Any] = {
    "figure.figsize": (8.0, 4.2),
    "figure.dpi": 100,
    "savefig.dpi": 100,
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, RED, PURPLE, SKY]),
    "lines.linewidth": 2.0,
    "legend.frameon": False,
    "svg.hashsalt": "costmodel",
    "svg.fonttype": "path",
    "figure.constrained_layout.use": True,
}


class Picture(Figure):
    """A figure that shows itself in a notebook, with its title as text for those who cannot see it."""

    @property
    def title(self) -> str:
        """The finding: the titles of its axes."""
        return " ".join(" ".join(a.get_title(loc="left").split()) for a in self.axes if a.get_title(loc="left"))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        png = b64encode(rendered(self, "png")).decode()
        return {"image/png": png, "text/plain": self.title}, {"image/png": {"alt": self.title}}


@contextmanager
def canvas(
    rows: int = 1, columns: int = 1, *, figsize: tuple[float, float] = (8.0, 4.2)
) -> Iterator[tuple[Picture, list[Axes]]]:
    """A figure in the house style and its axes, left to right; it belongs to nobody's global state."""
    with mpl.rc_context(STYLE):
        figure = Picture(figsize=figsize)
        yield figure, list(figure.subplots(rows, columns, squeeze=False).flat)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once: a second layout would move things by a hair


def label(axes: Axes, *, title: str, x: str = "", y: str = "") -> None:
    """Title (the finding) and axis labels (with units) in one call."""
    axes.set_title(title, wrap=True)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def bare(axes: Axes) -> None:
    """No ticks, grid or frame: for a diagram."""
    axes.set_axis_off()
    axes.grid(visible=False)


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as "png" or "svg", the same bytes each time."""
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context(STYLE), BytesIO() as buffer:
        figure.savefig(buffer, format=kind, metadata=metadata)
        return buffer.getvalue()


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("svg", "png"):
        (folder / f"{name}.{kind}").write_bytes(rendered(figure, kind))
