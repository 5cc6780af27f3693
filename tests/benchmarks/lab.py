"""Speeds of the laboratory: a draw from a large vocabulary, decoding the real model, generation with a cache.

The rows against transformers and the real model's appear where those are installed.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.sampling import sample_next
from costmodel.lab.smollm import find_smollm2, load_smollm2
from tests.benchmarks.side_by_side import Result, faster, timed

VOCAB = 128_256
TEMPERATURE, TOP_K, TOP_P = 0.8, 50, 0.9
CONTEXT = 64


def full_sort_draw(logits: np.ndarray, rng: np.random.Generator) -> int:
    """The same draw by sorting the whole vocabulary."""
    order = np.argsort(-logits)
    best = logits[order][:TOP_K] / TEMPERATURE
    probs = np.exp(best - best[0])
    below = np.cumsum(probs / probs.sum())
    kept = probs[: np.searchsorted(below, TOP_P) + 1]
    return int(order[rng.choice(len(kept), p=kept / kept.sum())])


def transformers_draw(logits: np.ndarray) -> Callable:
    """The same draw by transformers' own processors."""
    import torch
    from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    warpers = [TemperatureLogitsWarper(TEMPERATURE), TopKLogitsWarper(TOP_K), TopPLogitsWarper(TOP_P)]
    processors, row, prompt = LogitsProcessorList(warpers), torch.tensor(logits)[None], torch.tensor([[0]])
    return lambda: torch.multinomial(torch.softmax(processors(prompt, row.clone()), -1), 1)


def draws() -> Iterator[Result]:
    """One draw with temperature, top-k and top-p."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, VOCAB).astype(np.float32)
    ours = lambda: sample_next(logits, rng, TEMPERATURE, TOP_K, TOP_P)  # noqa: E731
    what = f"one draw, top-k and top-p, V = {VOCAB:,}"
    yield faster(what, ours, lambda: full_sort_draw(logits, rng), "a full sort", times=5)
    if find_spec("transformers"):
        yield faster(what, ours, transformers_draw(logits), "transformers", times=1)


def real_model() -> Iterator[Result]:
    """Float32 decoding of one token, against reading every weight once, and against transformers."""
    try:
        path = find_smollm2()
    except CostModelError as error:
        print(f"skipped: {error}")
        return
    decoder, _ = load_smollm2(path)
    cache, memory = decoder.new_cache(), decoder.weights.memory
    decoder.forward_full(range(CONTEXT), cache)

    def step() -> None:
        decoder.forward_step(1, CONTEXT, cache)
        cache.truncate(CONTEXT)

    yield faster("one token of SmolLM2-135M, fp32", step, lambda: memory @ memory, "reading its weights", times=0.7)
    if find_spec("transformers"):
        yield faster("one token of SmolLM2-135M, fp32", step, transformers_step(path), "transformers", times=1)


def transformers_step(path: object) -> Callable:
    """One token by transformers, from the same file, after the same context."""
    import torch
    from transformers import AutoModelForCausalLM, DynamicCache

    model = AutoModelForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.float32).eval()
    cache = DynamicCache(config=model.config)

    @torch.inference_mode()
    def run(tokens: list[int]) -> None:
        model(torch.tensor([tokens]), past_key_values=cache, use_cache=True)

    def step() -> None:
        run([1])
        cache.crop(-1)

    run(list(range(CONTEXT)))
    return step


def linear() -> Iterator[Result]:
    """With a cache the time of an answer grows with its length: the exponent, fitted over 64 to 1,024 tokens."""
    tiny, lengths = TinyDecoder(max_len=1024), [64, 128, 256, 512, 1024]
    tiny.generate([1], 64)
    seconds = [min(timed(lambda n=n: tiny.generate([1], n)) for _ in range(5)) for n in lengths]
    exponent = float(np.polyfit(np.log(lengths), np.log(seconds), 1)[0])
    what = "cached generation: exponent of the length"
    yield Result(what, seconds[-1], seconds[0], "64 tokens", exponent, "≤ 1.25", exponent <= 1.25)


def results() -> Iterator[Result]:
    """Every comparison of this module."""
    yield from draws()
    yield from real_model()
    yield from linear()
