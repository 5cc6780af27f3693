"""Figures of speculation: where drafts and target agree, tokens per pass, the best γ, the batch, what was measured."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from costmodel.common.checks import present
from costmodel.evaluate import evaluate
from costmodel.hardware import accelerator
from costmodel.lab.speculation import acceptance_rate
from costmodel.plotting.style import BLUE, GREEN, GREY, LIGHT, ORANGE, PURPLE, RED, canvas, label
from costmodel.speculation import Speculation, best_gamma_formula, expected_tokens, ideal_best_gamma, ideal_speedup
from costmodel.speculation.published import LEVIATHAN
from costmodel.zoo import load

COLORS = (BLUE, ORANGE, GREEN, PURPLE)


def where_draft_and_target_agree(p: Sequence[float] = (0.5, 0.3, 0.2), q: Sequence[float] = (0.3, 0.3, 0.4)) -> Figure:
    """Target and draft probabilities of a few tokens, and what they share."""
    target, draft = np.asarray(p), np.asarray(q)
    places = np.arange(len(p))
    with canvas(figsize=(8, 3.8)) as (figure, (axes,)):
        axes.bar(places - 0.2, target, 0.36, color=BLUE, label="target p")
        axes.bar(places + 0.2, draft, 0.36, color=ORANGE, label="draft q")
        shared = np.minimum(target, draft)
        axes.bar(places - 0.2, shared, 0.36, fill=False, hatch="//", edgecolor="white")
        axes.bar(places + 0.2, shared, 0.36, fill=False, hatch="//", edgecolor="white")
        axes.bar(0, 0, color=GREY, hatch="//", edgecolor="white", label="min(p, q)")
        for x, (a, b) in enumerate(zip(p, q, strict=True)):
            note = f"drafted too rarely:\nreplacements, {a - b:.1f}" if a > b else f"kept {a / b:.0%} of the time"
            axes.text(x, max(a, b) + 0.015, note, ha="center", fontsize=11)
        axes.set_xticks(places, [f"token {i}" for i in places])
        axes.set_ylim(0, 1.35 * max(*p, *q))
        axes.legend(loc="upper right")
        alpha = acceptance_rate(target, draft)
        title = f"{alpha:.0%} of the drafts are kept: as much as p and q share"
        label(axes, title=title, y="probability")
    return figure


def tokens_per_pass(gammas: Sequence[int] = (1, 2, 4, 8)) -> Figure:
    """Expected tokens per pass of the target against the acceptance rate, for several numbers of drafts."""
    rates = np.linspace(0, 1, 201)
    with canvas() as (figure, (axes,)):
        for n, color in zip(gammas, COLORS, strict=True):
            axes.plot(rates, evaluate(expected_tokens(gamma=n), alpha=rates), color=color, label=f"γ = {n}")
            axes.plot(1, n + 1, "o", color=color)
            axes.annotate(f"{n + 1} at most", (1, n + 1), (8, -4), textcoords="offset points", fontsize=11)
        at = float(expected_tokens(0.8, 4))
        axes.plot(0.8, at, "o", color=GREY)
        axes.annotate(f"{at:.2f}", (0.8, at), (6, -16), textcoords="offset points")
        axes.set_xlim(0, 1.16)
        axes.set_xticks(np.arange(0, 1.01, 0.2))
        axes.set_ylim(0)
        axes.legend(loc="upper left")
        title = f"Four guesses at 80% acceptance yield {at:.2f} tokens per pass;\nmany guesses need a very good draft"
        label(axes, title=title, x="acceptance rate α", y="tokens per pass")
    return figure


def speedup_against_gamma(rate: float = 0.8, costs: Sequence[float] = (0.02, 0.1, 0.3), most: int = 20) -> Figure:
    """The ideal speed-up against the number of drafts for cheap and dear drafts, with the best of each."""
    gammas = np.arange(most + 1)
    with canvas() as (figure, (axes,)):
        found = []
        for c, color in zip(costs, COLORS, strict=False):
            axes.plot(gammas, [ideal_speedup(rate, int(n), c) for n in gammas], ".-", color=color, label=f"c = {c:g}")
            best = ideal_best_gamma(rate, c)
            found.append(best)
            peak = float(best_gamma_formula(rate, c))
            axes.axvline(peak, color=color, linestyle=":", linewidth=1.2)
            axes.plot(best, ideal_speedup(rate, best, c), "o", color=color, markersize=9)
            axes.annotate(f"γ = {best}", (best, ideal_speedup(rate, best, c)), (6, 7), textcoords="offset points")
        axes.axhline(1, color=GREY, linewidth=1.2)
        axes.set_xlim(0, most)
        axes.set_xticks(range(0, most + 1, 2))
        axes.set_ylim(0.5, 5.4)
        axes.legend(loc="upper right", title="draft step / target step")
        title = (
            f"The dearer the draft, the fewer guesses pay:\nat α = {rate:g} the best γ is {', '.join(map(str, found))}"
        )
        label(axes, title=title, x="drafts per round γ (dotted: the closed form)", y="times as fast")
    return figure


def speedup_against_batch(
    rate: float = 0.8, gamma: int = 4, contexts: Sequence[int] = (1024, 8192, 32768), cards: int = 4
) -> Figure:
    """Speed-up of Llama-3-70B with Llama-3-8B as draft against the batch, at several contexts; dashed: does not fit."""
    pair = Speculation(load("llama-3.1-70b"), accelerator("h100-sxm").times(cards), load("llama-3.1-8b"))
    batches = np.unique(np.geomspace(1, 1024, 61).round().astype(int)).tolist()
    with canvas() as (figure, (axes,)):
        last = None
        for context, color in zip(contexts, COLORS, strict=False):
            gains = [pair.speedup(rate, batch=b, context=context, gamma=gamma) for b in batches]
            limit = present("the limit", pair.largest_batch(context))
            fit = sum(b <= limit for b in batches)
            axes.plot(batches[:fit], gains[:fit], color=color, label=f"{context:,} tokens (room for {limit})")
            past = slice(max(fit - 1, 0), None)
            axes.plot(batches[past], gains[past], color=color, linestyle="--", linewidth=1.3, alpha=0.7)
            last = last or pair.largest_paying_batch(rate, context=context, gamma=gamma)
        axes.axhline(1, color=GREY, linewidth=1.2)
        axes.axhspan(0, 1, color=LIGHT, alpha=0.5)
        axes.text(1.1, 0.86, "slower than not guessing", color=GREY)
        axes.axvline(present("the last batch that pays", last), color=RED, linestyle=":", linewidth=1.5)
        axes.annotate(f"B = {last}", (last, 2), (5, 0), textcoords="offset points", color=RED)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes.set_xlim(1, 1024)
        axes.set_ylim(0.6)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 0.2), title="context (dashed: does not fit)")
        title = (
            f"A full batch has no idle arithmetic left: past B = {last} guesses cost time\nat {contexts[0]:,} tokens"
        )
        x = f"sequences in the batch (Llama-3.1-70B, draft 8B, {cards} H100, α = {rate:g}, γ = {gamma})"
        label(axes, title=title, x=x, y="times as fast")
    return figure


def measured_against_estimate() -> Figure:
    """Leviathan's twelve measured speed-ups beside the estimate for a free draft and what α as an average allows."""
    beaten = sum(row.beats_estimate for row in LEVIATHAN)
    with canvas(figsize=(8, 4.8)) as (figure, (axes,)):
        for y, row in enumerate(reversed(LEVIATHAN)):
            axes.plot([row.estimate, row.ceiling], [y, y], color=LIGHT, linewidth=9, solid_capstyle="butt", zorder=1)
            axes.plot([row.estimate] * 2, [y - 0.3, y + 0.3], color=GREY, linewidth=2, zorder=2)
            axes.plot([row.most_of_text] * 2, [y - 0.3, y + 0.3], color=GREEN, linewidth=2, zorder=2)
            axes.plot(row.speedup, y, "o", color=RED if row.beats_estimate else BLUE, markersize=8, zorder=3)
        names = [f"{r.task}, {r.draft}, T = {r.temperature}, γ = {r.gamma}" for r in reversed(LEVIATHAN)]
        axes.set_yticks(range(len(LEVIATHAN)), names, fontsize=10)
        axes.set_xlim(1, 8.2)
        for color, name in ((BLUE, "measured"), (RED, "measured, above the estimate")):
            axes.plot([], [], "o", color=color, label=name)
        axes.plot([], [], "|", color=GREY, markersize=14, markeredgewidth=2, label="estimate, free draft")
        axes.plot([], [], "|", color=GREEN, markersize=14, markeredgewidth=2, label="any text: 1/(1 − α), γ + 1")
        axes.plot([], [], color=LIGHT, linewidth=9, label="easy and hard rounds: up to 1 + α·γ")
        axes.legend(loc="lower right", fontsize=10)
        beyond = sum(row.speedup > row.most_of_text for row in LEVIATHAN)
        title = (
            f"{beaten} of {len(LEVIATHAN)} measurements beat the formula,\n{beyond} of them any text with that average"
        )
        label(axes, title=title, x="times as fast (Leviathan et al., table 2)")
    return figure
