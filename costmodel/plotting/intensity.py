"""Figures of arithmetic intensity: when a multiplication waits for memory, and the roofline."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sympy import solve

from costmodel.evaluate import evaluate
from costmodel.hardware import accelerator
from costmodel.ops import contract
from costmodel.plotting.style import BLUE, GREEN, GREY, ORANGE, RED, canvas, label
from costmodel.symbols import B
from costmodel.textbook import arithmetic_intensity


def intensity_against_batch() -> Figure:
    """Intensity of X(B x D)·W(D x F) against B for D = F of several widths, its limit B and the ridge."""
    hardware, common = "h100-sxm", 4096
    batch, ridge = np.geomspace(1, 4096, 200), accelerator(hardware).ridge()
    with canvas() as (figure, (axes,)):
        for width, line in ((512, ":"), (common, "-"), (65536, "--")):
            intensity = contract("B D, D F -> B F", sizes={"D": width, "F": width}).intensity
            axes.loglog(batch, evaluate(intensity, B=batch), line, label=f"D = F = {width:,}")
            if width == common:
                crossing = float(solve(intensity - ridge, B)[0])
        axes.loglog(batch, batch, color=GREY, linewidth=1, label="the limit, B")
        axes.axhline(ridge, color=RED, linewidth=1.2)
        axes.text(1.1, ridge * 1.12, f"ridge of {hardware}: {ridge:.0f}", color=RED)
        axes.legend(loc="lower right")
        title = f"The ridge of {ridge:.0f} takes B = {crossing:.0f} at width {common:,};\n"
        title += "narrow matrices never reach it"
        label(axes, title=title, x="B, rows of X", y="FLOP per byte")
    return figure


def roofline(hardware: str = "h100-class", prompt: int = 1000, users: int = 64) -> Figure:
    """Attainable FLOP/s against intensity, with decoding for one user, for many, and a prefill marked."""
    device = accelerator(hardware)
    ridge, top = device.ridge(), device.peak()
    x = np.array([0.3, ridge, 4000])
    cases = (
        (1, "decode, 1 user", BLUE, "o"),
        (users, f"decode, {users} users", ORANGE, "s"),
        (prompt, f"prefill, {prompt:,} tokens", GREEN, "D"),
    )
    with canvas() as (figure, (axes,)):
        axes.loglog(x, np.minimum(top, x * device.bandwidth), color=GREY, linewidth=2.5)
        axes.axvline(ridge, color=RED, linewidth=1, linestyle="--")
        axes.text(ridge * 1.08, 6e11, f"ridge {ridge:.0f}", color=RED)
        for tokens, name, color, marker in cases:
            at = arithmetic_intensity(tokens)
            rate = min(top, at * device.bandwidth)
            axes.plot(at, rate, marker, color=color, markersize=10, zorder=3)
            text = f"{name}\n{100 * rate / top:.3g}% of the peak" if rate < top else f"{name}\nat the peak"
            place: dict[str, Any] = (
                {"xytext": (10, -12), "va": "top"} if at != users else {"xytext": (-12, 6), "ha": "right"}
            )
            axes.annotate(text, (at, rate), textcoords="offset points", **place)
        share = arithmetic_intensity(1) / ridge
        label(
            axes,
            title=f"One user's decoding reaches {100 * share:.3g}% of the peak:\nleft of the ridge memory decides",
            x="FLOP per byte", y="FLOP/s",
        )  # fmt: skip
        axes.set_ylim(4e11, 3e15)
    return figure
