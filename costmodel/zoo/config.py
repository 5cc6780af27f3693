"""A `config.json` in, a Model out, or a clear refusal. Nothing is imported, run or fetched."""

from costmodel.model import Model, transformer
from costmodel.zoo.families import FAMILIES, FOREIGN, Family
from costmodel.zoo.fields import Fields

LAYER_KINDS = {"full_attention": False, "sliding_attention": True}  # kind -> whether it has the window
DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def model_from_config(values: dict[str, object], source: str, name: str | None = None) -> Model:
    """Build a Model from a published configuration.

    Parameters
    ----------
    values : the fields of a config.json
    source : what errors call it
    name : what the Model is called; the source if not given

    Raises
    ------
    ConfigError
        naming the source, the field, its value and what would be accepted

    Examples
    --------
    >>> sizes = dict(hidden_size=64, intermediate_size=128, num_attention_heads=4, num_hidden_layers=2, vocab_size=100)
    >>> model_from_config({"model_type": "llama", **sizes}, "tiny").params
    95040
    """
    fields = Fields(values, source)
    notes: list[str] = []
    kind, family = _family(fields, notes)
    if fields.section("text_config") is not None:
        raise fields.refuse(f"text_config: a nested (multimodal) configuration is not supported for {kind}")
    if foreign := [n for n in FOREIGN if values.get(n) not in (None, 0, False, [], {})]:
        raise fields.refuse(f"{', '.join(foreign)} changes the count and is not understood for model_type {kind!r}")

    D, N, F, L, V = (
        fields.count(n)
        for n in ("hidden_size", "num_attention_heads", "intermediate_size", "num_hidden_layers", "vocab_size")
    )
    K = fields.count("num_key_value_heads", default=family.kv_heads or N, null=N)
    if N % K:
        assumed = "" if "num_key_value_heads" in values else f" (assumed for {kind}: the field is absent)"
        raise fields.refuse(f"num_attention_heads ({N}) is not a multiple of num_key_value_heads ({K}){assumed}")

    def bias(which: bool | str) -> bool:
        return fields.flag(which, False) if isinstance(which, str) else which

    about = {"name": name or source, "family": kind, "dtype": _dtype(fields, notes), "notes": tuple(notes)}
    return transformer(
        V=V, D=D, F=F, N=N, K=K, H=_head_width(fields, family, D, N), L=L,
        windows=_windows(fields, family, L), tied_head=fields.flag("tie_word_embeddings", family.tied_head),
        qkv_bias=bias(family.qkv_bias), out_bias=bias(family.out_bias), mlp_bias=bias(family.mlp_bias),
        qk_norm=family.qk_norm,
        positions=fields.count("max_position_embeddings", default=None, null=None), **about,
    )  # fmt: skip


def _family(fields: Fields, notes: list[str]) -> tuple[str, Family]:
    """The family by model_type, or by the architecture when no type is given; another head is refused."""
    kind, architectures = fields.text("model_type"), fields.strings("architectures") or []
    by_architecture = {family.architecture: name for name, family in FAMILIES.items()}
    if kind is None:
        if not architectures:
            missing = [
                n
                for n in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
                if n not in fields.values
            ]
            also = f", and {', '.join(missing)}" if missing else ""
            raise fields.refuse(
                f"missing model_type (and architectures){also}; known model types: {', '.join(FAMILIES)}"
            )
        kind = by_architecture.get(architectures[0])
        if kind is None:
            raise fields.refuse(
                f"no model_type, and architecture {architectures[0]!r} is unknown; known: {', '.join(by_architecture)}"
            )
        notes.append(f"no model_type: taken as {kind} because architectures names {architectures[0]}")
    if kind not in FAMILIES:
        raise fields.refuse(f"unsupported model_type {kind!r} (custom code is not run); known: {', '.join(FAMILIES)}")
    if other := [a for a in architectures if not a.endswith("ForCausalLM")]:
        raise fields.refuse(f"architectures names {other[0]!r}, not {FAMILIES[kind].architecture}: another head")
    return kind, FAMILIES[kind]


def _head_width(fields: Fields, family: Family, D: int, N: int) -> int:
    """head_dim where given (it always wins), else the family's own width, else D/N."""
    given = fields.count("head_dim", default=None, null=None)
    even = D // N if D % N == 0 else None
    if given is not None:
        return given
    if family.head_width is not None and ("head_dim" not in fields.values or even == family.head_width):
        return family.head_width
    if family.head_width is not None:
        raise fields.refuse(f"head_dim is null, and neither {family.head_width} nor {even} is certain: give head_dim")
    if even is None:
        raise fields.refuse(
            f"hidden_size ({D}) is not divisible by num_attention_heads ({N}) and head_dim is absent: give head_dim"
        )
    return even


def _windows(fields: Fields, family: Family, L: int) -> list[tuple[int | None, int]]:
    """[(W or None, layers), …]: which layers slide, from layer_types, or from where sliding starts."""
    value = fields.get("sliding_window", family.window)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value <= 0):
        raise fields.refuse(f"sliding_window must be a positive integer or null, got {value}")
    window = None if value is None else fields.positive("sliding_window", value)
    if family.window_switch and not fields.flag(family.window_switch, False):
        window = None
    kinds = fields.strings("layer_types")
    if kinds is not None:
        sliding = _sliding_layers(fields, kinds, L)
        if sliding and window is None:
            raise fields.refuse(f"layer_types has {sliding} sliding_attention layers but no sliding_window is in force")
    elif window is None:
        sliding = 0
    elif family.window_switch:
        first = fields.get("max_window_layers", 28)
        if isinstance(first, bool) or not isinstance(first, int) or first < 0:
            raise fields.refuse(f"max_window_layers must be a whole number, at least 0, got {first}")
        sliding = max(0, L - first)
    else:
        sliding = L
    return [(w, count) for w, count in ((None, L - sliding), (window, sliding)) if count]


def _sliding_layers(fields: Fields, kinds: list[str], L: int) -> int:
    """How many of the layers that layer_types lists are sliding."""
    for i, kind in enumerate(kinds):
        if kind not in LAYER_KINDS:
            raise fields.refuse(
                f"unknown layer type {kind!r} at layer {i} of layer_types: cannot size its cache; "
                f"known: {', '.join(LAYER_KINDS)}"
            )
    if len(kinds) != L:
        raise fields.refuse(f"layer_types lists {len(kinds)} layers but num_hidden_layers is {L}")
    return sum(LAYER_KINDS[kind] for kind in kinds)


def _dtype(fields: Fields, notes: list[str]) -> str | None:
    """The stored format: what the file states, bf16 if it states none, unknown (None) if it is quantized."""
    quantization = fields.section("quantization_config")
    if quantization is not None:
        method = quantization.text("quant_method")
        shown = "no quant_method" if method is None else f"quant_method {method!r}"
        notes.insert(0, f"{fields.source}: quantization_config has {shown}: bytes per weight cannot be known")
        return None
    stated = fields.text("dtype") or fields.text("torch_dtype")
    if stated is None:
        notes.append("no dtype is stated: bf16 is assumed")
        return "bf16"
    short = stated.removeprefix("torch.")
    if short not in DTYPES:
        raise fields.refuse(f"dtype must be one of {', '.join(DTYPES)}, got {stated!r}")
    return DTYPES[short]
