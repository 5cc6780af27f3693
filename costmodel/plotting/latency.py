"""Figures of time and memory: latency and throughput against the batch, what fits, the trade-off between the two."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from costmodel.common.checks import present
from costmodel.hardware import accelerator
from costmodel.plotting.style import BLUE, GREEN, GREY, LIGHT, ORANGE, RED, canvas, label
from costmodel.sizing import Deployment
from costmodel.textbook.stats import llama2_13b
from costmodel.zoo import load

CONTEXT = 1024


def _llama(kv_heads: int = 40, **options: Any) -> Deployment:
    return Deployment(llama2_13b(kv_heads), accelerator("h100-sxm"), **options)


def latency_and_throughput() -> Figure:
    """Latency and throughput of Llama-2-13B against the batch, memory-bound, and the batch that no longer fits."""
    llama, largest = _llama(textbook=True), 256
    batch = np.arange(1, largest + 1)
    found, limit = llama.grid(batch, CONTEXT), present("the limit", llama.largest_batch(CONTEXT))
    marks = (1, 64, largest)
    panels = (  # and where the number of each mark stands, clear of the line
        ("seconds_per_token", 1e3, "ms per token", ".1f", BLUE, ((8, -12), (8, -12), (-12, 0))),
        ("tokens_per_s", 1, "tokens/s", ",.0f", GREEN, ((8, 0), (8, -14), (0, -20))),
    )
    with canvas(1, 2, figsize=(8, 3.8)) as (figure, both):
        for axes, (name, scale, unit, digits, color, places) in zip(both, panels, strict=True):
            axes.plot(batch, scale * found[name], color=color)
            axes.axvspan(limit, largest, color=LIGHT, alpha=0.6)
            axes.text((limit + largest) / 2, 0.06 * scale * found[name].max(), "does not fit", ha="center", color=GREY)
            axes.set_ylim(0, 1.08 * scale * found[name].max())
            axes.set_xlim(1, largest)
            for b, place in zip(marks, places, strict=True):
                y = scale * found[name][b - 1]
                axes.plot(b, y, "o", color=color, clip_on=False)
                axes.annotate(f"{y:{digits}}", (b, y), place, textcoords="offset points",
                              ha="right" if b == largest else "left")  # fmt: skip
            label(axes, title="", x="B", y=unit)
        slower, gain = (found[name][largest - 1] / found[name][marks[1] - 1] for name, *_ in panels)
        both[0].set_title(f"B from {marks[1]} to {largest}: {slower:.1f}x the latency,")
        both[1].set_title(f"but {gain:.1f}x the tokens")
    return figure


def memory_against_capacity() -> Figure:
    """Weights and cache of Llama-2-13B at several batches, with 40 and with 8 key/value heads, against 80 GB."""
    cases = [(kv, b) for kv in (40, 8) for b in (1, 64, 256)]
    with canvas(figsize=(8, 3.8)) as (figure, (axes,)):
        for i, (kv_heads, batch) in enumerate(cases):
            d = _llama(kv_heads)
            weights, cache = d.weight_bytes / 1e9, batch * d.cache_bytes(CONTEXT) / 1e9
            axes.bar(i, weights, color=BLUE, label="weights" if i == 0 else None)
            axes.bar(
                i, cache, bottom=weights, color=ORANGE, hatch="//", edgecolor="white", label="cache" if i == 0 else None
            )
            verdict = "fits" if d.fits(batch, CONTEXT) else "does not fit"
            axes.text(
                i,
                weights + cache + 6,
                f"{weights + cache:.1f}\n{verdict}",
                ha="center",
                fontsize=11,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
            )
        axes.axhline(80, color=RED)
        axes.text(3.42, 84, "80 GB", color=RED)
        axes.set_xticks(range(len(cases)), [f"B = {b}\n{kv} KV heads" for kv, b in cases])
        axes.set_ylim(0, 290)
        axes.legend(loc="upper right")
        label(axes, title="With 8 KV heads in place of 40, batch 256 fits on one card", y="GB (10⁹ bytes)")
    return figure


def trade_off() -> Figure:
    """Throughput against latency as the batch doubles, one roofline over the whole pass, as far as memory reaches."""
    with canvas() as (figure, (axes,)):
        for name, color, marker in (("llama-2-13b", ORANGE, "s"), ("llama-3-8b", BLUE, "o")):
            d = Deployment(load(name), accelerator("h100-sxm"))
            batch = 2 ** np.arange(int(np.log2(present("the limit", d.largest_batch(CONTEXT)))) + 1)
            found = d.grid(batch, CONTEXT)
            x, y = 1e3 * found["seconds_per_token"], found["tokens_per_s"]
            axes.plot(x, y, marker + "-", color=color, label=name)
            for b, x_, y_ in zip(batch, x, y, strict=True):
                if b in (1, 16, 64, batch[-1]):
                    axes.annotate(f"B = {b}", (x_, y_), (8, -10), textcoords="offset points", fontsize=11)
        axes.set_yscale("log")
        axes.set_xlim(0, axes.get_xlim()[1] * 1.08)
        axes.legend(loc="lower right")
        fastest, largest = x[0], x[-1]
        slower, more = f"{largest / fastest:.1f}x as long", f"{y[-1] / y[0]:.0f}x as many come out"
        title = f"{name}: at batch {batch[-1]} a token takes {slower}\nand {more}"
        label(axes, title=title, x=f"ms per token (context {CONTEXT})", y="tokens/s")
    return figure
