"""A service under load: how many requests it serves in time under each policy."""

import numpy as np
from matplotlib.figure import Figure

from costmodel.common.checks import present
from costmodel.hardware import accelerator
from costmodel.plotting.style import BLUE, GREEN, GREY, ORANGE, RED, canvas, label
from costmodel.serving import PassCosts, Policy, Slo, simulate, synthetic_trace
from costmodel.sizing import Deployment
from costmodel.zoo import load

RATES = (2, 4, 8, 12, 16, 20, 24, 28, 32, 40)
POLICIES = {"static": (ORANGE, "s"), "continuous": (BLUE, "o"), "chunked": (GREEN, "^")}
LIMITS = Slo(ttft=0.5, tpot=0.025)


def goodput_against_load() -> Figure:
    """Llama-3-8B on one H100, 64 slots, like the Azure conversations: served within the limits, as they come faster."""
    costs = PassCosts(Deployment(load("llama-3-8b"), accelerator("h100-sxm")))
    trace = synthetic_trace(requests=800, rate=1.0, seed=1)
    traces = [trace.scaled(rate / trace.rate) for rate in RATES]
    good = {
        kind: [simulate(asked, costs, Policy(kind=kind, slots=64)).goodput(LIMITS) for asked in traces]
        for kind in POLICIES
    }
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
