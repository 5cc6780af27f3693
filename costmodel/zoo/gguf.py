"""A GGUF header in, a Model out: exact sizes and stored bytes, no weights read."""

from fractions import Fraction
from pathlib import Path

from costmodel.common.errors import ConfigError
from costmodel.common.gguf_file import read_gguf
from costmodel.common.llama_header import llama_header
from costmodel.model import Model, transformer


def model_from_gguf(path: str | Path, name: str | None = None) -> Model:
    """Build a Model from the header of a Llama-shaped GGUF file.

    Its weight format is the file's own: the bytes of all tensors, scales included, over the parameters.

    Parameters
    ----------
    path : of the file
    name : what the Model is called; the path if not given

    Raises
    ------
    ConfigError
        naming the file and what is wrong: damaged, not Llama-shaped, a tensor missing or too many
    """
    file = read_gguf(path)
    header = llama_header(file)
    model = transformer(
        V=header.vocab, D=header.d_model, F=header.d_ff, N=header.n_heads, K=header.n_kv_heads, H=header.head_dim,
        L=header.n_layers, tied_head=header.tied, name=name or str(path), family="llama",
        dtype=Fraction(file.weight_bytes, file.params), positions=header.max_len,
    )  # fmt: skip
    if model.params != file.params:
        raise ConfigError(f"{path}: its tensors hold {file.params:,} numbers, its sizes ask for {model.params:,}")
    return model
