"""Figures of fewer bits: a ruler for each row, what methods save, what a deployment gains, and what was measured."""

import numpy as np
from matplotlib.figure import Figure

from costmodel.evidence import measurements
from costmodel.hardware import accelerator
from costmodel.lab.quantization import Scheme, awq, gptq, output_error, relative_error
from costmodel.plotting.style import BLUE, GREEN, GREY, LIGHT, ORANGE, RED, canvas, label
from costmodel.quantization import effective_bits, weight_width
from costmodel.sizing import Deployment
from costmodel.zoo import load

TWO_ROWS = ((0.31, -0.12, 0.05, 0.24, -0.28, 0.17), (-1.9, 2.8, 0.6, -0.9, 1.5, -2.4))
# What was measured: name, bits per weight with scales (16 before), the rows of evidence with 16 bits and with fewer.
MEASURED = (
    ("AWQ, Llama-3-8B on Jetson Orin", 4.16, "tinychat-012", "tinychat-013"),
    ("AWQ, Llama-3-8B on RTX 4090", 4.16, "tinychat-001", "tinychat-002"),
    ("AWQ, Llama-3-8B on A100", 4.16, "tinychat-006", "tinychat-007"),
    ("gpt-fast int4, Llama-2-7B on A100", 5.0, "gptfast-001", "gptfast-003"),
    ("gpt-fast int8, Llama-2-7B on A100", 8.0, "gptfast-001", "gptfast-002"),
    ("DeepSpeed int8, BLOOM-176B on 8 A100", 8.0, "bloom-001", "bloom-005"),
)
UNLISTED = (("bitsandbytes int8, 0.5B on T4", 8.0, 5.05 / 12.65),)  # earino.github.io; not among the evidence


def ruler_per_row(rows: tuple[tuple[float, ...], ...] = TWO_ROWS, bits: int = 4) -> Figure:
    """A row of small and one of large numbers, with the marks of one ruler for both and of a ruler for each."""
    W = np.array(rows)
    ways = {"one ruler for all": Scheme(bits, group=0).quantize(W), "a ruler per row": Scheme(bits).quantize(W)}
    errors = [relative_error(W[0], found.values()[0]) for found in ways.values()]
    with canvas(1, 2, figsize=(8, 3.4)) as (figure, both):
        for axes, (name, found) in zip(both, ways.items(), strict=True):
            for i, (row, values) in enumerate(zip(W, found.values(), strict=True)):
                scale, y = found.scales[min(i, len(found.scales) - 1), 0], len(W) - 1 - i
                top = 2 ** (bits - 1) - 1
                axes.vlines(scale * np.arange(-top, top + 1), y - 0.22, y - 0.06, color=GREY, linewidth=1.2)
                axes.hlines(y - 0.22, -scale * top, scale * top, color=GREY, linewidth=1.2)
                axes.plot(row, np.full(len(row), y + 0.16), "o", color=BLUE, label="weight" if i == 0 else None)
                axes.plot(values, np.full(len(row), y + 0.0), "^", color=RED, label="rounded" if i == 0 else None)
            axes.set_yticks(range(len(W)), ["large row", "small row"] if axes is both[0] else ["", ""])
            axes.set_ylim(-0.5, len(W) - 0.2)
            axes.grid(visible=False)
            axes.legend(loc="upper right", ncols=2, fontsize=10)
            lost = errors[0] if axes is both[0] else errors[1]
            verb = "loses" if axes is both[0] else "it loses"
            row = "the small row " if axes is both[0] else ""
            label(axes, title=f"{name[0].upper()}{name[1:]}:\n{row}{verb} {lost:.0%}", x="value of a weight")
    return figure


def outlier_layer(seed: int = 0, tokens: int = 256, size: int = 96) -> tuple[np.ndarray, np.ndarray]:
    """Weights, and correlated inputs with four columns thirty times as large, as large models have them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(tokens, size // 8)) @ rng.normal(size=(size // 8, size)) + rng.normal(size=(tokens, size))
    X[:, rng.choice(size, 4, replace=False)] *= 30
    return rng.normal(size=(size, size)), X


def output_error_against_bits(widths: tuple[int, ...] = (2, 3, 4, 5, 6, 8), group: int = 32) -> Figure:
    """How far a layer's outputs are off against the bits of its weights: to nearest, AWQ and GPTQ, held-out inputs."""
    W, X = outlier_layer(tokens=2048)
    seen, held_out = np.split(X, 2)
    ways = {
        "to nearest": (lambda scheme: scheme.quantize(W), RED, "s--"),
        "AWQ": (lambda scheme: awq(W, seen, scheme), ORANGE, "^-."),
        "GPTQ": (lambda scheme: gptq(W, seen, scheme), BLUE, "o-"),
    }
    with canvas() as (figure, (axes,)):
        found = {}
        for name, (way, color, line) in ways.items():
            found[name] = [output_error(W, way(Scheme(b, group)).values(), held_out) for b in widths]
            axes.plot(widths, found[name], line, color=color, label=name)
        at = widths.index(4)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:.1%}" if y < 0.01 else f"{y:.0%}")
        axes.set_xticks(widths)
        axes.legend(loc="upper right")
        off = ", ".join(f"{name} {errors[at]:.1%}" for name, errors in found.items())
        title = f"At 4 bits and with outliers, outputs are off by:\n{off}"
        label(axes, title=title, x=f"bits per weight (groups of {group})", y="error of the outputs")
    return figure


def what_fewer_bits_buy(name: str = "llama-3-8b", hardware: str = "h100-sxm", context: int = 1024) -> Figure:
    """Times as fast as bf16 against the batch, for 8 and 4 bits with scales, and the bytes' ratio that bounds it."""
    model, card, batch = load(name), accelerator(hardware), 2 ** np.arange(9)
    wide = Deployment(model, card, weights="bf16").grid(batch, context)["seconds_per_token"]
    with canvas() as (figure, (axes,)):
        gains = {}
        for bits, color, line in ((4, BLUE, "o-"), (8, ORANGE, "s--")):
            width = weight_width(bits, 128, 16)
            gains[bits] = wide / Deployment(model, card, weights=width).grid(batch, context)["seconds_per_token"]
            bound = 16 / float(effective_bits(bits, 128, 16))
            axes.plot(batch, gains[bits], line, color=color, label=f"int{bits}, groups of 128")
            axes.axhline(bound, color=color, linestyle=":", linewidth=1.5)
            axes.text(batch[-1], bound + 0.05, f"bytes of the weights: {bound:.2f}x fewer", ha="right", color=GREY)
        axes.set_xscale("log", base=2)
        axes.set_xticks(batch[::2], [str(b) for b in batch[::2]])
        axes.set_ylim(0.8, 4.4)
        axes.legend(loc="center right")
        first, last = gains[4][0], gains[4][-1]
        title = (
            f"4 bits make one user's tokens {first:.1f}x as fast,\nand those of a batch of {batch[-1]:,} {last:.1f}x"
        )
        label(axes, title=title, x=f"sequences in the batch (context {context:,})", y="times as fast as bf16")
    return figure


def measured_against_bytes() -> Figure:
    """Published speed-ups of quantized models beside the ratio of their bytes."""
    seconds = {row.id: row.value for row in measurements()}
    found = [(name, bits, seconds[wide] / seconds[narrow]) for name, bits, wide, narrow in MEASURED]
    shown = [*found, *UNLISTED][::-1]
    with canvas(figsize=(8, 4.4)) as (figure, (axes,)):
        for i, (_, bits, faster) in enumerate(shown):
            axes.barh(i, 16 / bits, color=LIGHT, label="bytes saved" if i == 0 else None)
            axes.barh(i, faster, height=0.4, color=GREEN if faster >= 1 else RED)
            axes.text(faster + 0.05, i, f"{faster:.2f}x", va="center", fontsize=11)
        axes.axvline(1, color=GREY, linewidth=1.2)
        axes.set_yticks(range(len(shown)), [name for name, *_ in shown])
        axes.grid(visible=False, axis="y")
        slower = sum(faster < 1 for *_, faster in shown)
        title = f"Fewer bits are not faster by themselves:\nnone of {len(shown)} reaches its bytes, {slower} got slower"
        label(axes, title=title, x="times as fast as 16 bits (wide: bytes saved)")
    return figure
