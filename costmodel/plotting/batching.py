"""Static against continuous batching: who holds which slot when, and what waiting for the longest costs."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from costmodel.hardware import accelerator
from costmodel.lab.batching import ServingRun, simulate_continuous_batching, simulate_static_batching
from costmodel.plotting.style import BLUE, GREEN, GREY, LIGHT, ORANGE, canvas, label
from costmodel.serving import Policy, simulate, synthetic_trace
from costmodel.sizing import Deployment
from costmodel.zoo import load

LENGTHS = tuple(np.random.default_rng(0).integers(5, 120, 32).tolist())


def _slots(axes: Axes, run: ServingRun, color: str) -> None:
    """One bar per request in its slot's row."""
    axes.axvspan(0, run.steps, color=LIGHT, zorder=0)
    for slot in range(run.slots):
        requests = zip(run.held, run.starts, run.lengths, strict=True)
        bars = [(start, length) for held, start, length in requests if held == slot]
        axes.broken_barh(bars, (slot + 0.6, 0.8), facecolor=color, edgecolor="white", linewidth=1)
    axes.axvline(run.steps, color=GREY, linewidth=1.2)
    axes.grid(visible=False)
    axes.set(ylim=(run.slots + 0.6, 0.4), yticks=range(1, run.slots + 1))


def slots_over_time(lengths: Sequence[int] = LENGTHS, slots: int = 8) -> Figure:
    """Two timelines of the same requests: batches that wait for their longest, and slots refilled at once."""
    runs = (("Static", simulate_static_batching, ORANGE), ("Continuous", simulate_continuous_batching, BLUE))
    with canvas(2, 1, figsize=(8.0, 6.0)) as (figure, axes):
        played = [simulate(lengths, slots) for _, simulate, _ in runs]
        for panel, run, (name, _, color) in zip(axes, played, runs, strict=True):
            _slots(panel, run, color)
            panel.set_xlim(0, 1.02 * max(r.steps for r in played))
            title = f"{name}: {run.steps} steps, {run.utilization:.0%} of the slots used"
            label(panel, title=title, x="step" if panel is axes[1] else "", y="slot")
    return figure


def use_against_slots(mean: int = 100, requests: int = 4096, seed: int = 0) -> Figure:
    """How much of the slots a static and a continuous batch use, the more slots there are; and 1/H, the expectation."""
    lengths = np.random.default_rng(seed).geometric(1 / mean, requests).tolist()
    counts = [2**i for i in range(8)]
    harmonic = np.cumsum(1 / np.arange(1, counts[-1] + 1))
    with canvas() as (figure, (axes,)):
        for simulate, color, name in (
            (simulate_continuous_batching, BLUE, "continuous"),
            (simulate_static_batching, ORANGE, "static"),
        ):
            use = [100 * simulate(lengths, n).utilization for n in counts]
            axes.plot(counts, use, "o", color=color, label=name)
        smooth = np.arange(1, counts[-1] + 1)
        axes.plot(smooth, 100 / harmonic, color=GREY, linewidth=1.5, zorder=1, label="1 / (1 + 1/2 + … + 1/slots)")
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, [str(n) for n in counts])
        axes.set_ylim(0, 105)
        axes.legend(loc="lower left")
        share = 100 / harmonic[7]
        title = f"The larger a static batch, the more of it waits: of 8 slots {share:.0f} % work"
        label(axes, title=title, x="slots", y="slot-steps in use (%)")
    return figure


def waiting_against_load(model: str = "llama-3-8b", on: str = "h100-sxm", slots: int = 64) -> Figure:
    """Time to first token and slow gaps between tokens, against requests per second, under three policies."""
    deployment, rates = Deployment(load(model), accelerator(on)), [1, 2, 4, 8, 16, 24, 32]
    traces = [synthetic_trace(requests=800, rate=rate) for rate in rates]
    policies = (("static", "o-", ORANGE), ("continuous", "s-", BLUE), ("chunked", "^-", GREEN))
    first, gaps = {}, {}
    with canvas(1, 2, figsize=(8.0, 4.4)) as (figure, axes):
        for kind, marker, color in policies:
            results = [simulate(trace, deployment, Policy(kind=kind, slots=slots)) for trace in traces]
            first[kind] = [float(np.median(r.ttft_s)) for r in results]
            gaps[kind] = [1e3 * float(np.nanpercentile(r.tpot_s, 99)) for r in results]
            axes[0].plot(rates, first[kind], marker, color=color, label=kind)
            axes[1].plot(rates, gaps[kind], marker, color=color, label=kind)
        axes[0].set_yscale("log")
        axes[1].set_ylim(0, None)
        axes[1].legend(loc="lower right")
        static, refilled = first["static"][3], first["continuous"][3]
        title = f"First token at 8 requests/s:\n{static:.1f} s static, {refilled:.2f} s refilled"
        label(axes[0], title=title, x="requests per second", y="median time to first token (s)")
        whole, chunks = gaps["continuous"][5], gaps["chunked"][5]
        title = f"Slowest 1 % at 24 requests/s:\n{whole:.0f} ms a token, {chunks:.0f} in chunks"
        label(axes[1], title=title, x="requests per second", y="99th percentile, per token (ms)")
    return figure
