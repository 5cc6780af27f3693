"""Figures of choosing a token: what temperature does to five of them, and what top-p does that a fixed k cannot."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from costmodel.lab.sampling import temperature_probs, top_k_filter, top_p_filter
from costmodel.plotting.style import BLUE, GREY, LIGHT, RED, canvas, label

FIVE = (3.0, 2.2, 1.5, 0.5, -0.5)
SURE = (6.0, 2.0, 1.5, 1.0, 0.5, *[0.0] * 7)
UNSURE = tuple(np.linspace(1, 0, 12).tolist())


def _group(axes: Axes, start: int, probs: np.ndarray, p: float) -> None:
    """Bars of one distribution from `start` on, those that top-p cuts hatched."""
    cut = top_p_filter(probs, p) == 0
    places = start + np.arange(len(probs))
    named = start == 0  # one legend entry for all groups
    axes.bar(places[~cut], probs[~cut], color=BLUE, label=f"top-p keeps it, p = {p:g}" if named else None)
    axes.bar(places[cut], probs[cut], color=LIGHT, hatch="//", edgecolor=GREY, label="top-p cuts it" if named else None)


def _groups(axes: Axes, names: Sequence[str], size: int) -> None:
    axes.set_xticks([i * (size + 1) + (size - 1) / 2 for i in range(len(names))], names)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")


def temperature_and_top_p(
    logits: Sequence[float] = FIVE, temperatures: Sequence[float] = (0.5, 1, 2), *, p: float = 0.9
) -> Figure:
    """Probabilities of a few tokens, best first, at several temperatures, and which of them top-p cuts."""
    best_first, size = np.sort(logits)[::-1], len(logits)
    probs = [temperature_probs(best_first, T) for T in temperatures]
    with canvas() as (figure, (axes,)):
        for i, q in enumerate(probs):
            _group(axes, i * (size + 1), q, p)
            for rank, share in enumerate(q):
                axes.text(i * (size + 1) + rank, share + 0.015, f"{share:.1%}", ha="center", fontsize=10)
        _groups(axes, [f"T = {T:g}" for T in temperatures], size)
        axes.set_ylim(0, 1.1 * probs[0].max())
        axes.legend(loc="upper right")
        cut = ", then ".join(str(int((top_p_filter(q, p) == 0).sum())) for q in probs)
        fall = f"the favourite falls from {probs[0][0]:.0%} to {probs[-1][0]:.0%}"
        title = f"Heat flattens the choice: {fall},\nand of {size} tokens top-p cuts {cut}"
        label(axes, title=title, x=f"{size} tokens, best first", y="probability")
    return figure


def top_k_against_top_p(
    sure: Sequence[float] = SURE, unsure: Sequence[float] = UNSURE, *, k: int = 3, p: float = 0.9
) -> Figure:
    """Two distributions, one with a favourite and one without: what top-p and a fixed k keep of each."""
    both, size = [np.sort(temperature_probs(np.asarray(logits), 1))[::-1] for logits in (sure, unsure)], len(sure)
    sizes = [int((top_p_filter(q, p) > 0).sum()) for q in both]
    with canvas() as (figure, (axes,)):
        for i, q in enumerate(both):
            start = i * (size + 1)
            _group(axes, start, q, p)
            end = start + k - 0.5
            axes.plot([end, end], [0, 0.5], color=RED, linestyle="--", label=None if i else f"top-k ends here, k = {k}")
            note = f"first {k}: {q[top_k_filter(q, k) > 0].sum():.0%}\nof the probability"
            axes.text(end + 0.2, 0.44, note, va="center", fontsize=11)
        _groups(axes, ["one good answer", "many good answers"], size)
        axes.legend(loc="upper right")
        adapts = f"With one good answer top-p keeps {sizes[0]} token, with many it keeps {sizes[1]}"
        title = f"{adapts};\ntop-k keeps {k} each time"
        label(axes, title=title, x=f"{size} tokens each, best first", y="probability")
    return figure
