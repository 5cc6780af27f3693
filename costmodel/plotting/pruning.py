"""Figures of pruning: what the parts of a small model are worth, what repair gives back, and what a cut buys."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from matplotlib.figure import Figure

from costmodel.common.checks import present
from costmodel.hardware import accelerator
from costmodel.lab.importance import head_importance, loss_without_layer, neuron_importance
from costmodel.lab.language import entropy_rate, sample
from costmodel.lab.pruning import strongest
from costmodel.lab.repair import Recipes, compare_recipes, language_model
from costmodel.lab.training import mean_loss
from costmodel.lab.transformer import Decoder
from costmodel.model import Model
from costmodel.plotting.style import BLUE, GREEN, GREY, ORANGE, RED, SKY, canvas, label
from costmodel.sizing import Deployment
from costmodel.zoo import load
from costmodel.zoo.config import model_from_config
from costmodel.zoo.presets import preset_config


@dataclass(frozen=True)
class Study:
    """A small model trained, weighed part by part, cut to half in two directions, and repaired.

    Attributes
    ----------
    parent : the trained model
    without_layer : (L,) rise of the loss when each layer is removed [nat per token]
    neurons, heads : (L, F) and (L, K) importance
    recipes : "depth" and "width", two cuts to about the same number of weights
    """

    parent: Decoder
    without_layer: np.ndarray
    neurons: np.ndarray
    heads: np.ndarray
    recipes: dict[str, Recipes]


@cache
def small_study(steps: int = 50) -> Study:
    """The study on the tiny language; the same each time, so it is done once."""
    parent, calibration = language_model(), sample(1024, seed=2)
    held_out, few, windows = sample(6000, seed=1), sample(2000, seed=3), calibration.reshape(-1, 32)
    without = loss_without_layer(parent, calibration)
    neurons, heads = neuron_importance(parent, windows), head_importance(parent, windows)
    kept = {
        "depth": {"layers": strongest(without, 2)},
        "width": {"neurons": strongest(neurons, 32), "heads": strongest(heads, 2)},
    }
    recipes = {name: compare_recipes(parent, few, held_out, steps=steps, **cut) for name, cut in kept.items()}
    return Study(parent, without - mean_loss(parent, calibration), neurons, heads, recipes)


def what_each_part_adds() -> Figure:
    """The loss when a layer is removed, and how much of what the MLPs write comes from their strongest neurons."""
    study = small_study()
    with canvas(1, 2, figsize=(8, 3.8)) as (figure, (left, right)):
        layers = np.arange(len(study.without_layer))
        bars = left.bar(layers, study.without_layer, color=BLUE)
        left.bar_label(bars, fmt="%.2f", padding=2)
        left.set_xticks(layers)
        left.set_ylim(0, 1.15 * study.without_layer.max())
        times = study.without_layer.max() / study.without_layer.min()
        label(left, title=f"The first layer matters\n{times:.0f}x as much as the last", x="layer removed",
              y="rise of the loss, nat per token")  # fmt: skip
        energy = np.sort(study.neurons**2, axis=1)[:, ::-1]
        share = np.cumsum(energy, axis=1) / energy.sum(axis=1, keepdims=True)
        F = share.shape[1]
        for layer, (row, color) in enumerate(zip(share, (BLUE, ORANGE, GREEN, RED), strict=True)):
            right.plot(np.arange(1, F + 1) / F, row, color=color, label=f"layer {layer}")
        right.axvline(0.5, color=GREY, linestyle=":")
        right.set_ylim(0, 1.02)
        right.legend(loc="lower right")
        half = share[:, F // 2 - 1].min()
        label(right, title=f"Half the neurons write at\nleast {half:.0%} of what is written",
              x="share of the neurons, strongest first", y="share of the squared output")  # fmt: skip
    return figure


def loss_before_and_after_repair() -> Figure:
    """Loss right after two cuts to half the weights, after two repairs, and of the same shape trained from scratch."""
    recipes = small_study().recipes
    kinds = (("cut", ORANGE, "", "cut"), ("scratch", SKY, "//", "from scratch"),
             ("retrained", BLUE, "..", "repaired by text"),
             ("distilled", GREEN, "", "repaired by the original"))  # fmt: skip
    with canvas(figsize=(8, 4.2)) as (figure, (axes,)):
        for i, (kind, color, hatch, name) in enumerate(kinds):
            x = np.arange(len(recipes)) + 0.21 * (i - 1.5)
            heights = [getattr(found, kind) for found in recipes.values()]
            bars = axes.bar(x, heights, 0.19, color=color, hatch=hatch, edgecolor="white", label=name)
            axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=11)
        original = next(iter(recipes.values())).original
        axes.axhline(original, color=RED)
        axes.text(1.47, original - 0.015, f"original {original:.2f}", color=RED, va="top")
        axes.axhline(entropy_rate(), color=GREY, linestyle="--")
        axes.text(1.47, entropy_rate() - 0.015, f"entropy {entropy_rate():.2f}", color=GREY, va="top")
        axes.set_xticks(range(len(recipes)), [f"{name}: {found.params:,} weights" for name, found in recipes.items()])
        axes.set_xlim(-0.5, 1.95)
        axes.set_ylim(1.2)
        axes.legend(loc="upper right", fontsize=11)
        wide = recipes["width"]
        back = (wide.cut - wide.distilled) / (wide.cut - wide.original)
        title = f"Half the width is gone; 50 steps after the original's example\ngive back {back:.0%} of what it cost"
        label(axes, title=title, y="loss, nat per token (axis from 1.2)")
    return figure


def llama_and_its_cuts() -> dict[str, Model]:
    """Llama-3.1-8B and the two 4B models cut from it (Sreenivas et al., 2408.11796)."""
    config, cuts = preset_config("llama-3.1-8b"), {
        "depth": {"num_hidden_layers": 16},
        "width": {"hidden_size": 3072, "intermediate_size": 9216, "head_dim": 128},
    }  # fmt: skip
    return {"original": load("llama-3.1-8b")} | {
        name: model_from_config(config | change, f"llama-3.1-8b, {name}", name=f"{name} pruned")
        for name, change in cuts.items()
    }


def depth_against_width(batch: int = 64) -> Figure:
    """The bound's speed-up of two cuts of Llama-3.1-8B to 4.5 billion weights, against the context."""
    on = {name: Deployment(model, accelerator("h100-sxm")) for name, model in llama_and_its_cuts().items()}
    longest = present("the limit", on["original"].longest_context(batch))
    context = np.geomspace(16, longest, 60).astype(int)
    seconds = {name: deployment.grid(batch, context)["seconds_per_token"] for name, deployment in on.items()}
    with canvas() as (figure, (axes,)):
        ends = {}
        for (name, published), color, style in zip((("depth", 2.7), ("width", 1.8)), (BLUE, ORANGE), "-s", strict=True):
            gain = seconds["original"] / seconds[name]
            ends[name] = gain[-1]
            axes.plot(context, gain, color=color, linestyle="-", marker=style if style == "s" else None, markevery=8,
                      label=f"{name}: the bound, B = {batch}")  # fmt: skip
            axes.axhline(published, color=color, linestyle=":", label=f"{name}: published throughput, {published}x")
        axes.set_xscale("log", base=2)
        axes.set_ylim(0.5, 3)
        axes.legend(loc="lower left", fontsize=11)
        title = "Cutting layers halves the cache too; cutting width leaves it:\n"
        label(axes, title=f"{title}{ends['depth']:.2f}x against {ends['width']:.2f}x at {context[-1]:,} tokens",
              x="context S", y="times as fast")  # fmt: skip
    return figure
