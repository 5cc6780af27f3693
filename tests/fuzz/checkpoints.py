"""GGUF and safetensors files, small ones made here, with headers that are damaged or lie."""

import copy
import json
import math
import struct
from random import Random

from costmodel.common.errors import ConfigError, CostModelError
from costmodel.common.gguf_file import BLOCKS, SCALARS, read_gguf
from costmodel.zoo import load
from costmodel.zoo.gguf import model_from_gguf
from tests.fuzz.damage import LIES, damaged_bytes, damaged_text, file_with
from tests.fuzz.harness import Target

V, D, F, N, K = 6, 32, 64, 4, 2
CODES = SCALARS | {8: "string", 9: "array"}
LLAMA = {
    "general.architecture": (8, "llama"), "llama.block_count": (4, 1), "llama.context_length": (4, 40),
    "llama.embedding_length": (4, D), "llama.feed_forward_length": (4, F), "llama.attention.head_count": (4, N),
    "llama.attention.head_count_kv": (4, K), "llama.attention.layer_norm_rms_epsilon": (6, 1e-5),
    "llama.rope.freq_base": (6, 10_000.0), "general.alignment": (4, 32), "tokenizer.ggml.tokens": (9, ["a", "b", "é"]),
    "tokenizer.ggml.scores": (9, [0.5, 1.0, -2.0]), "llama.expert_count": (10, 0), "general.file_type": (5, -1),
}  # fmt: skip
SHAPES = {
    "token_embd.weight": (V, D), "output_norm.weight": (D,), "blk.0.attn_norm.weight": (D,),
    "blk.0.attn_q.weight": (D, D), "blk.0.attn_k.weight": (K * D // N, D), "blk.0.attn_v.weight": (K * D // N, D),
    "blk.0.attn_output.weight": (D, D), "blk.0.ffn_norm.weight": (D,), "blk.0.ffn_up.weight": (F, D),
    "blk.0.ffn_gate.weight": (F, D), "blk.0.ffn_down.weight": (D, F), "output.weight": (V, D),
}  # fmt: skip
DATA = bytes(range(256)) * 160  # of all tensors, if each takes the 4 bytes per number of its type


def _text(words: str) -> bytes:
    raw = words.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(kind: int, value: object) -> bytes:
    if kind == 8:
        return _text(value)
    if kind == 9:
        inner = 8 if isinstance(value[0], str) else 6
        return struct.pack("<IQ", inner, len(value)) + b"".join(_value(inner, one) for one in value)
    return struct.pack("<" + SCALARS[kind], value)


def gguf_bytes(values: dict[str, tuple], tensors: dict[str, tuple], version: int = 3) -> bytes:
    """A GGUF file: metadata {key: (type, value)}, tensors {name: (shape, ggml type, offset)}, some data.

    A tensor whose offset is None follows the one before.
    """
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    for key, (kind, value) in values.items():
        head += _text(key) + struct.pack("<I", kind) + _value(kind, value)
    place = 0
    for name, (shape, kind, offset) in tensors.items():
        at, (numbers, size) = place if offset is None else offset, BLOCKS.get(kind, (1, 4))
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, at % 2**64)
        place += -(-math.prod(shape) // numbers * size // 32) * 32
    return head + bytes(-len(head) % 32) + DATA


def made_gguf(rng: Random) -> bytes:
    """A Llama-shaped file with another value, shape, type or offset here and there; half are damaged as bytes."""
    values = dict(LLAMA)
    tensors = {name: (shape, rng.choice((0, 0, 1, 8)), None) for name, shape in SHAPES.items()}
    for _ in range(rng.choice((0, 0, 1, 2))):
        key, name = rng.choice(list(values)), rng.choice(list(tensors))
        shape, kind, offset = tensors[name]
        change = rng.randrange(8)
        if change == 0:
            values[key] = 10, rng.choice(LIES)
        elif change == 1:
            values[key] = 12, rng.choice((math.nan, math.inf, -1.0, 0.0, 1e-320))
        elif change == 2:
            values[key] = 7, rng.random() < 0.5
        elif change == 3:
            values[key] = 8, rng.choice(("", "llama", "é\n"))
        elif change == 4:
            tensors[name] = tuple(rng.choice((size, rng.choice(LIES))) for size in shape), kind, offset
        elif change == 5:
            tensors[name] = shape, rng.choice((*BLOCKS, 4, 99, 2**32 - 1)), offset
        elif change == 6:
            tensors[name] = shape, kind, rng.choice(LIES)
        else:
            tensors.pop(name)
    data = gguf_bytes(values, tensors, rng.choice((3, 3, 3, 2, 1, 2**31)))
    return data if rng.random() < 0.4 else damaged_bytes(rng, data, rng.randint(1, 3))


def tried_gguf(given: bytes) -> str:
    """Read header and model, then the numbers of a tensor."""
    path = file_with(given, "fuzzed.gguf")
    end = "refused"
    try:
        file = read_gguf(path)
        end = "read, no model"
        assert file.params > 0
        for name in list(file.tensors)[-1:]:
            array_of(file, name)
        model = model_from_gguf(path)
        assert model.params == file.params
        assert model.weight_bytes() == file.weight_bytes > 0
    except ConfigError as refusal:
        assert "fuzzed.gguf" in str(refusal)
        return end
    return "counted"


def array_of(file: object, name: str) -> None:
    """A tensor's numbers, or their refusal by name."""
    try:
        assert file.array(name).shape == file.tensors[name].shape
    except CostModelError as refusal:
        assert "fuzzed.gguf" in str(refusal) or "gguf" in str(refusal)


CONFIG = {
    "model_type": "llama", "vocab_size": V, "hidden_size": D, "intermediate_size": F, "num_hidden_layers": 1,
    "num_attention_heads": N, "num_key_value_heads": K, "torch_dtype": "bfloat16",
}  # fmt: skip
ENTRIES = (None, True, 3, "F16", [], {}, [0, 0], [1], [-1, 4], [0, 2**63], [4, 0], [1.5, 2], ["0", "4"], [2**40, 2**40])


def made_safetensors(rng: Random) -> tuple[str, bytes]:
    """The name and the content of a checkpoint's header, or of an index, with lies in it."""
    if rng.random() < 0.2:
        total = rng.choice((100, *LIES, -1, 1.5, math.nan, "7", None, [], {}, True, 10**400))
        index = {"metadata": rng.choice(({"total_size": total}, total)), "weight_map": {}}
        text = json.dumps(index)
        return "model.safetensors.index.json", damaged_text(rng, text, rng.choice((0, 0, 1))).encode()
    tensors = {
        f"layer.{i}": {"dtype": "BF16", "shape": [8, i], "data_offsets": [16 * i, 16 * i + 16]} for i in range(4)
    }
    tensors["__metadata__"] = {"format": "pt"}
    for _ in range(rng.choice((0, 1, 2))):
        name = rng.choice(list(tensors))
        if rng.random() < 0.3 or not isinstance(tensors[name], dict):
            tensors[name] = copy.deepcopy(rng.choice(ENTRIES))
        else:
            tensors[name][rng.choice(("shape", "data_offsets", "dtype", "x"))] = copy.deepcopy(rng.choice(ENTRIES))
    text = json.dumps(tensors) if rng.random() < 0.6 else damaged_text(rng, json.dumps(tensors), rng.randint(1, 3))
    raw = text.encode()
    length = rng.choice(LIES) if rng.random() < 0.15 else len(raw)
    data = struct.pack("<Q", length) + raw + bytes(64)
    return "model.safetensors", data if rng.random() < 0.7 else damaged_bytes(rng, data, rng.randint(1, 3))


def tried_safetensors(given: tuple[str, bytes]) -> str:
    """Read the model, with the stored bytes that the header states."""
    name, content = given
    file_with(json.dumps(CONFIG), "config.json")
    try:
        model = load(file_with(content, f"fuzzed.{name}"))
        assert model.weight_bytes() > 0
        assert model.params == 2 * V * D + 2 * D * D + 2 * K * D // N * D + 3 * D * F + 3 * D
    except ConfigError as refusal:
        assert "fuzzed." in str(refusal), refusal
        return "refused"
    return "counted"


GGUF = Target("gguf", made_gguf, tried_gguf)
SAFETENSORS = Target("safetensors", made_safetensors, tried_safetensors)
