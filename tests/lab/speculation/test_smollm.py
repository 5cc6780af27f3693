"""Speculation on the real model: greedy output is what transformers wrote, wherever the top-two gap exceeds 1e-3."""

import json
from pathlib import Path

import numpy as np

from costmodel.lab.quantization.copies import quantized_copy
from costmodel.lab.smollm import chat_prompt
from costmodel.lab.speculation import LookupDraft, speculative_batch, speculative_generate
from costmodel.lab.tokenizer import Tokenizer
from costmodel.lab.transformer import Decoder

GOLDEN = json.loads((Path(__file__).parents[2] / "oracles" / "golden_tokens.json").read_text())
FUNCTIONS = (
    "def area_of_square(side):\n    return side * side\n\n\n"
    "def area_of_circle(radius):\n    return 3.14159 * radius * radius\n\n\n"
    "def area_of_triangle(base, height):\n    return base * height / 2\n"
)


def test_lookup_leaves_the_greedy_tokens_as_they_are(model: tuple[Decoder, Tokenizer]) -> None:
    assert GOLDEN["smallest_gap"] > 1e-3  # so no choice hangs on the order of a sum
    prompts = [run["prompt_ids"] for run in GOLDEN["runs"]]
    runs = speculative_batch(prompts, model[0], LookupDraft(), 24, 3, np.random.default_rng(0), temperature=0)
    assert [run.new_tokens for run in runs] == [run["tokens"][:24] for run in GOLDEN["runs"]]
    assert sum(run.rounds for run in runs) < 3 * 24


def test_copying_is_where_lookup_pays(model: tuple[Decoder, Tokenizer]) -> None:
    decoder, tokenizer = model
    prompt = tokenizer.encode(chat_prompt("Repeat this code exactly:\n" + FUNCTIONS))
    run = speculative_generate(prompt, decoder, LookupDraft(), 24, 5, np.random.default_rng(0), temperature=0)
    logits = decoder.forward_full(run.tokens[:-1])[len(prompt) - 1 :]
    first, second = np.sort(logits, axis=1)[:, :-3:-1].T
    sure = first - second > 1e-3
    assert (logits.argmax(axis=1) == run.new_tokens)[sure].all()
    assert sure.all()
    assert run.tokens_per_pass > 2


def test_a_copy_in_four_bits_guesses_well_and_changes_nothing(model: tuple[Decoder, Tokenizer]) -> None:
    """The file's own grid is 4 bits with a minimum; symmetric groups of 32 are another, so this draft does err."""
    decoder, _ = model
    golden = GOLDEN["runs"][0]
    draft = quantized_copy(decoder, 4, group=32)
    run = speculative_generate(golden["prompt_ids"], decoder, draft, 16, 3, np.random.default_rng(0), temperature=0)
    assert run.new_tokens == golden["tokens"][:16]
    assert 0.4 < run.acceptance < 1
