"""The shapes that every diagram is drawn with: a board, boxes, arrows, brackets, text."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.path import Path

from costmodel.plotting.style import GREY, LIGHT, bare, canvas, label

WIDTH = 16  # units on 8 inches: about five characters to the unit


@contextmanager
def board(title: str, height: float) -> Iterator[tuple[Figure, Axes]]:
    """An empty board under its title, `height` units tall (half an inch each)."""
    room = 0.25 + 0.3 * (1 + title.count("\n"))
    with canvas(figsize=(WIDTH / 2, height / 2 + room)) as (figure, (axes,)):
        label(axes, title=title)
        bare(axes)
        # A line on the border would lose half its width to the clip.
        axes.set(xlim=(-0.05, WIDTH + 0.05), ylim=(-0.05, height + 0.3))
        yield figure, axes


def say(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Text, centred on a point unless told otherwise."""
    look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": 12, "linespacing": 1.25}
    axes.text(x, y, text, **(look | style))


def box(
    axes: Axes,
    x: float,
    y: float,
    w: float,
    h: float,
    text: str = "",
    color: str = GREY,
    *,
    size: float = 12,
    **style: Any,
) -> None:
    """A tinted rectangle from its lower left corner, with its label inside."""
    look: dict[str, Any] = {"facecolor": (color, 0.25), "edgecolor": color, "linewidth": 1.2} | style
    axes.add_patch(Rectangle((x, y), w, h, **look))
    say(axes, x + w / 2, y + h / 2, text, fontsize=size)


def gap(axes: Axes, x: float, y: float, w: float, h: float, text: str = "") -> None:
    """A hatched rectangle: room that nothing useful fills."""
    box(axes, x, y, w, h, facecolor="white", edgecolor=LIGHT, hatch="///", zorder=0.5)
    if text:
        say(axes, x + w / 2, y + h / 2, text, color=GREY, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})


def arrow(axes: Axes, *points: tuple[float, float], color: str = GREY) -> None:
    """An arrow through the points, its head at the last."""
    axes.add_patch(FancyArrowPatch(path=Path(points), arrowstyle="-|>", mutation_scale=12, color=color, linewidth=1.4))


def brace(axes: Axes, left: float, right: float, y: float, text: str) -> None:
    """A bracket that opens upwards, its label below."""
    axes.plot([left, left, right, right], [y + 0.2, y, y, y + 0.2], color=GREY, linewidth=1.5)
    say(axes, (left + right) / 2, y - 0.55, text, va="baseline")
