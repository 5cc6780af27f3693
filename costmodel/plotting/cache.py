"""Figures of the key/value cache: what keeping it saves, counted by the decoder and drawn from the formulas."""

import numpy as np
from matplotlib.figure import Figure

from costmodel.evaluate import evaluate
from costmodel.generation import cached_flops, naive_flops
from costmodel.lab.decoder import TinyDecoder
from costmodel.model import transformer
from costmodel.plotting.style import BLUE, RED, canvas, label
from costmodel.symbols import M

WHOLE = {"causal": False, "head": "all"}  # as the decoder works: whole score matrices, logits at every position


def _counted(prompt: int, generated: int, *, use_cache: bool) -> np.ndarray:
    """FLOPs a TinyDecoder has done after each token of an answer."""
    decoder = TinyDecoder(max_len=prompt + generated - 1)
    return np.array([decoder.work.flops for _ in decoder.stream(range(prompt), generated, use_cache)])


def cumulative_flops(*, prompt: int = 8, generated: int = 32) -> Figure:
    """FLOPs in all after each token, with and without a cache: counted in a real run, and the closed sums.

    Parameters
    ----------
    prompt, generated : P, of at most 16 (the decoder's vocabulary), and M
    """
    model = transformer(V=16, D=16, F=64, N=2, K=2, H=8, L=2, gated=False)
    tokens, totals = np.arange(1, generated + 1), []
    looks = {
        naive_flops: ("every pass re-runs the prefix", RED, "--"),
        cached_flops: ("keys and values kept", BLUE, "-"),
    }
    with canvas() as (figure, (axes,)):
        for closed_form, (text, color, line) in looks.items():
            counted = _counted(prompt, generated, use_cache=closed_form is cached_flops)
            derived = evaluate(closed_form(model, prompt, M, **WHOLE), M=tokens)
            assert np.array_equal(counted, derived.round())
            axes.plot(tokens, derived / 1e6, line, color=color)
            axes.plot(tokens, counted / 1e6, "o", color=color, markersize=5, label=text)
            totals.append(counted[-1])
        naive, cached = totals
        axes.legend(loc="upper left", title="dots: counted; lines: formulas", alignment="left")
        axes.annotate(f"{naive / 1e6:.1f}", (generated, naive / 1e6), (-8, 0), textcoords="offset points", ha="right")
        axes.annotate(f"{cached / 1e6:.1f}", (generated, cached / 1e6), (0, 8), textcoords="offset points", ha="right")
        axes.set_ylim(0)
        more = f"{naive / cached:.1f} times the work"
        title = f"Without a cache, {generated} tokens take {more};\nthe counts lie on the formulas' curves"
        label(axes, title=title, x=f"tokens generated after a prompt of {prompt}", y="million FLOP in all")
    return figure
