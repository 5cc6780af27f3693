import numpy as np

from costmodel.lab.quantization import scale_and_minimum
from costmodel.lab.text import sample_text
from costmodel.lab.tokenizer import Tokenizer
from costmodel.lab.transformer import Decoder


def test_the_text_ships_with_the_package() -> None:
    text = sample_text()
    assert 800 < len(text.split()) < 1100
    assert text.isascii()
    assert len(text.split("\n\n")) == 8


def test_the_real_file_is_lossless_on_its_own_grid(model: tuple[Decoder, Tokenizer]) -> None:
    for layer in model[0].weights.layers[::10]:
        for matrix in (layer.qkv, layer.output, layer.up, layer.down):
            stored = matrix.values.T
            np.testing.assert_array_equal(scale_and_minimum(stored), stored)
