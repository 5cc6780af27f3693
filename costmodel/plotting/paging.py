"""Where cache memory goes: reservation against blocks, and what beams share."""

import numpy as np
from matplotlib.figure import Figure

from costmodel.common.blocks import blocks_of
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.fragmentation import POLICIES, chat_requests, memory_shares
from costmodel.lab.sharing import beam_blocks, parallel_blocks
from costmodel.plotting.style import BLUE, GREY, LIGHT, ORANGE, SKY, canvas, label

SLOTS = 15_700  # tokens of cache beside OPT-13B on a 40 GB A100 (2309.06180, table 1)


def where_memory_goes(requests: int = 600, seed: int = 0, capacity: int = SLOTS) -> Figure:
    """Shares of the memory under four policies, on the same requests."""
    traffic = chat_requests(requests, seed=seed)
    shares = [memory_shares(traffic, policy, capacity=capacity) for policy in POLICIES]
    names = [f"one piece:\n{words}" if policy != "blocks" else "blocks\nof 16" for policy, words in POLICIES.items()]
    parts = (("tokens", "holds tokens", BLUE), ("reserved", "kept for later tokens", SKY),
             ("internal", "never filled (in blocks: not yet)", ORANGE),
             ("external", "free, but no use to whoever waits", LIGHT))  # fmt: skip
    with canvas(figsize=(8.0, 4.6)) as (figure, (axes,)):
        left = np.zeros(len(shares))
        for field, text, color in parts:
            widths = np.array([100 * getattr(s, field) for s in shares])
            axes.barh(range(len(shares)), widths, left=left, color=color, label=text, height=0.65)
            left += widths
        for row, s in enumerate(shares):
            axes.text(
                100 * s.tokens / 2, row, f"{s.tokens:.0%}", ha="center", va="center", color="white", weight="bold"
            )
        axes.set(xlim=(0, 100), yticks=range(len(shares)), yticklabels=names)
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=2, fontsize=10.5, columnspacing=1.2)
        low, high, blocks = shares[0].tokens, shares[2].tokens, shares[3].tokens
        title = f"Reserved in one piece, {low:.0%} to {high:.0%} of the memory holds tokens;\nin blocks, {blocks:.0%}"
        label(axes, title=title, x="share of the cache memory (%)")
    return figure


def blocks_of_four(prompt: int = 20, new: int = 36, block_tokens: int = 4) -> Figure:
    """Blocks that four continuations of one prompt use at most, as they grow: kept apart, sampled, and as beams."""
    decoder, tokens = TinyDecoder(), [i % 16 for i in range(prompt)]
    steps = list(range(1, new + 1))
    apart = [4 * blocks_of(prompt + n - 1, block_tokens) for n in steps]
    sampled = [parallel_blocks(decoder, tokens, n, 4, block_tokens) for n in steps]
    beams = [beam_blocks(decoder, tokens, n, 4, block_tokens) for n in steps]
    with canvas() as (figure, (axes,)):
        lines = ((apart, GREY, "each with a copy"), (sampled, ORANGE, "four samples"), (beams, BLUE, "four beams"))
        for used, color, text in lines:
            axes.step(steps, used, where="post", color=color)
            axes.text(new + 0.6, used[-1], text, color=color, va="center")
        axes.set(xlim=(1, new + 11), ylim=(0, None), xticks=range(0, new + 1, 6))
        saved = " and ".join(f"{1 - used[-1] / apart[-1]:.0%}" for used in (sampled, beams))
        title = f"Samples share their prompt, beams their past too:\n{saved} fewer blocks after {new} tokens"
        label(axes, title=title, x="tokens generated", y="blocks in use, at most")
    return figure
