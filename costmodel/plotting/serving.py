"""Figures of a service under load: how long users wait under each policy, and how many are served in time."""

from functools import lru_cache

import numpy as np
from matplotlib.figure import Figure

from costmodel.common.checks import present
from costmodel.hardware import accelerator
from costmodel.plotting.style import BLUE, GREEN, GREY, ORANGE, RED, canvas, label
from costmodel.serving import PassCosts, Policy, ServingResult, Slo, simulate, synthetic_trace
from costmodel.sizing import Deployment
from costmodel.zoo import load

RATES = (2, 4, 8, 12, 16, 20, 24, 28, 32, 40)
POLICIES = {"static": (ORANGE, "s"), "continuous": (BLUE, "o"), "chunked": (GREEN, "^")}
LIMITS = Slo(ttft=0.5, tpot=0.025)


@lru_cache(maxsize=1)
def _served(requests: int = 800) -> dict[str, list[ServingResult]]:
    """Llama-3-8B on one H100, 64 slots, requests like the Azure conversations, at every rate under every policy."""
    costs = PassCosts(Deployment(load("llama-3-8b"), accelerator("h100-sxm")))
    trace = synthetic_trace(requests=requests, rate=1.0, seed=1)
    return {
        kind: [simulate(trace.scaled(rate / trace.rate), costs, Policy(kind=kind, slots=64)) for rate in RATES]
        for kind in POLICIES
    }


def latency_against_load() -> Figure:
    """Time to first token (left) and time per token after it (right), 99th percentile, as requests come faster."""
    served, panels = _served(), (("ttft_s", 1, "seconds to the first token, p99"), ("tpot_s", 1e3, "ms per token, p99"))
    at = {kind: {name: [scale * r.summary()[name]["p99"] for r in results] for name, scale, _ in panels}
          for kind, results in served.items()}  # fmt: skip
    with canvas(1, 2, figsize=(9, 4)) as (figure, both):
        for axes, (name, _, _) in zip(both, panels, strict=True):
            for kind, (color, marker) in POLICIES.items():
                axes.plot(RATES, at[kind][name], marker + "-", color=color, label=kind)
            axes.set_ylim(0)
        both[0].set_yscale("log")
        both[0].set_ylim(0.02)
        both[1].legend(loc="upper left")
        both[1].set_ylim(0, 1.35 * max(at["continuous"]["tpot_s"]))
        slow, quick = (at[kind]["ttft_s"][RATES.index(8)] for kind in ("static", "continuous"))
        label(both[0], title=f"At 8 requests/s static batching\nmakes users wait {slow / quick:.0f}x as long",
              x="requests/s", y=panels[0][2])  # fmt: skip
        whole, pieces = (at[kind]["tpot_s"][RATES.index(16)] for kind in ("continuous", "chunked"))
        label(both[1], title=f"At 16, prompts in pieces:\n{pieces:.0f} ms a token in place of {whole:.0f}",
              x="requests/s", y=panels[1][2])  # fmt: skip
    return figure


def goodput_against_load() -> Figure:
    """Requests served within the limits, as requests come faster."""
    good = {kind: [r.goodput(LIMITS) for r in results] for kind, results in _served().items()}
    with canvas(figsize=(8, 4)) as (figure, (axes,)):
        axes.plot(RATES, RATES, ":", color=GREY)
        axes.text(RATES[4] - 0.5, RATES[4] + 0.5, "all of them", color=GREY, ha="right")
        for kind, (color, marker) in POLICIES.items():
            axes.plot(RATES, good[kind], marker + "-", color=color, label=kind)
        best = {kind: int(np.argmax(values)) for kind, values in good.items()}
        for kind in ("continuous", "chunked"):
            axes.plot(RATES[best[kind]], good[kind][best[kind]], "o", color=RED, markersize=11, fillstyle="none")
        axes.set_ylim(0, 42)
        axes.legend(loc="upper left")
        pace = present("tpot", LIMITS.tpot)
        most = {kind: good[kind][best[kind]] for kind in POLICIES}
        title = (
            f"Within {LIMITS.ttft} s to the first token and {1e3 * pace:g} ms a token, one card\nserves "
            f"{most['static']:.1f}, {most['continuous']:.0f} or {most['chunked']:.0f} requests/s: the policy decides"
        )
        label(axes, title=title, x="requests/s that arrive", y="requests/s served in time")
    return figure
