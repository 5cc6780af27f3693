"""A Llama-shaped GGUF file as a Decoder: its metadata gives the shape, its tensors the weights."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from costmodel.common.checks import present
from costmodel.common.errors import ConfigError, CostModelError
from costmodel.common.gguf_file import GGUFFile, read_gguf
from costmodel.common.llama_header import llama_header
from costmodel.lab.shape import DecoderShape
from costmodel.lab.transformer import Decoder
from costmodel.lab.weights import DecoderWeights, allocate


def decoder_from_gguf(file: GGUFFile | str | Path) -> Decoder:
    """The decoder that a Llama-shaped GGUF file holds, in float32.

    Parameters
    ----------
    file : a path, or what `read_gguf` returned

    Raises
    ------
    ConfigError
        naming the file and the key or tensor, when it is damaged or describes something else
    """
    file = file if isinstance(file, GGUFFile) else read_gguf(file)
    shape = shape_from_gguf(file)
    weights = allocate(shape)
    _fill(file, shape, weights)
    return Decoder(shape, weights)


def shape_from_gguf(file: GGUFFile) -> DecoderShape:
    """The shape that the file states, in float32.

    Raises
    ------
    ConfigError
        naming the key or tensor at fault
    """
    header = llama_header(file)
    try:
        return DecoderShape(**asdict(header), gated=True, norm_gain=True, dtype=np.float32)
    except CostModelError as error:
        raise ConfigError(f"{file.path}: {error}") from error


def _fill(file: GGUFFile, shape: DecoderShape, weights: DecoderWeights) -> None:
    for index, layer in enumerate(weights.layers):
        names = {"query": "attn_q", "key": "attn_k", "value": "attn_v", "output": "attn_output"}
        names |= {"up": "ffn_up", "gate": "ffn_gate", "down": "ffn_down"}
        for matrix in (layer.qkv, layer.output, layer.up, layer.down):
            for step in matrix.outputs:
                matrix.part(step)[...] = file.array(f"blk.{index}.{names[step]}.weight").T
        present("attention_gain", layer.attention_gain)[...] = file.array(f"blk.{index}.attn_norm.weight")
        present("mlp_gain", layer.mlp_gain)[...] = file.array(f"blk.{index}.ffn_norm.weight")
    present("final_gain", weights.final_gain)[...] = file.array("output_norm.weight")
    weights.embedding[...] = file.array("token_embd.weight")
    if not shape.tied:
        weights.head.values[...] = file.array("output.weight").T
