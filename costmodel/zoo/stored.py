"""The bytes that a checkpoint's weights really take: its dtype, or its quantization with scales and leftovers."""

import re
from fractions import Fraction

from costmodel.common.formats import ALIASES
from costmodel.model import Model
from costmodel.zoo.fields import Fields

DTYPES = {name: ALIASES[name] for name in ("float32", "float16", "bfloat16")}
PACKED_BITS = (2, 3, 4, 8)  # of gptq and awq
KNOWN = ("gptq", "awq", "fp8", "mxfp4", "bitsandbytes")
SPARED = ("modules_to_not_convert", "llm_int8_skip_modules", "ignored_layers")
# What every method leaves in 16 bit, by the ends of the names: routers, norms, embeddings, heads, encoders.
LEFT = re.compile(
    r"(^|[.*])(gate|shared_expert_gate|router|wte|wpe|ln_\w+|\w*(norm|embed|head)\w*)(\.weight)?$|vision|visual|projector"
)
ATTENTION = re.compile(r"(^|[.*])(self_attn|attn|[qkvo]_proj)$")  # which mxfp4 leaves too


def stated_dtype(fields: Fields, text: Fields, notes: list[str]) -> str:
    """The dtype that a file states, in the text section or around it; bf16 if none."""
    for source in (text, fields):
        stated = source.text("dtype") or source.text("torch_dtype")
        if stated is not None:
            short = stated.removeprefix("torch.")
            if short not in DTYPES:
                raise source.refuse(f"dtype must be one of {', '.join(DTYPES)}, got {stated!r}")
            return DTYPES[short]
    notes.append("no dtype is stated: bf16 is assumed")
    return "bf16"


def quantized_bytes(quantization: Fields, model: Model, notes: list[str]) -> Fraction | None:
    """Bytes per weight, scales and the modules left in 16 bit included; None where they cannot be known, as when a file
    lists further matrices that are not quantized.

    gptq, awq: b/8 per weight, and per group of inputs a 16-bit scale and a b-bit zero-point; gptq adds a 4-byte group
    index per input. fp8: 1 per weight, a 4-byte scale per block. mxfp4: 17/32 per expert weight. bitsandbytes: in
    8 bit, 1 per weight and a 4-byte scale per output; in 4 bit, 1/2, and per 64 weights a 4-byte scale, or with double
    quantization 1 byte and 4 more per 256 scales.
    """
    method = quantization.text("quant_method")
    source = quantization.source.removesuffix(": quantization_config")
    if method not in KNOWN:
        shown = "no quant_method" if method is None else f"quant_method {method!r}"
        notes.insert(0, f"{source}: quantization_config has {shown}: bytes per weight cannot be known")
        return None
    spared = (name for field in SPARED for name in quantization.strings(field) or [])
    if further := [name for name in spared if not _left_anyway(name, method)]:
        shown = f"{further[0]!r}" + (f" and {len(further) - 1} more" if len(further) > 1 else "")
        notes.insert(0, f"{source}: quantization_config leaves {shown} unquantized: bytes per weight cannot be known")
        return None
    from costmodel.layers.moe import Moe  # only where a checkpoint is quantized

    matrices = [
        (inputs, outputs, times * count)
        for block, count in model.blocks
        for layer in block.layers
        if method != "mxfp4" or isinstance(layer, Moe)
        for inputs, outputs, times in layer.matrices()
    ]
    inside = sum(inputs * outputs * times for inputs, outputs, times in matrices)
    stored = sum(times * _matrix_bytes(quantization, method, i, o) for i, o, times in matrices)
    return Fraction(stored + 2 * (model.params - inside)) / model.params


def _left_anyway(name: str, method: str) -> bool:
    return bool(LEFT.search(name) or (method == "mxfp4" and ATTENTION.search(name)))


def _matrix_bytes(quantization: Fields, method: str, inputs: int, outputs: int) -> Fraction:
    if method == "mxfp4":
        return Fraction(17, 32) * inputs * outputs
    if method == "fp8":
        stated = quantization.numbers("weight_block_size") or [outputs, inputs]
        if len(stated) != 2:
            raise quantization.refuse(f"weight_block_size must be two sizes, got {len(stated)}")
        rows, columns = (quantization.positive("weight_block_size", size) for size in stated)
        return Fraction(inputs * outputs + 4 * -(-outputs // rows) * -(-inputs // columns))
    if method == "bitsandbytes":
        return _bitsandbytes(quantization, inputs, outputs)
    bits = quantization.count("bits")
    if bits not in PACKED_BITS:
        raise quantization.refuse(f"bits must be one of {', '.join(map(str, PACKED_BITS))}, got {bits}")
    size = quantization.get("group_size", 128)
    groups = 1 if size == -1 else -(-inputs // quantization.positive("group_size", size))
    index = 4 * inputs if method == "gptq" else 0
    return Fraction(inputs * outputs * bits, 8) + groups * outputs * (2 + Fraction(bits, 8)) + index


def _bitsandbytes(quantization: Fields, inputs: int, outputs: int) -> Fraction:
    eight, four = (quantization.flag(f"load_in_{bits}bit", False) for bits in (8, 4))
    if eight == four:
        raise quantization.refuse("one of load_in_8bit and load_in_4bit must be true")
    if eight:
        return Fraction(inputs * outputs + 4 * outputs)
    scales = -(-inputs * outputs // 64)
    double = quantization.flag("bnb_4bit_use_double_quant", False)
    return Fraction(inputs * outputs, 2) + (scales + 4 * -(-scales // 256) if double else 4 * scales)
