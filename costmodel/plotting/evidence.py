"""Figures of the evidence: measurements against their bound, what share is reached, and forecasts held out."""

from collections import defaultdict
from functools import lru_cache
from statistics import median
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from costmodel.calibration import engine, fitted
from costmodel.common.checks import present
from costmodel.evidence import Verdict, against_the_bound, measurements
from costmodel.evidence.fit import fifth_of, fit, training_rows
from costmodel.evidence.names import device_named
from costmodel.evidence.predict import forecast, measured_seconds, passes
from costmodel.evidence.table import MODEL_PHASES
from costmodel.plotting.style import BLUE, GREEN, GREY, LIGHT, ORANGE, PURPLE, RED, SKY, canvas, label

PHASES = {
    "decode": (BLUE, "o", 4),
    "prefill": (ORANGE, "s", 4),
    "request": (GREEN, "^", 4),
    "throughput": (PURPLE, "D", 4),
}


@lru_cache(maxsize=1)
def _verdicts() -> tuple[Verdict, ...]:
    return tuple(v for v in against_the_bound().verdicts if v.bound.ideal is not None)


def measured_against_bound() -> Figure:
    """Every served measurement against its bound; excluded rows, kept as negative examples, are crossed out."""
    honest = [v for v in _verdicts() if v.row.honest and v.row.phase in MODEL_PHASES]
    groups = {phase: [v for v in honest if v.row.phase == phase] for phase in PHASES}
    groups["not honest"] = [v for v in _verdicts() if not v.row.honest]
    with canvas(figsize=(8, 4.8)) as (figure, (axes,)):
        for name, found in groups.items():
            color, marker, size = PHASES.get(name, (RED, "x", 7))
            x, y = zip(*((v.bound.ideal, v.bound.measured) for v in found), strict=True)
            axes.plot(x, y, marker, color=color, markersize=size, alpha=0.7, label=f"{name} ({len(found)})")
        low, high = 2e-5, 200
        axes.fill_between([low, high], [low, high], low, color=LIGHT, zorder=0)
        axes.plot([low, high], [low, high], color=GREY)
        axes.text(0.5, 0.02, "faster than physics allows", color=GREY, ha="left")
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
        axes.legend(loc="upper left", fontsize=11)
        reached = median(_reached(v) for v in groups["decode"])
        title = f"None of {len(honest)} honest rows beats the bound; half of the decode rows reach {reached:.0%} of it"
        label(axes, title=title, x="bound [s]", y="measured [s]")
    return figure


def _dots(axes: Axes, groups: dict[str, list[float]], order: list[str], color: str, names: list[str]) -> None:
    for y, name in enumerate(order):
        values = groups[name]
        axes.plot(values, [y] * len(values), "o", color=color, alpha=0.35, markersize=5, markeredgewidth=0)
        axes.plot(median(values), y, "|", color="black", markersize=15, markeredgewidth=2.5)
    axes.set_yticks(
        range(len(order)), [f"{name} ({len(groups[k])})" for k, name in zip(order, names, strict=True)], fontsize=10
    )
    axes.set_xlim(0, 1)


def _reached(v: Verdict) -> float:
    return present("the bound", v.bound.utilisation)


def utilisation_by_software_and_hardware() -> Figure:
    """Share of the bound that decode rows reach, by family of software and by accelerator; a bar marks the median.

    An accelerator's label gives its bandwidth in TB/s.
    """
    rows = [v for v in _verdicts() if v.row.honest and v.row.phase == "decode"]
    by_software, by_hardware = defaultdict(list), defaultdict(list)
    for v in rows:
        by_software[engine(v.row.software).family].append(_reached(v))
        by_hardware[v.row.hardware].append(_reached(v))
    with canvas(1, 2, figsize=(8, 5.2)) as (figure, (left, right)):
        orders = [
            sorted((k for k in groups if len(groups[k]) >= least), key=lambda k: median(groups[k]))
            for groups, least in ((by_software, 2), (by_hardware, 2))
        ]
        speeds = [f"{name}, {float(device_named(name).bandwidth) / 1e12:.2g} TB/s" for name in orders[1]]
        _dots(left, by_software, orders[0], BLUE, orders[0])
        _dots(right, by_hardware, orders[1], ORANGE, speeds)
        best, worst = orders[0][-1], orders[0][0]
        label(left, title=f"{best} reaches {median(by_software[best]):.0%},\n{worst} {median(by_software[worst]):.0%}",
              x="share of the bound")  # fmt: skip
        small, big = by_hardware["rtx-4090"], by_hardware["b200-sxm"]
        label(right, title=f"RTX 4090 {median(small):.0%},\nB200 {median(big):.0%}",
              x="share of the bound")  # fmt: skip
    return figure


def forecast_held_out() -> Figure:
    """Forecasts of a fifth of the decode rows that the fit never saw, and how the error grows with what was hidden."""
    rows = training_rows()
    constants = fit([row for row in rows if fifth_of(row) != 0])
    judged = [row for row in rows if fifth_of(row) == 0 and row.published_decode]
    x = np.array([measured_seconds(row) for row in judged])
    y = np.array([forecast(row, constants) for row in judged])
    error = fitted().error
    names = {"hash": "a fifth\nof the rows", "software": "a family of\nsoftware", "source": "a whole\npublication"}
    with canvas(1, 2, figsize=(8, 4.2)) as (figure, (left, right)):
        low, high = 1e3 * x.min() / 1.6, 1e3 * x.max() * 1.6
        line = np.array([low, high])
        left.fill_between(line, line * 0.7, line * 1.3, color=LIGHT, zorder=0, label="±30 %")
        left.plot(line, line, color=GREY, linewidth=1)
        left.plot(1e3 * x, 1e3 * y, "o", color=BLUE, alpha=0.7, markeredgewidth=0)
        left.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
        for axis in (left.xaxis, left.yaxis):
            axis.set_major_locator(FixedLocator((5, 10, 20, 50)))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(ScalarFormatter())
        left.legend(loc="upper left", fontsize=11)
        off = np.median(np.abs(y / x - 1))
        label(left, title=f"Held out, forecasts are\n{off:.0%} off (median)", x="measured [ms]", y="forecast [ms]")
        places = np.arange(len(names))
        for shift, key, color, name in ((-0.2, "median", BLUE, "median"), (0.2, "p90", SKY, "9 of 10 below")):
            values = [100 * error[kind][key] for kind in names]
            bars = right.bar(places + shift, values, 0.38, color=color, label=name)
            right.bar_label(bars, fmt="%.0f", fontsize=11)
        right.set_xticks(places, names.values(), fontsize=11)
        right.legend(loc="upper left", fontsize=11)
        right.set_ylim(0, 62)
        label(right, title="The stranger the row,\nthe less to trust", x="what the fit did not see", y="|error| [%]")
    return figure


def where_the_time_goes(ids: tuple[str, ...] = ("gptfast-001", "gptfast-011", "tinychat-004", "silicon-217")) -> Figure:
    """The terms of four forecasts as shares, from one user on one card to a busy server."""
    by_id = {row.id: row for row in measurements()}
    kinds = {
        "weights and arithmetic": ("weights", "compute"), "cache": ("cache",),
        "between devices": ("all-reduce", "link"), "launches, steps": ("launches", "step", "sequences"),
        "newcomers' prompts": ("newcomers' compute", "newcomers' link"),
    }  # fmt: skip
    constants = fitted().constants
    with canvas(figsize=(8, 3.6)) as (figure, (axes,)):
        labels = []
        for y, name in enumerate(reversed(ids)):
            row = by_id[name]
            (step,) = passes(row)
            parts = {term.name: float(term.seconds(constants)) for term in step.terms}
            parts["weights"] = float(np.hypot(parts["weights"], parts.pop("compute", 0.0)))
            total, start = sum(parts.values()), 0.0
            for (kind, terms), color in zip(kinds.items(), (BLUE, ORANGE, GREEN, GREY, PURPLE), strict=True):
                share = sum(parts.get(term, 0.0) for term in terms) / total
                axes.barh(y, share, left=start, color=color, label=kind if y == 0 else None)
                if share > 0.07:
                    axes.text(
                        start + share / 2, y, f"{share:.0%}", ha="center", va="center", color="white", fontsize=11
                    )
                start += share
            users = "1 user" if row.batch == 1 else f"{row.batch} users"
            labels.append(f"{row.model}, {row.weight_bits:g} bit\n{row.devices} x {row.hardware}, {users}")
        axes.set_yticks(range(len(ids)), labels, fontsize=10)
        axes.set_xlim(0, 1)
        axes.grid(visible=False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.3, -0.12), ncols=3, fontsize=10)
        label(axes, title="What a step waits for: memory, launches, other devices, or other people")
    return figure


def this_machine(rows: list[dict[str, Any]]) -> Figure:
    """Measured seconds of the small model here beside the bound; rows as `costmodel host` makes them."""
    with canvas(figsize=(8, 3)) as (figure, (axes,)):
        for y, row in enumerate(rows):
            axes.barh(y + 0.2, 1e3 * row["ideal_s"], 0.36, color=SKY, label="bound" if y == 0 else None)
            axes.barh(y - 0.2, 1e3 * row["measured_s"], 0.36, color=BLUE, label="measured" if y == 0 else None)
        axes.set_yticks(range(len(rows)), [f"{row['what']}\n{row['tokens']} tokens" for row in rows])
        axes.set_xscale("log")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=2)
        shares = ", ".join(f"{row['what']} {row['ideal_s'] / row['measured_s']:.0%}" for row in rows)
        label(axes, title=f"Share of this machine's bound: {shares}", x="ms")
    return figure
