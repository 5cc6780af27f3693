"""The real small model, for the tests that run it."""

import pytest

from costmodel.common.errors import CostModelError
from costmodel.lab.smollm import find_smollm2, load_smollm2
from costmodel.lab.tokenizer import Tokenizer
from costmodel.lab.transformer import Decoder


@pytest.fixture(scope="module")
def model() -> tuple[Decoder, Tokenizer]:
    """SmolLM2 and its tokenizer; a test that asks for them is skipped, with the reason, where they are not."""
    pytest.importorskip("gguf", reason="the package gguf, of the extra 'lab', is not installed")
    pytest.importorskip("tokenizers", reason="the package tokenizers, of the extra 'lab', is not installed")
    try:
        find_smollm2()
    except CostModelError as error:
        pytest.skip(str(error))
    return load_smollm2()
