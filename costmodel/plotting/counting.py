"""Figures of what a transformer counts: where work and traffic go, attention against MLP, naive against cached."""

import numpy as np
from matplotlib.figure import Figure

from costmodel.evaluate import evaluate
from costmodel.generation import cached_flops, naive_flops
from costmodel.hardware import accelerator
from costmodel.layers import Attention, Mlp
from costmodel.ops import Ledger
from costmodel.passes import ForwardPass
from costmodel.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, canvas, label
from costmodel.symbols import B, M
from costmodel.zoo import load

PARTS = {
    "projections": ("query", "key", "value", "output"),
    "attention": ("scores", "softmax", "values"),
    "MLP": ("up", "gate", "activation", "down"),
    "head": ("unembedding",),
}
REST = "norms, embedding"


def _shares(ledger: Ledger, what: str) -> list[float]:
    part_of = {name: part for part, names in PARTS.items() for name in names}
    totals = dict.fromkeys([*PARTS, REST], 0)
    for row in ledger.rows:
        totals[part_of.get(row.name, REST)] += getattr(row, what)
    return [total / getattr(ledger, what) for total in totals.values()]


def where_the_work_goes(name: str = "llama-3-8b", *, batch: int = 32, context: int = 8192) -> Figure:
    """Shares of FLOPs and of bytes by part of the model, for a prefill and for a decode step."""
    model = load(name)
    passes = {
        f"prefill of {context:,}": model.prefill(1, context),
        f"decode, batch {batch}": model.decode(batch, context),
    }
    bars = [
        (f"{run}: {what.replace('flops', 'FLOPs')}", _shares(ledger, what))
        for run, ledger in passes.items()
        for what in ("flops", "bytes")
    ]
    with canvas(figsize=(8, 3.6)) as (figure, (axes,)):
        left = np.zeros(len(bars))
        looks = zip((*PARTS, REST), (BLUE, ORANGE, GREEN, PURPLE, GREY), ("", "//", "..", "xx", "--"), strict=True)
        for i, (part, color, hatch) in enumerate(looks):
            width = np.array([shares[i] for _, shares in bars])
            axes.barh([b for b, _ in bars], width, left=left, color=color, hatch=hatch, edgecolor="white", label=part)
            for y, (x, w) in enumerate(zip(left, width, strict=True)):
                if w > 0.06:
                    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1}
                    axes.text(x + w / 2, y, f"{w:.0%}", ha="center", va="center", fontsize=11, bbox=box)
            left += width
        axes.invert_yaxis()
        axes.legend(
            ncols=5, loc="upper center", bbox_to_anchor=(0.36, -0.1), columnspacing=1.0, handlelength=1.4, fontsize=11
        )
        worked, moved = (shares[1] for label_, shares in bars[2:])
        cost = f"attention is {worked:.0%} of the work and {moved:.0%} of the traffic"
        label(axes, title=f"{name} decoding {batch} conversations of {context:,} tokens:\n{cost}")
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    return figure


def attention_against_mlp(name: str = "llama-2-13b", *, context: int = 8192, hardware: str = "h100-sxm") -> Figure:
    """Intensity of one decode step against the batch: the MLP's grows, attention's stays where its heads put it."""
    model, batch = load(name), np.geomspace(1, 1024, 100)
    mlp = next(x for x in model.blocks[0][0].layers if isinstance(x, Mlp))
    own = next(x for x in model.blocks[0][0].layers if isinstance(x, Attention))
    step, ridge = ForwardPass(B, 1, context), accelerator(hardware).ridge()
    with canvas() as (figure, (axes,)):
        axes.loglog(batch, evaluate(mlp.ledger(step).intensity, B=batch), color=BLUE)
        axes.text(13, 20, "MLP", color=BLUE, ha="right")
        for kv_heads, line in ((1, "--"), (8, "-."), (own.heads, ":")):
            core = Attention(own.width, own.heads, kv_heads, own.head_width).core(step).intensity
            found = evaluate(core, B=batch)
            axes.loglog(batch, found, line, color=ORANGE)
            text = f"attention, {kv_heads} KV head{'s' if kv_heads > 1 else ''}: {found[0]:.3g}"
            axes.text(1000, found[0] * 1.15, text, ha="right")
        axes.axhline(ridge, color=RED, linewidth=1.2)
        axes.text(1.1, ridge * 1.15, f"ridge {ridge:.0f}", color=RED)
        title = "Batching lifts the MLP towards the ridge;\nfor attention only fewer KV heads help"
        x = f"B, sequences decoded together ({name}, {context:,} tokens of context)"
        label(axes, title=title, x=x, y="FLOP per byte")
    return figure


def naive_against_cached(name: str = "llama-3-8b", *, prompt: int = 512, generated: int = 1024) -> Figure:
    """Total FLOPs of an answer against its length, with and without a cache, from the closed sums."""
    model, tokens = load(name), np.arange(1, generated + 1)
    naive, cached = (evaluate(total(model, prompt, M), M=tokens) for total in (naive_flops, cached_flops))
    with canvas() as (figure, (axes,)):
        axes.semilogy(tokens, naive, color=RED, linestyle="--", label="every pass re-runs the prefix")
        axes.semilogy(tokens, cached, color=BLUE, label="keys and values kept")
        axes.legend(loc="center right")
        axes.annotate(f"{naive[-1] / cached[-1]:.0f}x", (generated, naive[-1]), (-34, -22), textcoords="offset points")
        title = f"After {generated:,} tokens the cache has saved\n{1 - cached[-1] / naive[-1]:.1%} of the arithmetic"
        label(axes, title=title, x=f"tokens generated after a prompt of {prompt}", y="FLOP in all")
    return figure
