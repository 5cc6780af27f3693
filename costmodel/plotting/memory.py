"""Figures of memory: the cache against the context, and how many conversations fit."""

import numpy as np
from matplotlib.figure import Figure

from costmodel.hardware import accelerator
from costmodel.plotting.style import BLUE, GREEN, ORANGE, RED, canvas, label
from costmodel.sizing import Deployment
from costmodel.textbook import kv_cache_bytes
from costmodel.zoo import load


def cache_against_context() -> Figure:
    """One conversation's cache against its length, with 32 and with 8 key/value heads, and the memory left for it."""
    longest, free = 128_000, 64 * 10**9
    context = np.linspace(0, longest, 200)
    with canvas() as (figure, (axes,)):
        ends = {}
        for kv_heads, color, line in ((32, ORANGE, "--"), (8, BLUE, "-")):
            per_token = kv_cache_bytes(1, 32, kv_heads, 128)
            ends[kv_heads] = kv_cache_bytes(longest, 32, kv_heads, 128) / 1e9
            axes.plot(context / 1e3, per_token * context / 1e9, line, color=color)
            where = (longest / 1e3 * 0.62, ends[kv_heads] * 0.62)
            axes.annotate(f"{kv_heads} KV heads", where, (-6, 8), textcoords="offset points", ha="right", color=color)
        axes.axhline(free / 1e9, color=RED, linewidth=1.2)
        axes.text(1, free / 1e9 + 1.5, f"{free / 1e9:.0f} GB free beside the weights", color=RED)
        first = f"{longest:,} tokens take {ends[32]:.1f} GB with 32 KV heads and do not fit"
        title = f"{first};\nwith 8 they take {ends[8]:.1f}"
        label(axes, title=title, x="thousand tokens of context", y="GB (10⁹ bytes)")
        axes.set_xlim(0, longest / 1e3)
        axes.set_ylim(0, 75)
    return figure


def conversations_that_fit() -> Figure:
    """The largest batch against the context, for three rounded models; the largest fits with 4 bits a weight only."""
    h100, context = accelerator("h100-sxm"), np.unique(np.geomspace(1000, 128_000, 120).astype(int))
    cases = (
        ("8b", "bf16", BLUE, "-"),
        ("7b", "bf16", ORANGE, "--"),
        ("70b", "int4", GREEN, "-."),
    )
    at = 32_000
    with canvas() as (figure, (axes,)):
        for name, weights, color, line in cases:
            d = Deployment(load(name), h100, weights=weights)
            fit = [d.largest_batch(int(c)) for c in context]
            text = f"{name}, {weights}: {d.largest_batch(at)} at {at:,} tokens"
            axes.loglog(context, fit, line, color=color, label=text)
        counts = {n: Deployment(load(n), h100).largest_batch(at) for n in ("8b", "7b")}
        axes.legend(loc="upper right")
        title = f"{counts['8b']} long conversations fit with 8 KV heads, {counts['7b']} with 32:"
        title += "\ngrouped heads are room for users"
        label(axes, title=title, x="tokens of context, each", y="conversations that fit on 80 GB")
        axes.set_ylim(1, 1000)
    return figure
