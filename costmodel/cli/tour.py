"""`costmodel tour`: the headline numbers of the series, each computed as it prints."""

import argparse

from costmodel.generation import cached_positions, naive_positions
from costmodel.hardware import accelerator
from costmodel.layers import attention, mlp
from costmodel.sizing import Deployment
from costmodel.symbols import B, D, F, S, T
from costmodel.tables import with_prefix
from costmodel.textbook import arithmetic_intensity, max_concurrent_requests
from costmodel.textbook.stats import llama2_13b
from costmodel.zoo import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments: there are none."""


def run(options: argparse.Namespace) -> None:  # noqa: ARG001
    """Print the walk, a stop at a time."""
    for title, stop in STOPS:
        print(f"{title}\n{'-' * len(title)}")
        print(stop(), end="\n\n")
    print("The pages in notebooks/ derive each of these; start at 00_start_here.")


def _ridge() -> str:
    h100 = accelerator("h100-sxm")
    return (
        f"An H100 multiplies at {with_prefix(h100.peak(), 'FLOP/s')} and reads memory at "
        f"{with_prefix(h100.bandwidth, 'B/s')}.\n"
        f"Their ratio is the ridge: {h100.ridge():.0f} FLOPs must be done on every byte, or the chip waits."
    )


def _layers() -> str:
    limit = mlp().intensity.limit(D, "oo").limit(F, "oo")
    core = attention().intensity
    return (
        f"A feed-forward layer does {mlp().flops} FLOPs on {mlp().bytes} bytes: with wide matrices {limit} FLOP/byte.\n"
        f"Attention does {core} FLOP/byte: {core.subs(T, S)} in prefill, {core.subs(T, 1)} in decode, at any batch.\n"
        f"So decoding waits for memory: {B} is rarely {accelerator('h100-sxm').ridge():.0f}, and attention stays\n"
        "below 1 while every query head has keys and values of its own."
    )


def _speed() -> str:
    eight = Deployment(load("8b"), accelerator("h100-class"), textbook=True)
    step, prefill = eight.decode(1, 1), eight.prefill(1000)
    share = arithmetic_intensity(1) / eight.accelerator.ridge()
    return (
        f"8 billion parameters at 16 bit are {with_prefix(eight.weight_bytes, 'B')}; every token reads them all.\n"
        f"Reading them takes {with_prefix(eight.weight_bytes / eight.accelerator.bandwidth, 's')}: "
        f"{eight.accelerator.bandwidth / eight.weight_bytes:.0f} tokens/s for one user, {share:.3%} of the peak.\n"
        f"A prompt of 1,000 tokens reads them once for all: {with_prefix(prefill.seconds, 's')} for all of it, "
        f"{step.seconds_per_token * 1000 / prefill.seconds:.0f} times faster per token."
    )


def _llama() -> str:
    llama = Deployment(llama2_13b(), accelerator("h100-sxm"), textbook=True)
    lines = ["Llama-2-13B at context 1,024, memory-bound:"]
    for batch in (1, 64, 256):
        step, fits = llama.decode(batch, 1024), llama.fits(batch, 1024)
        lines.append(
            f"  batch {batch:>3}: {with_prefix(step.memory_bytes, 'B'):>8}{'' if fits else ', which does not fit'}; "
            f"{with_prefix(step.seconds_per_token, 's'):>8} per token; {step.tokens_per_s:,.0f} tokens/s"
        )
    return "\n".join(lines)


def _cache() -> str:
    per_token = load("llama-3-8b").cache_bytes(1)
    users = max_concurrent_requests(80, 16, 32_000, 32, 8, 128)
    return (
        f"Llama-3-8B keeps {per_token:,} bytes per token; 32,000 tokens are {with_prefix(32_000 * per_token, 'B')}, "
        f"and {users} such requests fit on 80 GB beside 16 GB of weights.\n"
        f"Without a cache, 16 tokens after a prompt of 8 take {naive_positions(8, 16)} positions; "
        f"with one, {cached_positions(8, 16)}."
    )


def _grouped() -> str:
    def step(kv_heads: int, batch: int) -> str:
        found = Deployment(llama2_13b(kv_heads), accelerator("h100-sxm"), textbook=True).decode(batch, 1024)
        return f"{with_prefix(found.memory_bytes, 'B')}, {found.tokens_per_s:,.0f} tokens/s"

    return (
        f"Give Llama-2-13B 8 key/value heads in place of 40, batch 64: {step(40, 64)} becomes {step(8, 64)}.\n"
        f"The room that frees takes batch 256: {step(8, 256)}."
    )


STOPS = (
    ("How many FLOPs per byte?", _ridge),
    ("What do the layers offer?", _layers),
    ("How fast is a token?", _speed),
    ("What does batching buy?", _llama),
    ("What does the cache cost?", _cache),
    ("What do grouped heads buy?", _grouped),
)
