"""Figures of what does not grow: state against cache, recall from a fixed memory, parallel refinement."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sympy import Expr, solve

from costmodel.evaluate import evaluate
from costmodel.hardware import accelerator
from costmodel.lab.recall import added, attended, best_matrix, corrected, share_recalled
from costmodel.layers import Attention, LatentAttention, LinearAttention, Mamba
from costmodel.passes import ForwardPass
from costmodel.plotting.style import BLUE, GREEN, GREY, KILO, ORANGE, PURPLE, RED, SKY, canvas, label
from costmodel.roofline import timing
from costmodel.sizing import Deployment
from costmodel.symbols import B, C, D, H, K, L, N, R, S, W
from costmodel.zoo import load

SIZES = {D: 4096, N: 32, K: 8, H: 128, L: 32, W: 4096, C: 512, R: 64}  # Llama-3-8B; W, C and R as in Mistral, DeepSeek
MEGA = KILO**2


def elements_kept() -> dict[str, Expr]:
    """Elements kept per sequence of S tokens by L layers of each kind; Mamba with I = 2·D, n = 16, k = 4."""
    grouped = Attention().cache_elements(S)
    mamba = Mamba(D, 2 * D, 16, 4, rank=D / 16).cache_elements(S)
    return {
        "multi-head": L * Attention(kv_heads=N).cache_elements(S),
        "grouped-query": L * grouped,
        "latent (MLA)": L * LatentAttention().cache_elements(S),
        "hybrid, 1 in 8": L * (grouped + 7 * mamba) / 8,
        "sliding window": L * Attention(window=W).cache_elements(S),
        "linear attention": L * LinearAttention().cache_elements(S),
        "Mamba": L * mamba,
    }


def cache_against_state(longest: int = 400) -> Figure:
    """Elements kept against the context, for Llama-3-8B's sizes: where a growing cache passes a constant state."""
    context = np.arange(1, longest + 1)
    kept = {name: formula.subs(SIZES) for name, formula in elements_kept().items()}
    growing = kept["grouped-query"]
    with canvas() as (figure, (axes,)):
        axes.plot(context, evaluate(growing, S=context) / 1e6, color=RED)
        axes.annotate("grouped-query cache", (longest * 0.9, float(growing.subs(S, longest * 0.9)) / 1e6), (-8, 4),
                      textcoords="offset points", color=RED, ha="right")  # fmt: skip
        crossings = {}
        for name, color, line in (("linear attention", BLUE, "--"), ("Mamba", GREEN, "-.")):
            state = float(kept[name]) / 1e6
            crossings[name] = int(solve(growing - kept[name], S)[0])
            axes.axhline(state, color=color, linestyle=line)
            axes.plot(crossings[name], state, "o", color=color, markersize=9)
            side: dict[str, Any] = (
                {"x": 4, "ha": "left"} if name == "linear attention" else {"x": longest, "ha": "right"}
            )
            axes.text(y=state + 0.4, s=f"{name} state, {state:.1f} million", color=color, **side)
            axes.annotate(f"{crossings[name]} tokens", (crossings[name], state), (8, -16), textcoords="offset points")
        title = f"The cache is larger than Mamba's state after {crossings['Mamba']} tokens,\n"
        title += f"larger than linear attention's after {crossings['linear attention']}"
        label(axes, title=title, x="S, tokens of context", y="million elements per sequence")
        axes.set_xlim(0, longest)
        axes.set_ylim(0, None)
    return figure


def recall_against_pairs(width: int = 64, most: int = 256) -> Figure:
    """The share of key/value pairs recalled against how many were stored: fixed memories, and attention."""
    known = (1, 2, 4, 8, 12, 16, 24, 32, 48, 56, 64, 72, 80, 96, 128, 192)
    steps = (*(pairs for pairs in known if pairs < most), most)
    looks = {
        "attention keeps all pairs": (attended, RED, "-"),
        "the best possible matrix": (best_matrix, GREEN, "-."),
        "delta rule: correct, then add": (corrected, ORANGE, ":"),
        "linear attention: add": (added, BLUE, "--"),
    }
    with canvas() as (figure, (axes,)):
        full = {}
        for name, (memory, color, line) in looks.items():
            shares = [share_recalled(memory, pairs, width) for pairs in steps]
            full[memory] = max(pairs for pairs, share in zip(steps, shares, strict=True) if share > 0.9)
            axes.plot(steps, shares, line, color=color, label=name, linewidth=2.5)
        axes.axvline(width, color=GREY, linewidth=1)
        axes.text(width - 2, 0.62, f"H = {width}", color=GREY, ha="right")
        axes.legend(loc="center right", bbox_to_anchor=(1, 0.62))
        title = f"{width} x {width} numbers hold {full[best_matrix]} pairs at best, {full[added]} if only added up;\n"
        title += f"attention recalls all {full[attended]}"
        label(axes, title=title, x="pairs stored", y="share recalled, every sign right")
        axes.set_xlim(0, most)
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    return figure


def break_even_steps(batch: np.ndarray, tokens: int = 256, name: str = "llama-3-8b") -> np.ndarray:
    """Passes over all tokens at once that take as long as decoding them one by one, on an H100, for each batch."""
    model, hardware = load(name), accelerator("h100-sxm")
    together = ForwardPass(B, tokens, tokens, causal=False, head="all")
    one_pass = evaluate(timing(model.forward(together), hardware).seconds, B=batch)
    context = np.arange(1, tokens + 1)
    steps = Deployment(model, hardware).grid(np.asarray(batch)[:, np.newaxis], context)["seconds_per_token"]
    return steps.sum(axis=1) / one_pass


def steps_that_cost_the_same(tokens: int = 256) -> Figure:
    """How many refinement steps take as long as writing the tokens one by one, against the batch."""
    batch = np.geomspace(1, 512, 200)
    marks = np.array([1, 64])
    with canvas() as (figure, (axes,)):
        axes.loglog(batch, break_even_steps(batch, tokens), color=BLUE)
        found = break_even_steps(marks, tokens)
        for users, steps, where in zip(marks, found, ((10, 6), (8, 6)), strict=True):
            axes.plot(users, steps, "o", color=BLUE, markersize=8)
            axes.annotate(f"{users} sequence{'s' if users > 1 else ''}: {steps:.0f} steps", (users, steps), where,
                          textcoords="offset points")  # fmt: skip
        axes.text(1.2, 2, "below the line, refining is faster", color=GREY)
        axes.text(40, 60, "above it, one by one is faster", color=GREY)
        title = f"{found[0]:.0f} refinement steps take as long as {tokens} tokens one by one;\n"
        title += f"with {marks[1]} sequences at once, only {found[1]:.0f} do"
        label(axes, title=title, x="B, sequences at once", y="refinement steps")
        axes.set_ylim(1, 700)
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    return figure


def what_a_sequence_keeps() -> Figure:
    """Elements kept per sequence against the context, one line per architecture, from `elements_kept`."""
    context = np.geomspace(64, MEGA, 300)
    looks = dict(zip(elements_kept(), (ORANGE, RED, PURPLE, SKY, GREY, BLUE, GREEN), strict=True))
    lines = dict(zip(looks, ("-", "-", "--", "-.", ":", "--", "-."), strict=True))
    with canvas(figsize=(8, 4.8)) as (figure, (axes,)):
        ends = {}
        for name, formula in elements_kept().items():
            found = evaluate(formula.subs(SIZES), S=context)
            ends[name] = found[-1]
            axes.loglog(context, found, lines[name], color=looks[name])
            axes.text(MEGA * 1.15, ends[name], name, color=looks[name], va="center", fontsize=11)
        ratio, hybrid = ends["grouped-query"] / ends["Mamba"], ends["grouped-query"] / ends["hybrid, 1 in 8"]
        title = "A million tokens: next to grouped-query attention Mamba\n"
        title += f"keeps {ratio:,.0f} times less, a hybrid {hybrid:.1f} times"
        label(axes, title=title, x="S, tokens of context", y="elements per sequence")
        axes.set_xlim(64, MEGA)
        axes.set_xticks([KILO, 32 * KILO, MEGA], ["1k", "32k", "1M"])
        axes.minorticks_off()
    return figure
