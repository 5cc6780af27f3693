"""The real small model in both towers: the decoder that runs it and the header that `inspect` reads."""

import pytest

from costmodel import load
from costmodel.common.errors import CostModelError
from costmodel.lab.smollm import PARAMS, find_smollm2, load_smollm2
from costmodel.passes import ForwardPass


@pytest.fixture(scope="module")
def path() -> str:
    pytest.importorskip("gguf", reason="the extra 'lab' is not installed")
    try:
        return str(find_smollm2())
    except CostModelError as absent:
        return pytest.skip(str(absent))


def test_decoder_and_header_agree_exactly(path: str) -> None:
    model, (decoder, _) = load(path), load_smollm2(path)
    assert decoder.params == model.params == PARAMS == 134_515_008
    assert decoder.new_cache(capacity=1024).nbytes == model.cache_bytes(1024, cache="fp32")
    caches = [decoder.new_cache()]
    decoder.forward_batch([[1, 2, 3, 4]], caches)
    before = decoder.work.flops
    assert before == model.prefill(1, 4, causal=False, head="all").flops
    decoder.forward_batch([[5]], caches)
    assert decoder.work.flops - before == model.forward(ForwardPass(1, 1, 5, causal=False)).flops
