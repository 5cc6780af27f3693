"""Figures of what-if: a solved batch, levers ranked, a front, what spreading a model over devices buys, a plan."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from costmodel.common.checks import present
from costmodel.hardware import accelerator
from costmodel.parallel import Parallel
from costmodel.plotting.style import BLUE, GREEN, GREY, LIGHT, ORANGE, PURPLE, RED, canvas, label
from costmodel.sizing import Deployment
from costmodel.sizing.choice import Load, Plan, Slo
from costmodel.sizing.elasticities import Elasticities
from costmodel.sizing.pareto import pareto
from costmodel.sizing.plan import plan
from costmodel.zoo import load

CONTEXT = 8192


def _llama(hardware: str = "h100-sxm", **options: Any) -> Deployment:
    return Deployment(load("llama-3-8b"), accelerator(hardware), **options)


def solved_batch(target: float = 0.020, largest: int = 80) -> Figure:
    """Latency against the batch, the target, the batch that meets it, and where memory ends."""
    d = _llama()
    found, limit = d.solve("batch", latency=target, context=CONTEXT), present("the limit", d.largest_batch(CONTEXT))
    batch = np.arange(1, largest + 1)
    curve = 1e3 * d.sweep(batch=batch, context=CONTEXT).latency.to_numpy()
    with canvas(figsize=(8, 3.8)) as (figure, (axes,)):
        axes.plot(batch, curve, color=BLUE)
        axes.axhline(1e3 * target, color=RED, linestyle="--")
        axes.text(1, 1e3 * target + 0.5, f"{1e3 * target:g} ms promised", color=RED)
        axes.plot(float(found), 1e3 * target, "o", color=ORANGE, markersize=9, zorder=3)
        axes.annotate(f"B = {float(found):.2f}", (float(found), 1e3 * target), (8, -20), textcoords="offset points")
        axes.axvspan(limit, largest, color=LIGHT, alpha=0.6)
        axes.text((limit + largest) / 2, 3, "does not fit", ha="center", color=GREY)
        axes.set_xlim(0, largest)
        axes.set_ylim(0)
        title = f"{found.usable} users get a token every {1e3 * target:g} ms; memory would hold {limit}"
        label(axes, title=title, x=f"B, sequences of {CONTEXT:,} tokens", y="ms per token")
    return figure


def elasticity_bars(found: Elasticities | None = None) -> Figure:
    """What one percent more of each lever does to a metric, the strongest on top."""
    found = _llama().elasticities(batch=32, context=CONTEXT) if found is None else found
    shown = [(name, value) for name, value in found.levers.items() if abs(value) >= 1e-4]
    better = lambda value: (value < 0) == found.metric.at_most  # noqa: E731
    with canvas(figsize=(8, 0.9 + 0.42 * len(shown) + 0.9)) as (figure, (axes,)):
        for place, (_, value) in enumerate(shown):
            axes.barh(place, value, color=BLUE if better(value) else ORANGE, hatch=None if better(value) else "//",
                      edgecolor="white")  # fmt: skip
            side = 4 if value > 0 else -4
            axes.annotate(f"{value:+.3f} %", (value, place), (side, 0), textcoords="offset points", va="center",
                          ha="left" if value > 0 else "right")  # fmt: skip
        axes.axvline(0, color=GREY, linewidth=1)
        axes.set_yticks(range(len(shown)), [name.replace("_", " ") for name, _ in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlim(-1.5, 1.3)
        first, value = shown[0]
        binds = f" ({found.bound}-bound)" if found.bound in ("memory", "compute", "communication") else ""
        title = f"Change {first.replace('_', ' ')} first: 1 % more moves {found.metric.name} by {value:+.2f} %{binds}"
        label(axes, title=title, x=f"% that {found.metric.name} changes, for 1 % more (blue: better, hatched: worse)")
    return figure


def pareto_front() -> Figure:
    """Throughput against latency of one model in several formats, and those points that nothing beats."""
    cases = [
        ("bf16", "bf16", BLUE, "o"),
        ("fp8", "fp8", GREEN, "s"),
        ("int4", "bf16", ORANGE, "D"),
        ("int4", "fp8", PURPLE, "^"),
    ]
    cards = [_llama(weights=w, cache=c) for w, c, _, _ in cases]
    batch = [1, 2, 4, 8, 16, 32, 59, 118, 140]
    front = pareto(cards, batch=batch, context=CONTEXT)
    with canvas() as (figure, (axes,)):
        for card, (w, c, color, marker) in zip(cards, cases, strict=True):
            fits = [b for b in batch if card.fits(b, CONTEXT)]
            steps = [card.decode(b, CONTEXT) for b in fits]
            axes.plot([1e3 * s.seconds_per_token for s in steps], [s.tokens_per_s for s in steps], marker + ":",
                      color=color, label=f"weights {w}, cache {c}", alpha=0.75, markersize=6)  # fmt: skip
        axes.plot([1e3 * p.latency for p in front], [p.throughput for p in front], color=GREY, linewidth=6, alpha=0.3,
                  label="nothing beats these", zorder=0)  # fmt: skip
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
        axes.yaxis.set_minor_formatter(lambda y, _: f"{y:,.0f}" if f"{y:.0e}"[0] in "25" else "")
        axes.set_xlim(0)
        axes.legend(loc="lower right")
        winners = sorted({f"{p.deployment.weights} weights, {p.deployment.cache} cache" for p in front})
        title = f"On the front, nothing but {' and '.join(winners)}"
        label(axes, title=title, x=f"ms per token (context {CONTEXT:,})", y="tokens/s, all users")
    return figure


def spread_over_devices(
    name: str = "llama-3-70b", batch: int = 8, hardware: tuple[str, ...] = ("h100-sxm", "l40s")
) -> Figure:
    """Time per token when 2 to 8 devices split every matrix: their own work, and the talk between them."""
    ways = (2, 4, 8)
    with canvas(1, len(hardware), figsize=(8, 3.9)) as (figure, panels):
        for axes, slug in zip(panels, hardware, strict=True):
            shares = []
            for place, tensor in enumerate(ways):
                d = Deployment(load(name), accelerator(slug), weights="fp8", parallel=Parallel(tensor=tensor))
                timing = d.decode(batch, CONTEXT).timing
                talk = 1e3 * timing.communication_seconds
                work = 1e3 * timing.seconds - talk
                shares.append(talk / (talk + work))
                axes.bar(place, work, color=BLUE, label="memory and arithmetic" if place == 0 else None)
                axes.bar(place, talk, bottom=work, color=ORANGE, hatch="//", edgecolor="white",
                         label="communication" if place == 0 else None)  # fmt: skip
                axes.annotate(
                    f"{work + talk:.1f}", (place, work + talk), (0, 3), textcoords="offset points", ha="center"
                )
            axes.set_xticks(range(len(ways)), [f"{n} devices" for n in ways])
            axes.margins(y=0.15)
            label(axes, title=f"{slug}: {100 * shares[-1]:.0f} % of a token\nis talk at {ways[-1]}", y="ms per token")
        panels[-1].legend(loc="upper right", fontsize=10)
    return figure


def plan_costs(found: Plan | None = None) -> Figure:
    """Dollars an hour of every configuration that keeps its promises, the chosen one marked."""
    if found is None:
        found = plan(load("llama-3-8b"), Slo(latency=0.020, ttft=0.5), Load(20, 2000, 300), weights=("bf16", "fp8"),
                     shardings=(1, 2), prices={"h100-sxm": 3.0, "a100-sxm-80gb": 1.8, "l40s": 1.0},
                     utilisation=0.7)  # fmt: skip
    choices = found.choices
    with canvas(figsize=(8, 1.4 + 0.5 * len(choices))) as (figure, (axes,)):
        for place, choice in enumerate(choices):
            axes.barh(place, choice.dollars_per_hour, color=GREEN if place == 0 else LIGHT,
                      edgecolor=GREY, linewidth=0.5)  # fmt: skip
            text = f"${choice.dollars_per_hour:.2f}, {1e3 * choice.latency:.1f} ms"
            axes.annotate(text, (choice.dollars_per_hour, place), (4, 0), textcoords="offset points", va="center")
        split = lambda c: "" if c.deployment.parallel.tensor == 1 else f", tensor {c.deployment.parallel.tensor}"  # noqa: E731
        names = [f"{c.devices} x {c.hardware}{split(c)}\n{c.deployment.weights}, batch {c.batch}" for c in choices]
        axes.set_yticks(range(len(choices)), names, fontsize=10)
        axes.set_ylim(len(choices) - 0.4, -0.6)
        axes.set_xlim(0, 1.4 * max(c.dollars_per_hour for c in choices))
        best, last = choices[0], choices[-1]
        times = last.dollars_per_hour / best.dollars_per_hour
        equal = sum(c.dollars_per_hour == best.dollars_per_hour for c in choices)
        why = f"the fastest of {equal} at ${best.dollars_per_hour:g}; " if equal > 1 else ""
        title = f"{names[0].splitlines()[0]} keep the promises,\n{why}the dearest costs {times:.1f}x as much"
        label(axes, title=title, x="$ an hour (prices of the example), and time per token")
    return figure
