"""Rules that no table of names serves: how many key/value heads, which layers slide, which have experts."""

from collections.abc import Mapping, Sequence

from costmodel.zoo.families import Experts, Family
from costmodel.zoo.fields import Fields

WINDOWED = {"full_attention": False, "sliding_attention": True}  # layer type -> whether it has the window
MIXERS = {"full_attention": "attention", "linear_attention": "delta"}


def kv_heads(fields: Fields, family: Family, N: int) -> int:
    """K: as declared; by Falcon's rule; one for GPT-BigCode's multi-query."""
    if family.kv_rule == "falcon":
        if _stated(fields, "new_decoder_architecture", False):
            return fields.count("num_kv_heads", default=N, null=N)
        return 1 if _stated(fields, "multi_query", True) else N
    if family.kv_rule == "bigcode":
        return 1 if fields.flag("multi_query", True) else N
    return fields.count("num_key_value_heads", default=family.kv_heads or N, null=N)


def norms_per_layer(fields: Fields, family: Family, kind: str) -> int:
    """Norms of one layer; Falcon's depends on how its blocks are wired."""
    if kind != "falcon":
        return family.norms
    if not _stated(fields, "parallel_attn", True):
        return 2
    usual = 2 if _stated(fields, "new_decoder_architecture", False) else 1
    return 2 if fields.count("num_ln_in_parallel_attn", default=usual, null=usual) == 2 else 1


def _stated(fields: Fields, name: str, default: bool) -> bool:
    """A flag whose null is not its default in every reader: it must be stated or left out."""
    if fields.get(name, default) is None:
        raise fields.refuse(f"{name} must be true or false, got null")
    return fields.flag(name, default)


def head_width(fields: Fields, family: Family, D: int, N: int) -> int:
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


def windows(fields: Fields, family: Family, L: int) -> list[int | None]:
    """W of each layer, None where it attends to everything."""
    off = family.window_switch is not None and not fields.flag(family.window_switch, False)
    value = fields.get("sliding_window", family.window)
    if off and type(value) is int and value == 0:  # written so where the switch is off
        value = None
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value <= 0):
        raise fields.refuse(f"sliding_window must be a positive integer or null, got {value}")
    window = None if value is None else fields.positive("sliding_window", value)
    if off:
        window = None
    kinds = layer_types(fields, L, WINDOWED)
    if kinds is not None:
        sliding = [WINDOWED[kind] for kind in kinds]
        if any(sliding) and window is None:
            raise fields.refuse(
                f"layer_types has {sum(sliding)} sliding_attention layers but no sliding_window is in force"
            )
    elif window is None:
        sliding = [False] * L
    elif family.pattern == "even":
        sliding = [i % 2 == 0 for i in range(L)]
    elif isinstance(family.pattern, tuple):
        every = fields.count(family.pattern[0], default=family.pattern[1], null=family.pattern[1])
        sliding = [(i + 1) % every != 0 for i in range(L)]
    elif family.pattern == "from":
        first = fields.whole("max_window_layers", family.window_from)
        sliding = [i >= first for i in range(L)]
    else:
        sliding = [True] * L
    return [window if slides else None for slides in sliding]


def layer_types(fields: Fields, L: int, known: Mapping[str, object]) -> list[str] | None:
    """The layer types that a file lists, each known and one for each layer; None when it lists none."""
    kinds = fields.strings("layer_types")
    for i, kind in enumerate(kinds or ()):
        if kind not in known:
            raise fields.refuse(
                f"unknown layer type {kind!r} at layer {i} of layer_types: cannot size its cache; "
                f"known: {', '.join(known)}"
            )
    if kinds is not None and len(kinds) != L:
        raise fields.refuse(f"layer_types lists {len(kinds)} layers but num_hidden_layers is {L}")
    return kinds


def mixers(fields: Fields, family: Family, L: int) -> list[str]:
    """What mixes tokens in each layer."""
    if family.mixer == "mamba hybrid":
        period, offset = fields.count("attn_layer_period", default=8), fields.whole("attn_layer_offset", 4)
        return ["attention" if i % period == offset else "mamba" for i in range(L)]
    if family.mixer == "delta hybrid":
        kinds = layer_types(fields, L, MIXERS)
        every = fields.count("full_attention_interval", default=4)
        return [MIXERS[k] for k in kinds] if kinds else ["delta" if (i + 1) % every else "attention" for i in range(L)]
    return [family.mixer] * L


def has_experts(fields: Fields, experts: Experts | None, L: int) -> Sequence[bool]:
    """Which layers have experts."""
    if experts is None:
        return [False] * L
    first = fields.whole(experts.first_dense) if experts.first_dense else 0
    dense = fields.numbers(experts.only_dense) if experts.only_dense else []
    every, offset = 1, 0
    if experts.every and experts.offset:  # layers offset, offset + every, …
        every, offset = fields.count(experts.every, default=2), fields.whole(experts.offset, 1)
        return [i % every == offset and i >= first for i in range(L)]
    if experts.every:  # layers every − 1, 2·every − 1, …
        every = fields.count(experts.every, default=1)
    return [i >= first and i not in dense and (i + 1) % every == 0 for i in range(L)]
