"""A `config.json` in, a Model out, or a clear refusal. Nothing is imported, run or fetched."""

import json
from dataclasses import replace
from fractions import Fraction

from costmodel.layers import Embedding, Norm, Unembedding
from costmodel.layers._layer import Layer
from costmodel.model import Block, Model
from costmodel.zoo import parts
from costmodel.zoo.families import FAMILIES, FOREIGN, Family
from costmodel.zoo.fields import ALIASES, Fields
from costmodel.zoo.json_file import describe
from costmodel.zoo.patterns import has_experts, mixers, norms_per_layer, windows
from costmodel.zoo.stored import quantized_bytes, stated_dtype
from costmodel.zoo.towers import tower


def model_from_config(
    values: dict[str, object], source: str, name: str | None = None, *, assume_family: str | None = None
) -> Model:
    """Build a Model from a published configuration.

    Parameters
    ----------
    values : the fields of a config.json
    source : what errors call it
    name : what the Model is called; the source if not given
    assume_family : read a model_type that is not known as if it were this one

    Returns
    -------
    Model, with what had to be assumed in its `notes`

    Raises
    ------
    ConfigError
        naming the source, the field, its value and what would be accepted

    Examples
    --------
    >>> sizes = dict(hidden_size=64, intermediate_size=128, num_attention_heads=4, num_hidden_layers=2, vocab_size=100)
    >>> model_from_config({"model_type": "llama", **sizes}, "tiny").params
    95040
    >>> 2 * 100 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64  # embedding and head, two layers, the last norm
    95040
    """
    fields = Fields(values, source)
    notes: list[str] = []
    kind, family = _family(fields, notes, assume_family)
    nested = fields.section("text_config")
    if nested is not None and family.text is None:
        raise fields.refuse(f"text_config: a nested (multimodal) configuration is not supported for {kind}")
    text = nested or fields
    body = family if family.text is None else FAMILIES[family.text]
    _check_understood(text, kind, body, () if nested is not None or family.text is None else ("vision_config",))
    model = _text_model(fields, text, kind, body)
    if family.tower:
        D = text.count("hidden_size", **parts.family_default(body, "hidden_size"))
        model = replace(model, towers=(tower(fields, family.tower, D),))
    dtype: str | Fraction | None = stated_dtype(fields, text, notes)
    quantization = text.section("quantization_config") or fields.section("quantization_config")
    if quantization is not None:
        dtype = quantized_bytes(quantization, model, notes)
    if text.whole("num_nextn_predict_layers", 0):
        notes.append("layers that predict further tokens (num_nextn_predict_layers) are not counted")
    return replace(model, name=name or source, family=kind, dtype=dtype, notes=tuple(notes))


def _family(fields: Fields, notes: list[str], assumed: str | None) -> tuple[str, Family]:
    """The family by model_type, or by the architecture when no type is given; another head is refused."""
    kind, architectures = fields.text("model_type"), fields.strings("architectures") or []
    by_architecture = {a: name for name, family in FAMILIES.items() for a in family.architectures}
    if assumed is not None:
        if assumed not in FAMILIES:
            raise fields.refuse(f"cannot assume family {assumed!r}; known: {', '.join(FAMILIES)}")
        notes.append(f"model_type {kind!r} is read as {assumed}, as asked: nothing vouches for the count")
        return assumed, FAMILIES[assumed]
    if kind not in FAMILIES and architectures and architectures[0] in by_architecture:
        known = by_architecture[architectures[0]]
        stated = "no model_type" if kind is None else f"model_type {kind!r} is not known"
        notes.append(f"{stated}: taken as {known} because architectures names {architectures[0]}")
        return known, FAMILIES[known]
    if kind is None and architectures:
        known = ", ".join(by_architecture)
        raise fields.refuse(f"no model_type, and architecture {architectures[0]!r} is unknown; known: {known}")
    if kind is None:
        needed = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
        missing = [n for n in needed if n not in fields.values]
        also = f", and {', '.join(missing)}" if missing else ""
        raise fields.refuse(f"missing model_type (and architectures){also}; known model types: {', '.join(FAMILIES)}")
    if kind not in FAMILIES:
        raise fields.refuse(f"unsupported model_type {kind!r} (custom code is not run); known: {', '.join(FAMILIES)}")
    family = FAMILIES[kind]
    ending = ("ForConditionalGeneration",) if family.text else ("ForCausalLM", *family.architectures)
    if other := [a for a in architectures if not a.endswith(ending)]:
        raise fields.refuse(f"architectures names {other[0]!r}, not {family.architectures[0]}: another head")
    return kind, family


def _check_understood(text: Fields, kind: str, family: Family, known: tuple[str, ...]) -> None:
    """Refuse fields that change the count: those of other families, and values that this one does not explain."""
    e = family.experts
    read = {
        *known,
        *(() if e is None else (e.count, *ALIASES.get(e.count, ()), e.active, e.width, e.shared, e.shared_count)),
    }
    if family.mixer == "latent":
        read |= {"kv_lora_rank", "q_lora_rank"}
    if "mamba" in family.mixer:
        read |= {"state_size", "mamba_d_state", "ssm_cfg"}
    if family.mixer == "delta hybrid":
        read.add("linear_num_value_heads")
    neutral: tuple[object, ...] = (None, 0, False, [], {})
    if foreign := [n for n in FOREIGN if n not in read and text.values.get(n) not in neutral]:
        raise text.refuse(f"{', '.join(foreign)} changes the count and is not understood for model_type {kind!r}")
    for name, allowed in family.expects.items():
        section, _, inner = name.rpartition(".")
        holder = text.section(section) if section else text
        value = None if holder is None else holder.get(inner, None)
        if not any(value is a or (type(value) is type(a) and value == a) for a in allowed):
            raise text.refuse(f"{name} must be {json.dumps(allowed[0])} for model_type {kind!r}, got {describe(value)}")


def _text_model(fields: Fields, text: Fields, kind: str, family: Family) -> Model:
    D, L = (text.count(n, **parts.family_default(family, n)) for n in ("hidden_size", "num_hidden_layers"))
    V = text.count("vocab_size", **({} if family.vocab is None else {"default": family.vocab}))
    tied = text.flag("tie_word_embeddings", family.tied_head)
    if text is not fields:
        tied = _tied_outside(fields, kind, family, tied)
    norm = lambda name: Norm(D, name, bias=family.norm_bias)  # noqa: E731
    before: list[Layer] = [Embedding(V, D)]
    if family.learned_positions:
        rows = text.count(family.learned_positions) + family.extra_positions
        before.append(Embedding(rows, D, "positions"))
    if family.embed_norm:
        before.append(norm("embedding norm"))
    if kind == "opt" and text.count("word_embed_proj_dim", default=D, null=D) != D:
        raise text.refuse("word_embed_proj_dim differs from hidden_size: its projections are not understood")
    after = (norm("last norm"), Unembedding(V, D, tied, family.head_bias))
    return Model(
        _blocks(text, kind, family, D, L), tuple(before), after,
        tied_head=tied, positions=text.count("max_position_embeddings", default=None, null=None),
    )  # fmt: skip


def _tied_outside(fields: Fields, kind: str, family: Family, inside: bool) -> bool:
    """Whether a nested model's head is tied: Gemma 3 asks outside alone, Qwen2-VL either, others outside first."""
    if kind == "gemma3":
        return fields.flag("tie_word_embeddings", family.tied_head)
    outside = fields.flag("tie_word_embeddings", inside)
    return outside or inside if kind in ("qwen2_vl", "qwen2_5_vl") else outside


def _blocks(text: Fields, kind: str, family: Family, D: int, L: int) -> tuple[tuple[Block, int], ...]:
    """[(block, how often), …]: layers that are alike are counted once."""
    slides = windows(text, family, L) if family.mixer in ("attention", "mamba hybrid") else [None] * L
    plan = list(zip(mixers(text, family, L), slides, has_experts(text, family.experts, L), strict=True))
    counts = {case: plan.count(case) for case in dict.fromkeys(plan)}
    makers = {
        "attention": lambda window: parts.attention(text, family, kind, D, window),
        "latent": lambda _: parts.latent(text, D),
        "mamba": lambda _: parts.mamba(text, family, D),
        "mamba2": lambda _: parts.mamba2(text, D),
        "delta": lambda _: parts.delta(text, D),
    }
    norms = norms_per_layer(text, family, kind)
    names = ("attention norm", "mlp norm", "attention post-norm", "mlp post-norm")[:norms]
    wrapped = tuple(Norm(D, name, bias=family.norm_bias) for name in names)
    blocks = []
    for (mixer, window, routed), count in counts.items():
        layers: tuple[Layer, ...] = (makers[mixer](window),)
        if family.mixer not in ("mamba", "mamba2"):
            layers += (
                parts.moe(text, family, family.experts, D) if routed and family.experts else parts.mlp(text, family, D),
            )
        label = "local" if window else "global" if mixer == "attention" else mixer
        label += " with experts" if routed else ""
        blocks.append((Block((wrapped[0], layers[0], *wrapped[1:], *layers[1:]), label), count))
    return tuple(blocks)
