"""A decoder that reads its cache through a block table computes the same logits, bit for bit."""

import random

import numpy as np
import pytest

from costmodel.common.blocks import OutOfBlocksError
from costmodel.common.errors import CostModelError
from costmodel.lab.beam import beam_search
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.paging import PagedKVCache, PagedMemory

TINY = TinyDecoder()
GROUPED = TinyDecoder(vocab=32, d_model=32, n_heads=4, n_kv_heads=2, gated=True, rope_theta=10_000.0, dtype=np.float32)


@pytest.mark.parametrize("decoder", [TINY, GROUPED], ids=["tiny", "grouped heads, rotary, fp32"])
@pytest.mark.parametrize("block_tokens", [1, 3, 16, 64])
def test_the_same_logits_through_a_block_table(decoder: TinyDecoder, block_tokens: int) -> None:
    memory = PagedMemory(decoder.shape, 256 // block_tokens + 2, block_tokens)
    stranger = memory.new_cache()
    rng = np.random.default_rng(block_tokens)
    contiguous, paged = decoder.new_cache(decoder.shape.max_len), memory.new_cache()
    for tokens in (5, 1, 1, 7, 1, 30, 1):
        ids = rng.integers(0, decoder.shape.vocab, tokens)
        decoder.forward_full(ids, stranger)  # so that the blocks of either lie apart
        np.testing.assert_array_equal(decoder.forward_full(ids, paged), decoder.forward_full(ids, contiguous))
        assert paged.length == contiguous.length
    assert paged.table != tuple(range(len(paged.table)))
    paged.free()
    stranger.free()
    assert memory.used == 0


def test_bytes_are_those_of_the_formula() -> None:
    assert PagedMemory(TINY.shape, 8, 4).nbytes == 2 * 2 * 2 * 8 * 8 * 8 * 4  # 2·L·K·H·b·tokens


class Conversations:
    """Random traffic on one paged memory and its swap space, every sequence beside a contiguous one."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.memory = PagedMemory(TINY.shape, 10, 4)
        self.host = PagedMemory(TINY.shape, 10, 4)
        self.pairs: list[tuple[PagedKVCache, list[int]]] = []

    def step(self) -> str:
        kind = self.rng.choice(["new", "grow", "grow", "grow", "fork", "fork", "free", "truncate", "swap"])
        here = [pair for pair in self.pairs if pair[0].memory is self.memory]
        if kind == "new" and len(self.pairs) < 6:
            self.pairs.append((self.memory.new_cache(), []))
        elif kind == "swap" and self.pairs:
            source, target = self.rng.sample([self.memory, self.host], 2)
            group = [cache for cache, _ in self.pairs if cache.memory is source and self.rng.random() < 0.5]
            source.swap(group, target)
        elif kind == "grow" and here:
            self.grow(*self.rng.choice(here))
        elif kind == "fork" and here and len(self.pairs) < 6:
            cache, tokens = self.rng.choice(here)
            cut = self.rng.choice([None, self.rng.randint(0, len(tokens))])
            self.pairs.append((cache.fork(cut), tokens[:cut]))
        elif kind == "free" and here:
            self.pairs.remove(pair := self.rng.choice(here))
            pair[0].free()
        elif kind == "truncate" and here:
            cache, tokens = self.rng.choice(here)
            cache.truncate(cut := self.rng.randint(0, len(tokens)))
            del tokens[cut:]
        return kind

    def grow(self, cache: PagedKVCache, tokens: list[int]) -> None:
        new = [self.rng.randrange(16) for _ in range(self.rng.randint(1, 5))]
        if len(tokens) + len(new) <= TINY.shape.max_len:
            logits = TINY.forward_full(new, cache)
            tokens.extend(new)
            alone = TINY.forward_full(new, self.contiguous(tokens[: -len(new)]))
            np.testing.assert_allclose(logits, alone, rtol=0, atol=1e-10)  # its past was written in other passes

    def contiguous(self, tokens: list[int]) -> object:
        cache = TINY.new_cache()
        if tokens:
            TINY.forward_full(tokens, cache)
        return cache


@pytest.mark.parametrize("seed", range(4))
def test_random_traffic_computes_what_lone_sequences_compute(seed: int) -> None:
    traffic, full = Conversations(seed), 0
    for _ in range(250):
        try:
            traffic.step()
        except OutOfBlocksError:
            full += 1
    assert full > 0
    for cache, tokens in traffic.pairs:
        if cache.memory is traffic.memory and tokens:
            kept = np.concatenate(next(cache.read(1, len(tokens))))
            np.testing.assert_allclose(kept, np.concatenate(next(traffic.contiguous(tokens).read(1, len(tokens)))))
    for cache, _ in traffic.pairs:
        cache.free()
    assert (traffic.memory.used, traffic.host.used) == (0, 0)


def test_parallel_samples_share_their_prompt() -> None:
    memory = PagedMemory(TINY.shape, 64, 4)
    prompt = memory.new_cache()
    TINY.forward_full(range(10), prompt)
    samples = [prompt, *(prompt.fork() for _ in range(3))]
    assert memory.used == 3  # 10 tokens, once
    together = TINY.forward_batch([[token] for token in (1, 2, 3, 4)], samples)
    assert memory.used == 2 + 4  # two full blocks shared, a last one each
    for token, logits in zip((1, 2, 3, 4), together, strict=True):
        np.testing.assert_allclose(logits[0], TINY.forward_full([*range(10), token])[-1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_beam_search_in_blocks_finds_the_same_beams_and_returns_every_block(width: int) -> None:
    memory = PagedMemory(TINY.shape, 64, 4)
    prompt = list(range(9))
    beams = beam_search(TINY, prompt, 12, width, cache=memory.new_cache())
    assert beams == beam_search(TINY, prompt, 12, width)
    assert memory.used == 0


def test_swapping_out_frees_blocks_and_back_in_goes_on() -> None:
    device, host = PagedMemory(TINY.shape, 4, 4), PagedMemory(TINY.shape, 4, 4)
    first = device.new_cache()
    TINY.forward_full(range(10), first)
    second = first.fork()
    device.swap([first, second], host)
    assert (device.used, host.used) == (0, 3)  # shared blocks moved once
    with pytest.raises(CostModelError, match="lies in another memory already"):
        device.swap([first], host)
    TINY.forward_full([3] * 16, filler := device.new_cache())
    with pytest.raises(OutOfBlocksError, match="3 blocks needed, 0 of 4 are free"):
        host.swap([first, second], device)
    filler.free()
    host.swap([first, second], device)
    assert (device.used, host.used) == (3, 0)
    whole = TINY.forward_full([*range(10), 7])[-1]
    np.testing.assert_allclose(TINY.forward_step(7, 10, second), whole, rtol=0, atol=1e-10)


def test_it_ends_at_max_len_and_when_blocks_run_out() -> None:
    cache = PagedMemory(TINY.shape, 100, 4).new_cache()
    with pytest.raises(CostModelError, match="sequence of 65 tokens is longer than max_len, 64"):
        cache.reserve(65)
    small = PagedMemory(TINY.shape, 2, 4).new_cache()
    with pytest.raises(OutOfBlocksError, match="3 blocks needed, 2 of 2 are free"):
        TINY.forward_full(range(9), small)
    assert small.length == 0
    with pytest.raises(CostModelError, match="length must be 0 to the 0 of"):
        small.truncate(1)
