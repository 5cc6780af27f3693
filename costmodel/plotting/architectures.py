"""Figures of smaller caches: who shares keys and values, what a sequence keeps, what a step reads."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure
from sympy import Symbol

from costmodel.evaluate import evaluate
from costmodel.exact import Number
from costmodel.hardware import accelerator
from costmodel.layers import Attention, LatentAttention
from costmodel.layers._layer import Layer
from costmodel.model import Block, Model, transformer
from costmodel.plotting._shapes import arrow, board, box, say
from costmodel.plotting.style import BLUE, GREEN, GREY, KILO, ORANGE, PURPLE, RED, SKY, canvas, label
from costmodel.sizing import Deployment
from costmodel.symbols import C, D, F, H, K, L, N, R, S, V, W
from costmodel.textbook.stats import LLAMA_2_13B
from costmodel.zoo import load

# Llama-2-13B with 8 key/value heads; C and R as in DeepSeek-V2, W as in Gemma 3.
COMMON = LLAMA_2_13B | {K: 8, C: 512, R: 64, W: 1024}


def stacked(mixers: Sequence[tuple[Layer, Number]], sizes: Mapping[Symbol, int] | None = None) -> Model:
    """A dense transformer of the given sizes whose attention layers are [(layer, count), …]."""
    sizes = sizes or {}
    model = transformer(**{s.name: sizes.get(s, s) for s in (V, D, F, N, K, H, L)})
    before, _, *rest = model.blocks[0][0].layers
    blocks = tuple((Block((before, mixer, *rest), f"kind {i}"), n) for i, (mixer, n) in enumerate(mixers, start=1))
    return replace(model, blocks=blocks if len(blocks) > 1 else ((replace(blocks[0][0], name="block"), blocks[0][1]),))


def architectures(sizes: Mapping[Symbol, int] | None = None, reserve: float = 0.1) -> dict[str, Deployment]:
    """One model with each kind of attention, on an H100; sizes left out stay symbols.

    Bytes kept per sequence at 16 bit: MHA 4·L·N·H·S, GQA 4·L·K·H·S, MQA 4·L·H·S, MLA 2·L·(C + R)·S, CLA half of GQA's,
    a window GQA's with min(S, W) for S, one global layer in six a mixture of the two, fp8 half of GQA's.
    """
    sizes = sizes or {}
    d, n, k, h, layers, c, r, w = (sizes.get(s, s) for s in (D, N, K, H, L, C, R, W))
    grouped, local = Attention(d, n, k, h), Attention(d, n, k, h, window=w)
    everywhere, wide = layers // 6, "bf16"
    kinds: dict[str, tuple[list[tuple[Layer, Number]], str]] = {
        "MHA": ([(Attention(d, n, n, h), layers)], wide),
        "GQA": ([(grouped, layers)], wide),
        "MQA": ([(Attention(d, n, 1, h), layers)], wide),
        "MLA": ([(LatentAttention(d, n, c, r, h, h), layers)], wide),
        "CLA on GQA": ([(grouped, layers - layers // 2), (replace(grouped, borrows_kv=True), layers // 2)], wide),
        "GQA, windows": ([(local, layers)], wide),
        "GQA, 1 global in 6": ([(local, layers - everywhere), (grouped, everywhere)], wide),
        "GQA, fp8 cache": ([(grouped, layers)], "fp8"),
    }
    h100 = accelerator("h100-sxm")
    return {
        name: Deployment(stacked(mixers, sizes), h100, cache=cache, reserve=reserve)
        for name, (mixers, cache) in kinds.items()
    }


def cache_read(deployment: Deployment, context: Number = S) -> Number:
    """Bytes of cache that one sequence's step moves: reads of the old tokens, the write of the new."""
    return deployment.model.decode(1, context).elements("cache") * deployment.widths.cache


def who_shares_keys_and_values(heads: int = 8, groups: int = 2) -> Figure:
    """Query heads and the key/value heads they read: multi-head, grouped, multi-query, latent."""
    kinds = [(f"MHA: K = {heads}", heads), (f"GQA: K = {groups}", groups), ("MQA: K = 1", 1), ("MLA: one latent", 0)]
    with board(
        f"{heads} query heads read {heads} pairs of key and value heads,\nor {groups}, or 1, or a single latent", 4.2
    ) as (figure, axes):
        for panel, (name, kv_heads) in enumerate(kinds):
            left, side = panel * 4.15, 3.5 / heads
            color = BLUE if kv_heads else PURPLE
            say(axes, left + 1.75, 0.35, name)
            for head in range(heads):
                box(axes, left + head * side, 3.3, side * 0.8, 0.7, "q", ORANGE, size=11)
            count = kv_heads or 1
            share = 3.5 / count
            for pair in range(count):
                inner = "kv" if share < 1 else "k and v" if kv_heads else "c, and a rotated part"
                width = share - 0.2 * side if kv_heads else 3.42
                box(axes, left + pair * share, 1.0, width, 0.8, inner, color, size=9 if share < 1 else 11)
            for head in range(heads):
                end = left + (head + 0.4) * side
                arrow(axes, (end, 1.85), (end, 3.25), color=GREY)
    return figure


def cache_per_sequence() -> Figure:
    """Cache of one sequence against its length, one line per kind of attention, from `architectures`."""
    shortest, at, longest = 256, 32 * KILO, 128 * KILO
    context = np.geomspace(shortest, longest, 300)
    colors = (GREY, BLUE, SKY, PURPLE, GREEN, RED, ORANGE, GREEN)
    lines = ("-", "-", "--", "-.", "-", "-", "--", ":")
    with canvas(figsize=(8, 4.8)) as (figure, (axes,)):
        kept, ends = {}, {}
        for (name, deployment), color, line in zip(architectures(COMMON).items(), colors, lines, strict=True):
            formula = deployment.cache_bytes(S)
            kept[name] = float(formula.subs(S, at))
            found = evaluate(formula, S=context) / 1e9
            ends[name] = (found[-1], color)
            axes.loglog(context, found, line, color=color)
        ends["CLA, fp8"] = ends.pop("CLA on GQA")
        ends.pop("GQA, fp8 cache")
        for name, (end, color) in ends.items():
            side = {"MQA": "top", "GQA, 1 global in 6": "bottom"}.get(name, "center")  # these two end close together
            axes.text(longest * 1.08, end, name.removeprefix("GQA, "), color=color, va=side, fontsize=11)
        most = min(kept, key=kept.__getitem__)
        less = {kind: f"{kept['MHA'] / found:.0f} times" for kind, found in kept.items()}
        title = f"{at:,} tokens: MHA keeps {kept['MHA'] / 1e9:.1f} GB, MLA {less['MLA']} less,\n"
        title += f"MQA {less['MQA']}, {most.removeprefix('GQA, ')} on top of GQA {less[most]}"
        label(axes, title=title, x="S, tokens of context", y="GB (10⁹ bytes) per sequence")
        axes.set_xlim(shortest, longest)
        axes.set_xticks([KILO, 4 * KILO, 32 * KILO, longest], ["1k", "4k", "32k", "128k"])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    return figure


def capacity_against_traffic(context: int = 32 * KILO) -> Figure:
    """Two bars per kind of attention, as shares of MHA's: what is kept, and what a step reads."""
    found = architectures(COMMON)
    kept = {name: float(d.cache_bytes(context)) for name, d in found.items()}
    read = {name: float(cache_read(d, context)) for name, d in found.items()}
    shares = {name: (kept[name] / kept["MHA"], read[name] / read["MHA"]) for name in found if name != "MHA"}
    with canvas(figsize=(8, 4.6)) as (figure, (axes,)):
        place = np.arange(len(shares))
        for row, (color, hatch, word) in enumerate(((BLUE, "", "kept"), (ORANGE, "//", "read in each step"))):
            values = [pair[row] for pair in shares.values()]
            axes.barh(place + 0.4 * row - 0.2, values, 0.4, color=color, hatch=hatch, edgecolor="white", label=word)
            for y, value in zip(place, values, strict=True):
                axes.text(value + 0.003, y + 0.4 * row - 0.2, f"{value:.1%}", va="center", fontsize=11)
        axes.set_yticks(place, list(shares))
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.legend(loc="lower right")
        apart = [name for name, (a, b) in shares.items() if b > 1.01 * a]
        cla = shares["CLA on GQA"]
        title = f"Of {len(shares)} ways to save, {len(apart)} saves room and no reading:\n"
        title += f"CLA keeps {cla[0]:.0%} of MHA's cache and reads {cla[1]:.0%}"
        label(axes, title=title, x=f"share of MHA's, {context:,} tokens of context")
        axes.set_xlim(0, 0.25)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    return figure


def local_and_global() -> Figure:
    """Cache of one sequence of Gemma 3 27B, and of the same model with no windows, against the context."""
    model, longest = load("gemma-3-27b-it"), 128 * KILO
    context = np.linspace(1, longest, 300)
    with canvas() as (figure, (axes,)):
        ends = {}
        for color, line, text, found in (
            (RED, "--", "every layer global", without_windows(model)),
            (BLUE, "-", "as it is", model),
        ):
            formula = found.cache_bytes(S)
            ends[text] = float(formula.subs(S, longest))
            axes.plot(context / KILO, evaluate(formula, S=context) / 1e9, line, color=color)
            where = (longest / KILO * 0.7, float(formula.subs(S, longest * 0.7)) / 1e9)
            axes.annotate(text, where, (-8, 6), textcoords="offset points", ha="right", color=color)
        ratio = ends["every layer global"] / ends["as it is"]
        title = f"At {longest // KILO}k tokens the windows of Gemma 3 27B\nmake its cache {ratio:.1f} times smaller"
        label(axes, title=title, x="thousand (2¹⁰) tokens of context", y="GB (10⁹ bytes) per sequence")
        axes.set_xlim(0, longest / KILO)
        axes.set_xticks(np.linspace(0, longest / KILO, 5))
        axes.set_ylim(0, None)
    return figure


def without_windows(model: Model) -> Model:
    """The same model with every window opened."""
    opened = []
    for block, count in model.blocks:
        layers = tuple(replace(layer, window=None) if isinstance(layer, Attention) else layer for layer in block.layers)
        opened.append((replace(block, layers=layers), count))
    return replace(model, blocks=tuple(opened))
