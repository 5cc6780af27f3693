from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.common.errors import CostModelError
from costmodel.lab.blocks import rotary_turns, rotate
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.matrix import Matrix
from costmodel.lab.shape import DecoderShape

AGREEMENT = 1e-10  # float64, absolute


@dataclass(frozen=True)
class Case:
    decoder: TinyDecoder
    tokens: list[int]
    split: int  # how many of the tokens are prefilled


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any decoder shape with a sequence for it."""
    kv_heads, group, head_dim = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([2, 4, 6]))
    vocab, length = draw(st.integers(2, 30)), draw(st.integers(2, 24))
    decoder = TinyDecoder(
        vocab=vocab,
        d_model=draw(st.integers(1, 24)),
        n_heads=kv_heads * group,
        n_layers=draw(st.integers(1, 3)),
        max_len=draw(st.integers(length, 80)),
        seed=draw(st.integers(0, 10**6)),
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        d_ff=draw(st.integers(1, 40)),
        gated=draw(st.booleans()),
        norm_gain=draw(st.booleans()),
        rope_theta=draw(st.sampled_from([None, 1e4])),
        tied=draw(st.booleans()),
    )
    tokens = draw(st.lists(st.integers(0, vocab - 1), min_size=length, max_size=length))
    return Case(decoder, tokens, draw(st.integers(1, length - 1)))


def expected_flops(shape: DecoderShape, new: int, past: int) -> int:
    """FLOPs of one pass by hand, whole score matrices and logits everywhere."""
    projections = 2 * shape.d_model * shape.head_dim * (2 * shape.n_heads + 2 * shape.n_kv_heads)
    mlp = (6 if shape.gated else 4) * shape.d_model * shape.d_ff
    attention = 4 * new * (past + new) * shape.n_heads * shape.head_dim
    return shape.n_layers * (new * (projections + mlp) + attention) + 2 * new * shape.d_model * shape.vocab


@pytest.mark.parametrize(
    ("n_new", "positions", "flops"), [(16, (248, 23), (3_709_952, 333_312)), (32, (752, 39), (12_236_800, 602_624))]
)
def test_published_counts(n_new: int, positions: tuple[int, int], flops: tuple[int, int]) -> None:
    tiny = TinyDecoder()
    runs = [tiny.generate(range(8), n_new, use_cache=cached) for cached in (False, True)]
    assert tuple(run.positions_processed for run in runs) == positions  # R-decoder-positions
    assert tuple(run.flops for run in runs) == flops  # R-decoder-flops, R-decoder-32
    assert runs[0].tokens == runs[1].tokens
    assert len(runs[0].new_tokens) == n_new


@given(cases())
@settings(max_examples=200, deadline=None)
def test_cached_logits_are_the_uncached_ones(case: Case) -> None:
    decoder, tokens = case.decoder, case.tokens
    whole = decoder.forward_full(tokens)
    cache = decoder.new_cache(capacity=2)
    before = decoder.work.flops
    parts = [decoder.forward_full(tokens[: case.split], cache)]
    assert decoder.work.flops - before == expected_flops(decoder.shape, case.split, 0)
    for pos in range(case.split, len(tokens)):
        before = decoder.work.flops
        parts.append(decoder.forward_step(tokens[pos], pos, cache)[np.newaxis])
        assert decoder.work.flops - before == expected_flops(decoder.shape, 1, pos)
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=AGREEMENT)


@given(cases())
@settings(max_examples=50, deadline=None)
def test_a_prefill_in_chunks_changes_nothing(case: Case) -> None:
    cache = case.decoder.new_cache(capacity=1)
    parts = [case.decoder.forward_full(part, cache) for part in (case.tokens[: case.split], case.tokens[case.split :])]
    whole = case.decoder.forward_full(case.tokens)
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=AGREEMENT)


@given(cases())
@settings(max_examples=50, deadline=None)
def test_later_tokens_change_nothing_before_them(case: Case) -> None:
    changed = [*case.tokens[: case.split], *[0] * (len(case.tokens) - case.split)]
    a, b = (case.decoder.forward_full(tokens)[: case.split] for tokens in (case.tokens, changed))
    np.testing.assert_allclose(a, b, rtol=0, atol=AGREEMENT)


def test_a_ragged_batch_works_on_seventeen_rows() -> None:
    tiny = TinyDecoder()
    sequences = [list(range(3)), list(range(9)), list(range(5))]
    together = tiny.forward_batch(sequences)
    rows = sum(len(tokens) for tokens in sequences)
    assert rows == tiny.work.positions == 17  # R-ragged
    assert tiny.work.flops_by_step["up"] == 2 * 2 * rows * 16 * 64  # both layers, one product each
    assert tiny.work.flops_by_step["scores"] == 2 * 2 * sum(len(tokens) ** 2 for tokens in sequences) * 16
    for logits, tokens in zip(together, sequences, strict=True):
        np.testing.assert_allclose(logits, tiny.forward_full(tokens), rtol=0, atol=AGREEMENT)


@given(cases(), st.integers(1, 4), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_a_ragged_batch_gives_the_logits_of_one_by_one(case: Case, size: int, seed: int) -> None:
    decoder, rng = case.decoder, np.random.default_rng(seed)
    sequences = [rng.integers(0, decoder.shape.vocab, rng.integers(1, 12)).tolist()[: decoder.shape.max_len - 1] or [0]
                 for _ in range(size)]  # fmt: skip
    caches = [decoder.new_cache(), *[None] * (size - 1)]
    together = decoder.forward_batch(sequences, caches)
    for logits, tokens in zip(together, sequences, strict=True):
        np.testing.assert_allclose(logits, decoder.forward_full(tokens), rtol=0, atol=AGREEMENT)
    mixed = decoder.forward_batch([[1], sequences[0]], [caches[0], None])  # one decodes while another prefills
    np.testing.assert_allclose(mixed[0][0], decoder.forward_full([*sequences[0], 1])[-1], rtol=0, atol=AGREEMENT)
    np.testing.assert_allclose(mixed[1], together[0], rtol=0, atol=AGREEMENT)


def test_one_product_serves_the_whole_batch() -> None:
    tiny, seen = TinyDecoder(), []
    multiply = type(tiny.weights.head).multiply
    tiny.weights.head.multiply = lambda x, work: seen.append(len(x)) or multiply(tiny.weights.head, x, work)
    tiny.forward_batch([[1, 2, 3], [4] * 9, [5] * 5])
    assert seen == [17]


def test_grouped_heads_equal_repeated_ones() -> None:
    grouped = TinyDecoder(n_heads=4, n_kv_heads=2, d_model=16, rope_theta=1e4)
    repeated = TinyDecoder(n_heads=4, n_kv_heads=4, d_model=16, rope_theta=1e4)
    repeated.weights.embedding[...] = grouped.weights.embedding
    for mine, theirs in zip(repeated.weights.layers, grouped.weights.layers, strict=True):
        for name in ("output", "up", "down"):
            getattr(mine, name).values[...] = getattr(theirs, name).values
        mine.qkv.part("query")[...] = theirs.qkv.part("query")
        for step in ("key", "value"):
            heads = theirs.qkv.part(step).reshape(16, 2, 4)
            mine.qkv.part(step)[...] = np.repeat(heads, 2, axis=1).reshape(16, 16)
    np.testing.assert_allclose(
        repeated.forward_full([3, 1, 2]), grouped.forward_full([3, 1, 2]), rtol=0, atol=AGREEMENT
    )


def test_rotary_positions_are_relative() -> None:
    """The same query and key everywhere: their product depends on how far apart they are, and on nothing else."""
    q, k = np.random.default_rng(0).normal(size=(2, 30, 1, 8))
    q[:], k[:] = q[0], k[0]
    turns = rotary_turns(np.arange(30), 8, 1e4, np.dtype(np.float64))
    scores = rotate(q, turns)[:, 0] @ rotate(k, turns)[:, 0].T
    for distance in range(30):
        np.testing.assert_allclose(np.diagonal(scores, -distance), scores[distance, 0], rtol=0, atol=1e-12)
    assert np.ptp(scores[:, 0]) > 0.1
    found = rotary_turns(np.array([2]), 4, 100.0, np.dtype(np.float64))
    np.testing.assert_allclose(found, [[np.exp(2j), np.exp(0.2j)]], rtol=0, atol=1e-15)


def test_float32_is_float32_throughout() -> None:
    tiny = TinyDecoder(dtype=np.float32, gated=True, norm_gain=True, rope_theta=1e4, n_kv_heads=1)
    cache = tiny.new_cache()
    assert tiny.forward_full([1, 2, 3], cache).dtype == np.float32
    step = tiny.forward_step(4, 3, cache)
    assert step.dtype == np.float32
    np.testing.assert_allclose(step, tiny.forward_full([1, 2, 3, 4])[-1], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"vocab": 0}, "vocab must be an integer of at least 1, got 0"),
        ({"n_layers": 2.0}, "n_layers"),
        ({"max_len": True}, "max_len"),
        ({"d_model": 17}, "d_model 17 is not a multiple of n_heads 2; give head_dim"),
        ({"n_heads": 4, "n_kv_heads": 3}, "n_heads must be a multiple of n_kv_heads, got 4 and 3"),
        ({"head_dim": 3, "rope_theta": 1e4}, "head_dim must be even"),
        ({"dtype": np.int8}, "dtype must be"),
    ],
)
def test_impossible_shapes_are_refused(options: dict, said: str) -> None:
    with pytest.raises(CostModelError, match=said):
        TinyDecoder(**options)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ([], "non-empty"),
        ([16], "token 16 is outside the vocabulary; ids are 0 to 15"),
        ([-1], "token -1"),
        ([0.5], "integers"),
        ([0] * 65, "sequence of 65 tokens is longer than max_len, 64"),
    ],
)
def test_impossible_tokens_are_refused(tokens: list, said: str) -> None:
    tiny = TinyDecoder()
    cache = tiny.new_cache()
    with pytest.raises(CostModelError, match=said):
        tiny.forward_full(tokens, cache)
    assert cache.length == tiny.work.flops == tiny.work.positions == 0


def test_a_step_must_be_the_next() -> None:
    tiny = TinyDecoder()
    cache = tiny.new_cache()
    tiny.forward_full([1, 2], cache)
    with pytest.raises(CostModelError, match="pos must be the next position of the cache, 2, got 3"):
        tiny.forward_step(1, 3, cache)


def test_one_cache_serves_one_sequence() -> None:
    tiny = TinyDecoder()
    cache = tiny.new_cache()
    with pytest.raises(CostModelError, match="share one cache"):
        tiny.forward_batch([[1], [2]], [cache, cache])
    with pytest.raises(CostModelError, match="one cache for each"):
        tiny.forward_batch([[1], [2]], [cache])
    assert tiny.forward_batch([]) == []


def test_hidden_states_are_what_the_head_reads() -> None:
    tiny = TinyDecoder()
    cache = tiny.new_cache()
    hidden = tiny.hidden([3, 1, 2], cache)
    assert (hidden.shape, cache.length, "unembedding" in tiny.work.flops_by_step) == ((3, 16), 3, False)
    np.testing.assert_array_equal(hidden @ tiny.weights.head.values, tiny.forward_full([3, 1, 2]))


def test_a_matrix_names_its_steps() -> None:
    with pytest.raises(CostModelError, match="no step 'down' in this matrix; it holds up, gate"):
        Matrix(np.arange(6.0), 2, {"up": 2, "gate": 1}).part("down")
