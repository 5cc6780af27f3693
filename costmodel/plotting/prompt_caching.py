"""What a shared prefix is worth: cost against the number of requests, hits against the size of the cache."""

import numpy as np
from matplotlib.figure import Figure

from costmodel.caching import break_even_requests, cached_prompt_cost, uncached_prompt_cost
from costmodel.lab.conversations import conversation_trace
from costmodel.lab.prefix_cache import hit_ratio
from costmodel.plotting.style import BLUE, GREEN, GREY, ORANGE, canvas, label


def cost_against_requests(prefix: int = 10_000, suffix: int = 500, dollars: float = 3.0, most: int = 100) -> Figure:
    """Cost of so many calls relative to no cache, for the two lifetimes that providers sell."""
    n = np.arange(1, most + 1)
    plain = uncached_prompt_cost(prefix, suffix, n, dollars / 1e6)
    with canvas() as (figure, (axes,)):
        axes.axhline(100, color=GREY, linewidth=1.2)
        for write, text, color in ((1.25, "5 minutes: write 1.25x", BLUE), (2, "1 hour: write 2x", ORANGE)):
            share = 100 * cached_prompt_cost(prefix, suffix, n, dollars / 1e6, write, 0.1) / plain
            axes.plot(n, share, "o-", color=color, markersize=3.5, label=text)
        floor = 100 * (0.1 * prefix + suffix) / (prefix + suffix)
        axes.axhline(
            floor, color=GREEN, linewidth=1.2, linestyle="--", label=f"reads and new tokens alone: {floor:.0f} %"
        )
        axes.set_xscale("log")
        axes.set_xticks([1, 2, 3, 5, 10, 30, 100], ["1", "2", "3", "5", "10", "30", "100"])
        axes.set_ylim(0, None)
        axes.legend(loc="upper right")
        saved = 1 - cached_prompt_cost(prefix, suffix, most, 1, 1.25, 0.1) / uncached_prompt_cost(
            prefix, suffix, most, 1
        )
        pays = int(np.ceil(break_even_requests(1.25, 0.1)))
        title = f"The cache pays from call {pays} on, and {most} calls cost {saved:.0%} less"
        label(axes, title=title, x="calls with the same prefix", y="cost, no cache = 100 (%)")
    return figure


def hits_against_capacity(requests: int = 2000, seed: int = 0) -> Figure:
    """Share of prompt blocks found, against the size of the cache, for few and many conversations at a time."""
    sizes = [2**i for i in range(4, 13)]
    with canvas() as (figure, (axes,)):
        for together, color in ((10, GREEN), (50, BLUE), (250, ORANGE)):
            trace = conversation_trace(requests, seed=seed, together=together)
            axes.plot(
                sizes,
                [100 * hit_ratio(trace, size) for size in sizes],
                "o-",
                color=color,
                label=f"{together} at a time",
            )
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=10)
        axes.set_ylim(0, 100)
        axes.legend(loc="lower right", title="conversations")
        title = "A prefix cache levels off once it holds every open conversation"
        label(axes, title=title, x="blocks that the cache holds", y="blocks found (%)")
    return figure
