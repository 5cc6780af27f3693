"""Diagrams of one request: passes, the cache, sampling, speculation.

Colours only repeat what the labels say, and a number in a title is counted from what is drawn.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from costmodel.generation import cached_positions, naive_positions
from costmodel.lab.sampling import temperature_probs, top_k_filter, top_p_filter
from costmodel.plotting._shapes import WIDTH, arrow, board, box, brace, gap, say
from costmodel.plotting.sampling import FIVE
from costmodel.plotting.style import BLUE, GREEN, GREY, LIGHT, ORANGE, RED


def _one_pass(axes: Axes, x: float, tokens: list[str], out: str, text: str) -> tuple[float, float]:
    """Tokens in, the model, a token out, bottom to top; the right edges of the model and of the token out."""
    cell = 1.15 if len(tokens) > 1 else 1.75
    width = cell * len(tokens)
    box(axes, x, 3.0, width, 1.6, text, ORANGE)
    for i, token in enumerate(tokens):
        box(axes, x + i * cell, 1.8, cell, 0.7, token, BLUE)
        arrow(axes, (x + (i + 0.5) * cell, 2.5), (x + (i + 0.5) * cell, 3.0))
    last = x + width - cell / 2
    arrow(axes, (last, 4.6), (last, 5.1))
    box(axes, last - 0.8, 5.1, 1.6, 0.7, out, GREEN)
    return x + width, last + 0.8


def prefill_and_decode() -> Figure:
    """Prefill puts the whole prompt through one pass; decode makes one pass per token."""
    prompt, answer = ["The", "cat", "sat", "on", "the"], ["mat", "and", "fell", "asleep"]
    passes = [prompt, *([token] for token in answer[:-1])]
    title = (
        f"One read of the weights serves all {len(prompt)} prompt tokens;\nafter that, every token costs another read"
    )
    with board(title, 6.0) as (figure, axes):
        for y, text in ((5.45, "token out"), (3.8, "pass"), (2.15, "tokens in"), (0.1, "time")):
            say(axes, 0, y, text, ha="left", color=GREY)
        left, spans = 2.2, []
        for number, (tokens, out) in enumerate(zip(passes, answer, strict=True), start=1):
            reads = "reads all the weights once" if len(tokens) > 1 else "reads all\nweights"
            right, out_right = _one_pass(axes, left, tokens, out, f"pass {number}\n{reads}")
            spans.append((left, right, out_right))
            left = right + 0.85
        for (_, _, out_right), (left, _, _) in pairwise(spans):
            bend = left - 0.38
            arrow(axes, (out_right, 5.45), (bend, 5.45), (bend, 2.15), (left, 2.15))
        brace(axes, *spans[0][:2], 1.35, f"prefill: {len(prompt)} tokens, 1 read")
        brace(axes, spans[1][0], spans[-1][1], 1.35, f"decode: {len(spans) - 1} tokens, {len(spans) - 1} reads")
        arrow(axes, (2.2, 0.1), (WIDTH, 0.1))
    return figure


def _positions(axes: Axes, left: float, *, prompt: int, generated: int, cached: bool) -> int:
    """One row of positions per pass, from the top down; the number of cells that were processed."""
    side, top, processed = 0.29, 5.3, 0
    for row in range(generated):
        for column in range(prompt + row):
            kept = cached and row > 0 and column < prompt + row - 1
            color, fill = (LIGHT, "white") if kept else (BLUE, (BLUE, 0.55))
            box(axes, left + column * side, top - row * side, side, side, "", color, facecolor=fill, linewidth=0.8)
            processed += not kept
    say(axes, left - 0.2, top + side / 2, "pass 1", ha="right")
    say(axes, left - 0.2, top + (1.5 - generated) * side, str(generated), ha="right")
    brace(axes, left, left + prompt * side, 0.65, f"prompt: {prompt}")
    brace(axes, left + prompt * side, left + (prompt + generated - 1) * side, 0.65, "answer so far")
    return processed


def cache_against_no_cache() -> Figure:
    """Positions processed for 16 new tokens after a prompt of 8, without a cache and with one."""
    sizes = {"prompt": 8, "generated": 16}
    naive, cached = naive_positions(**sizes), cached_positions(**sizes)
    title = (
        f"Without a cache {naive} positions are processed, with one {cached}:\nabout {naive / cached:.0f} times fewer"
    )
    with board(title, 6.5) as (figure, axes):
        for left, count, word in ((1.3, naive, "without"), (9.3, cached, "with")):
            drawn = _positions(axes, left, **sizes, cached=word == "with")
            assert drawn == count
            say(axes, left, 6.1, f"{word} a cache: {drawn} filled cells", ha="left")
        note = {"facecolor": "white", "edgecolor": "none", "pad": 3}
        say(axes, 11.4, 2.6, "keys and values\nkept, not\nprocessed again", bbox=note)
    return figure


def _bars(axes: Axes, x: float, values: np.ndarray, *, scale: float, digits: str) -> None:
    """One stage of the pipeline as horizontal bars, a row per token; probability 0 reads "cut"."""
    axes.plot([x, x], [0.4, 5.0], color=LIGHT, linewidth=1.2, zorder=0)
    for row, value in enumerate(values):
        y, length = 4.3 - 0.95 * row, scale * value
        if value == 0:
            say(axes, x + 0.1, y + 0.3, "cut", ha="left", color=GREY)
        else:
            box(axes, x + min(length, 0), y, abs(length), 0.6, "", BLUE)
            say(axes, x + 0.1 + max(length, 0), y + 0.3, f"{value:{digits}}".replace("-", "−"), ha="left")


def _draw(axes: Axes, x: float, p: np.ndarray, tokens: tuple[str, ...], *, u: float, scale: float) -> None:
    """Probabilities laid end to end from 0 to 1: the draw is the interval that u falls in."""
    ends = np.cumsum(p)
    chosen = int(np.searchsorted(ends, u))
    for row in np.flatnonzero(p):
        color = GREEN if row == chosen else BLUE
        box(axes, x + scale * (ends[row] - p[row]), 4.3 - 0.95 * row, scale * p[row], 0.6, "", color)
    axes.plot([x + scale * u] * 2, [0.6, 5.1], color=RED, linestyle="--")
    say(axes, WIDTH, 0.1, f"u, uniform on 0 to 1, falls in the interval of “{tokens[chosen]}”", ha="right", color=RED)


def sampling_pipeline() -> Figure:
    """From five logits to one token: temperature, softmax, top-k, top-p, draw."""
    tokens, logits = ("mat", "sofa", "rug", "bed", "moon"), np.array(FIVE)
    temperature, k, nucleus, u = 1.0, 4, 0.9, 0.7
    scaled = logits / temperature
    p = temperature_probs(logits, temperature)
    top_k = top_k_filter(p, k)
    top_p = top_p_filter(top_k, nucleus)
    score: dict[str, Any] = {"scale": 0.35, "digits": "g"}
    share: dict[str, Any] = {"scale": 1.9, "digits": ".2f"}
    stages = (
        ("logits", logits, score), (f"temperature\nT = {temperature:g}", scaled, score), ("softmax", p, share),
        (f"top-k\nk = {k}", top_k, share), (f"top-p\np = {nucleus}", top_p, share),
    )  # fmt: skip
    stay = np.count_nonzero(top_p)
    title = f"Sampling cuts the tail, rescales what is left and draws:\n{stay} of {len(tokens)} tokens stay"
    with board(title, 6.7) as (figure, axes):
        for row, token in enumerate(tokens):
            say(axes, 0, 4.6 - 0.95 * row, token, ha="left", color=GREY)
        for i, (name, values, style) in enumerate(stages):
            left = 1.4 + 2.48 * i
            box(axes, left, 5.5, 2.2, 1.2, name, ORANGE, size=11)
            arrow(axes, (left + 2.2, 6.1), (left + 2.48, 6.1))
            _bars(axes, left + 0.2, values, **style)
        box(axes, 13.8, 5.5, 2.2, 1.2, f"draw\nu = {u}", ORANGE, size=11)
        _draw(axes, 13.9, top_p, tokens, u=u, scale=2.0)
    return figure


def draft_verify_replace() -> Figure:
    """One round of speculative decoding with four drafted tokens."""
    draft, verdicts = ("on", "the", "red", "sofa"), ("✓ accepted", "✓ accepted", "✗ rejected", "follows “red”")
    accepted = sum("✓" in verdict for verdict in verdicts)
    title = f"One pass of the target yields {accepted + 1} tokens:\n{accepted} accepted, 1 replaced, the rest discarded"
    rows = (
        (6.2, "draft model:\n4 small passes"), (4.35, "target model:\n1 large pass"), (2.75, "verdict"),
        (1.4, "tokens gained"),
    )  # fmt: skip
    with board(title, 6.6) as (figure, axes):
        for y, text in rows:
            say(axes, 0, y, text, ha="left", color=GREY)
        box(axes, 4.0, 3.8, 12, 1.1, "checks all 4 at once, with one read of its weights", ORANGE)
        for i, (token, verdict) in enumerate(zip(draft, verdicts, strict=True)):
            x = 4.3 + 3.0 * i
            box(axes, x, 5.8, 2.4, 0.8, token, BLUE)
            arrow(axes, (x + 1.2, 5.8), (x + 1.2, 4.9))
            arrow(axes, (x + 1.2, 3.8), (x + 1.2, 3.1))
            say(axes, x + 1.2, 2.75, verdict)
            if i:
                arrow(axes, (x - 0.6, 6.2), (x, 6.2))
            if i < accepted:
                box(axes, x, 1.0, 2.4, 0.8, token, GREEN)
            elif i > accepted:
                gap(axes, x, 1.0, 2.4, 0.8, "discarded")
        box(axes, 4.3 + 3.0 * accepted, 1.0, 2.4, 0.8, "mat", RED)
        say(axes, 5.5 + 3.0 * accepted, 0.4, "drawn by the target")
        say(axes, 0, 0.4, "if all 4 pass, a fifth comes free", ha="left", color=GREY)
    return figure
