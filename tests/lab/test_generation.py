import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.decoder import TinyDecoder


def test_the_last_token_needs_no_position() -> None:
    tiny = TinyDecoder(max_len=8)
    assert len(tiny.generate([1], 8).tokens) == 9
    with pytest.raises(CostModelError, match="need 9 positions; max_len is 8"):
        tiny.generate([1], 9)


def test_nothing_to_generate() -> None:
    run = TinyDecoder().generate([1, 2], 0)
    assert (run.tokens, run.new_tokens, run.positions_processed, run.flops) == ([1, 2], [], 0, 0)


@pytest.mark.parametrize(("prompt", "n_new", "said"), [([], 1, "prompt is empty"), ([1], -1, "n_new must be at")])
def test_impossible_runs_are_refused_before_any_work(prompt: list, n_new: int, said: str) -> None:
    tiny = TinyDecoder()
    with pytest.raises(CostModelError, match=said):
        tiny.stream(prompt, n_new)
    assert tiny.work.flops == 0


def test_it_stops_at_a_stop_token_and_keeps_it() -> None:
    tiny = TinyDecoder()
    free = tiny.generate([1, 2, 3], 10)
    stop = free.new_tokens[3]
    stopped = tiny.generate([1, 2, 3], 10, stop=[stop])
    assert stopped.new_tokens == free.new_tokens[: free.new_tokens.index(stop) + 1]


def test_progress_is_told() -> None:
    told = []
    TinyDecoder().generate([1], 3, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_an_interrupted_run_leaves_the_decoder_and_its_caches_whole() -> None:
    tiny, calls = TinyDecoder(), iter([1, 2])

    def interrupted(_: np.ndarray) -> int:
        try:
            return next(calls)
        except StopIteration:
            raise KeyboardInterrupt from None

    expected = TinyDecoder().generate([1, 2, 3], 9)
    with pytest.raises(KeyboardInterrupt):
        tiny.generate([1, 2, 3], 9, choose=interrupted)
    assert tiny.generate([1, 2, 3], 9) == expected


def test_an_interrupted_pass_leaves_the_cache_as_it_was() -> None:
    tiny = TinyDecoder()
    cache = tiny.new_cache()
    tiny.forward_full([1, 2, 3], cache)
    down = tiny.weights.layers[1].down
    whole = down.multiply

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    down.multiply = interrupted
    with pytest.raises(KeyboardInterrupt):
        tiny.forward_step(4, 3, cache)
    down.multiply = whole
    assert cache.length == 3
    np.testing.assert_allclose(tiny.forward_step(5, 3, cache), tiny.forward_full([1, 2, 3, 5])[-1], rtol=0, atol=1e-10)


def test_positions_are_linear_with_a_cache_and_quadratic_without() -> None:
    positions = [TinyDecoder(max_len=300).generate([1], n).positions_processed for n in (64, 128, 256)]
    assert positions == [64, 128, 256]
    naive = [TinyDecoder(max_len=300).generate([1], n, use_cache=False).positions_processed for n in (64, 128)]
    assert naive == [64 * 65 // 2, 128 * 129 // 2]
