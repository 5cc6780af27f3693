"""Diagrams of many requests: the order of a prompt, a block table, static against continuous batching."""

from itertools import accumulate, pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from costmodel.lab.batching import ServingRun, simulate_continuous_batching, simulate_static_batching
from costmodel.plotting._shapes import WIDTH, arrow, board, box, brace, gap, say
from costmodel.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED


def _prompt(axes: Axes, y: float, parts: list[str]) -> None:
    """One prompt from left to right, split at the first part that changed since the last request."""
    widths = {
        "tools": 1.8,
        "system": 2.2,
        "documents": 4.6,
        "messages": 2.8,
        "timestamp\nnew": 2.4,
        "question\nnew": 2.2,
    }
    edges = [0.0, *accumulate(widths[part] for part in parts)]
    reused = next(i for i, part in enumerate(parts) if "new" in part)
    for i, (part, (left, right)) in enumerate(zip(parts, pairwise(edges), strict=True)):
        box(axes, left, y, right - left, 1.1, part, GREEN if i < reused else ORANGE)
    if reused:
        brace(axes, 0, edges[reused], y - 0.4, "same prefix as last time: read from the cache")
    brace(axes, edges[reused], WIDTH, y - 0.4, "computed" if reused else "computed, though most of it is unchanged")
    arrow(axes, (edges[reused] + 0.05, y + 1.8), (edges[reused] + 0.05, y + 1.1), color=RED)
    say(axes, edges[reused] + 0.3, y + 1.55, "first change", ha="left", color=RED)


def prompt_order() -> Figure:
    """The parts of a prompt in an order that a cache can serve, and in one that it cannot."""
    stable, volatile = ["tools", "system", "documents", "messages"], ["timestamp\nnew", "question\nnew"]
    title = "A cached prompt is valid up to its first changed token,\nso whatever changes goes last"
    with board(title, 7.4) as (figure, axes):
        say(axes, 0, 7.1, "good: stable first, volatile last", ha="left")
        _prompt(axes, 4.9, stable + volatile)
        say(axes, 0, 3.3, "bad: the timestamp comes first", ha="left")
        _prompt(axes, 1.1, [volatile[0], *stable, volatile[1]])
    return figure


def _block(axes: Axes, x: float, y: float, text: str, color: str) -> None:
    """Room for four tokens, as full as its tokens make it."""
    filled = 1.2 * len(text.split())
    if filled < 4.8:
        gap(axes, x + filled, y, 4.8 - filled, 0.75, "empty" if text else "free")
    if text:
        box(axes, x, y, filled, 0.75, text, color)


def block_table() -> Figure:
    """Two sequences whose logical blocks a table maps to physical ones; they share the first."""
    texts = {
        "A": ("You are a poet", "Write of the sea", "Waves roll"),
        "B": ("You are a poet", "Praise an old tree", "Roots"),
    }
    table, colors = {"A": (1, 0, 4), "B": (1, 5, 3)}, {"A": BLUE, "B": ORANGE}
    owners = {n: [s for s in table if n in table[s]] for n in range(6)}
    title = "Equal prefixes are stored once, and only the last block\nof a sequence has empty room"
    with board(title, 6.8) as (figure, axes):
        for x, text in ((2.9, "logical blocks"), (6.15, "table"), (10.9, "physical blocks"), (14.6, "references")):
            say(axes, x, 6.5, text, color=GREY)
        for n, users in owners.items():
            y = 5.2 - 0.95 * n
            say(axes, 8.2, y + 0.375, str(n))
            text = texts[users[0]][table[users[0]].index(n)] if users else ""
            color = GREEN if len(users) > 1 else colors.get("".join(users), GREY)
            _block(axes, 8.5, y, text, color)
            say(axes, 13.5, y + 0.375, f"{len(users)}: {' and '.join(users)}" if users else "0", ha="left")
        rows = [(s, i, n) for s in table for i, n in enumerate(table[s])]
        for row, (s, i, n) in enumerate(rows):
            y = 5.2 - 0.95 * row
            color = GREEN if len(owners[n]) > 1 else colors[s]
            say(axes, 0, y + 0.375, f"{s} {i}", ha="left")
            _block(axes, 0.7, y, texts[s][i], color)
            box(axes, 5.75, y, 0.8, 0.75, str(n), color)
            arrow(axes, (6.55, y + 0.375), (7.95, 5.575 - 0.95 * n), color=color)
    return figure


def _timeline(axes: Axes, top: float, run: ServingRun) -> None:
    """A grid of slot × step, a letter per request."""
    for slot, row in enumerate(zip(*run.timeline, strict=True)):
        y = top - 0.8 * slot
        say(axes, 0, y + 0.4, f"slot {slot + 1}", ha="left", color=GREY)
        for step, request in enumerate(row):
            if request is None:
                gap(axes, 1.9 + 2.2 * step, y, 2.2, 0.8, "idle")
            else:
                color = (BLUE, ORANGE, GREEN, PURPLE)[request]
                box(axes, 1.9 + 2.2 * step, y, 2.2, 0.8, "ABCD"[request], color)


def static_against_continuous() -> Figure:
    """Requests of 4, 1, 1 and 1 tokens on two slots, batched statically and continuously."""
    lengths, slots = [4, 1, 1, 1], 2
    runs = {
        "static": simulate_static_batching(lengths, slots),
        "continuous": simulate_continuous_batching(lengths, slots),
    }
    steps = {name: run.steps for name, run in runs.items()}
    use = {name: f"{100 * run.utilization:g} %" for name, run in runs.items()}
    title = (
        f"Refilling a slot as soon as it is free takes {steps['continuous']} steps, not {steps['static']}:\n"
        f"{use['continuous']} of the slots used, not {use['static']}"
    )
    with board(title, 5.9) as (figure, axes):
        for top, name, start in ((4.5, "static", "when the whole batch is done"), (1.6, "continuous", "at once")):
            say(axes, 0, top + 1.2, f"{name}: the next request starts {start}", ha="left")
            _timeline(axes, top, runs[name])
            say(axes, WIDTH, top, f"{steps[name]} steps\n{use[name]} used", ha="right")
        for step in range(max(steps.values())):
            say(axes, 3.0 + 2.2 * step, 0.1, f"step {step + 1}", color=GREY)
    return figure
