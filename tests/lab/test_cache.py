import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.cache import KVCache
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.shape import DecoderShape

SHAPE = DecoderShape(vocab=4, d_model=4, n_layers=2, max_len=50, n_heads=2, n_kv_heads=2, head_dim=2, d_ff=4)


def fill(cache: KVCache, tokens: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Write random keys and values of every layer; return what layer 1 got."""
    cache.reserve(tokens)
    for layer in range(2):
        keys, values = rng.normal(size=(2, tokens, 2, 2))
        cache.write(layer, keys, values)
    cache.advance(tokens)
    return keys, values


def test_it_doubles_and_moves_nothing() -> None:
    cache, rng = KVCache(SHAPE, capacity=4), np.random.default_rng(0)
    kept, capacities, first = [], [], None
    for tokens in (3, 1, 1, 4, 10, 12, 19):
        kept.append(fill(cache, tokens, rng))
        capacities.append(cache.capacity)
        here = next(cache.read(1, cache.length))[0].__array_interface__["data"][0]
        first = first or here
        assert here == first  # the first chunk is where it always was
    assert capacities == [4, 4, 8, 16, 32, 32, 50]  # doubles, and ends at max_len
    for part in (0, 1):
        read = np.concatenate([chunk[part] for chunk in cache.read(1, 50)], axis=1)
        np.testing.assert_array_equal(read, np.concatenate([k[part] for k in kept]).swapaxes(0, 1))


def test_bytes_are_those_of_the_formula() -> None:
    cache = KVCache(SHAPE, capacity=10)
    assert cache.nbytes == 2 * 2 * 2 * 2 * 8 * 10  # 2·L·K·H·b·tokens


def test_it_ends_at_max_len() -> None:
    cache = KVCache(SHAPE)
    assert cache.capacity == 50
    with pytest.raises(CostModelError, match="sequence of 51 tokens is longer than max_len, 50"):
        cache.reserve(51)


def test_truncating_forgets_and_goes_on() -> None:
    tiny = TinyDecoder()
    cache = tiny.new_cache(capacity=2)
    tiny.forward_full([1, 2, 3, 4, 5], cache)
    cache.truncate(1)
    np.testing.assert_allclose(
        tiny.forward_full([7, 8, 9], cache), tiny.forward_full([1, 7, 8, 9])[1:], rtol=0, atol=1e-10
    )
    for length in (-1, 5):
        with pytest.raises(CostModelError, match=f"length must be 0 to the 4 tokens in the cache, got {length}"):
            cache.truncate(length)


def test_a_fork_is_independent() -> None:
    tiny = TinyDecoder()
    cache = tiny.new_cache(capacity=16)  # room for all, so that neither moves to memory of its own by growing
    tiny.forward_full([1, 2, 3, 4, 5], cache)
    fork = cache.fork()
    for each, sixth in ((cache, 6), (fork, 9)):
        tiny.forward_step(sixth, 5, each)
    for each, sixth in ((cache, 6), (fork, 9)):
        expected = tiny.forward_full([1, 2, 3, 4, 5, sixth, 0])[-1]
        np.testing.assert_allclose(tiny.forward_step(0, 6, each), expected, rtol=0, atol=1e-10)
