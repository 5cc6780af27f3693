"""A Llama-shaped GGUF file as a Decoder: its metadata gives the shape, its tensors the weights."""

from pathlib import Path

import numpy as np

from costmodel.common.errors import ConfigError
from costmodel.common.gguf_file import GGUFFile, read_gguf
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
    """The shape that the metadata states, with every tensor it asks for there and no other.

    Raises
    ------
    ConfigError
        naming the key or tensor at fault
    """
    architecture = file.metadata.get("general.architecture")
    if architecture != "llama":
        raise ConfigError(f"{file.path}: general.architecture must be 'llama', got {architecture!r}")
    for key, neutral in (("rope.scaling.type", "none"), ("expert_count", 0)):
        if (value := file.metadata.get(f"llama.{key}", neutral)) != neutral:
            raise ConfigError(f"{file.path}: llama.{key} = {value!r} is not supported; only {neutral!r} is")
    width, heads = _count(file, "embedding_length"), _count(file, "attention.head_count")
    head_dim = _count(file, "attention.key_length", default=width // heads)
    rotated = _count(file, "rope.dimension_count", default=head_dim)
    values = _count(file, "attention.value_length", default=head_dim)
    if not head_dim == rotated == values:
        raise ConfigError(
            f"{file.path}: key, value and rotary widths must be equal, got {head_dim}, {values}, {rotated}"
        )
    table = file.tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2:
        raise ConfigError(f"{file.path}: tensor 'token_embd.weight' (vocabulary × width) is missing")
    try:
        shape = DecoderShape(
            vocab=table.shape[0],
            d_model=width,
            n_layers=_count(file, "block_count"),
            max_len=_count(file, "context_length"),
            n_heads=heads,
            n_kv_heads=_count(file, "attention.head_count_kv", default=heads),
            head_dim=head_dim,
            d_ff=_count(file, "feed_forward_length"),
            gated=True,
            norm_gain=True,
            norm_eps=_positive(file, "attention.layer_norm_rms_epsilon"),
            rope_theta=_positive(file, "rope.freq_base", default=10_000.0),
            tied="output.weight" not in file.tensors,
            dtype=np.float32,
        )
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{file.path}: {error}") from error
    _check_tensors(file, shape)
    return shape


def _count(file: GGUFFile, key: str, default: int | None = None) -> int:
    value = file.metadata.get(f"llama.{key}", default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        fault = "is missing" if value is None else f"must be a positive integer, got {value!r}"
        raise ConfigError(f"{file.path}: llama.{key} {fault}")
    return value


def _positive(file: GGUFFile, key: str, default: float | None = None) -> float:
    value = file.metadata.get(f"llama.{key}", default)
    if not isinstance(value, float) or not 0 < value < np.inf:
        fault = "is missing" if value is None else f"must be a positive number, got {value!r}"
        raise ConfigError(f"{file.path}: llama.{key} {fault}")
    return value


def _tensor_shapes(shape: DecoderShape) -> dict[str, tuple[int, ...]]:
    """Every tensor of a Llama-shaped file, outputs × inputs."""
    D, F, V = shape.d_model, shape.d_ff, shape.vocab
    queries, keys = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    layer = {
        "attn_norm": (D,),
        "attn_q": (queries, D),
        "attn_k": (keys, D),
        "attn_v": (keys, D),
        "attn_output": (D, queries),
        "ffn_norm": (D,),
        "ffn_up": (F, D),
        "ffn_gate": (F, D),
        "ffn_down": (D, F),
    }
    found = {f"blk.{i}.{name}.weight": size for i in range(shape.n_layers) for name, size in layer.items()}
    found |= {"token_embd.weight": (V, D), "output_norm.weight": (D,)}
    return found if shape.tied else found | {"output.weight": (V, D)}


def _check_tensors(file: GGUFFile, shape: DecoderShape) -> None:
    if shape.n_layers > len(file.tensors):
        raise ConfigError(f"{file.path}: llama.block_count {shape.n_layers} is more than there are tensors")
    expected = _tensor_shapes(shape)
    for name, size in expected.items():
        if name not in file.tensors:
            raise ConfigError(f"{file.path}: tensor {name!r} is missing")
        if file.tensors[name].shape != size:
            raise ConfigError(f"{file.path}: tensor {name!r} must have shape {size}, got {file.tensors[name].shape}")
    for name in file.tensors:
        if name not in expected:
            raise ConfigError(f"{file.path}: tensor {name!r} is not part of a Llama-shaped model without biases")


def _fill(file: GGUFFile, shape: DecoderShape, weights: DecoderWeights) -> None:
    for index, layer in enumerate(weights.layers):
        names = {"query": "attn_q", "key": "attn_k", "value": "attn_v", "output": "attn_output"}
        names |= {"up": "ffn_up", "gate": "ffn_gate", "down": "ffn_down"}
        for matrix in (layer.qkv, layer.output, layer.up, layer.down):
            for step in matrix.outputs:
                matrix.part(step)[...] = file.array(f"blk.{index}.{names[step]}.weight").T
        layer.attention_gain[...] = file.array(f"blk.{index}.attn_norm.weight")
        layer.mlp_gain[...] = file.array(f"blk.{index}.ffn_norm.weight")
    weights.final_gain[...] = file.array("output_norm.weight")
    weights.embedding[...] = file.array("token_embd.weight")
    if not shape.tied:
        weights.head.values[...] = file.array("output.weight").T
