"""The layers of a configuration: what mixes tokens, and what works on each token alone.

Kinds that a dense model does not need are imported where they are made, so that a single answer starts fast.
"""

from costmodel.layers import Attention, Mlp
from costmodel.layers._layer import Layer
from costmodel.zoo.families import Experts, Family
from costmodel.zoo.fields import ALIASES, Fields
from costmodel.zoo.patterns import head_width, kv_heads


def switched(fields: Fields, which: bool | str) -> bool:
    """A part that the family always has, never has, or switches by a field (absent: not there)."""
    return fields.flag(which, False) if isinstance(which, str) else which


def family_default(family: Family, name: str) -> dict[str, int]:
    """The default of a size, where the family has one."""
    return {"default": family.defaults[name]} if name in family.defaults else {}


def _check_fixed(fields: Fields, family: Family, D: int, N: int) -> None:
    """Refuse a stated size that the family's own code would not use."""
    implied = {"head_dim": D // N, "num_key_value_heads": N, "intermediate_size": D * (family.ffn_factor or 0)}
    for name in family.fixed:
        stated = fields.count(name, default=None, null=None)
        if stated not in (None, implied[name]):
            raise fields.refuse(f"{name} ({stated}) is not read by models of this family, which use {implied[name]}")


def attention(fields: Fields, family: Family, kind: str, D: int, window: int | None) -> Layer:
    """Grouped-query attention of one layer."""
    N = fields.count("num_attention_heads", **family_default(family, "num_attention_heads"))
    _check_fixed(fields, family, D, N)
    K = kv_heads(fields, family, N)
    if N % K:
        assumed = "" if "num_key_value_heads" in fields.values else f" (assumed for {kind}: the field is absent)"
        raise fields.refuse(f"num_attention_heads ({N}) is not a multiple of num_key_value_heads ({K}){assumed}")
    return Attention(
        D, N, K, head_width(fields, family, D, N), window=window,
        qkv_bias=switched(fields, family.qkv_bias), out_bias=switched(fields, family.out_bias), qk_norm=family.qk_norm,
        sinks=family.sinks, output_gate=family.output_gate,
        rope=family.learned_positions is None and family.mixer != "mamba hybrid",
    )  # fmt: skip


def latent(fields: Fields, D: int) -> Layer:
    """Multi-head latent attention; whether queries have a latent must be stated, null for none."""
    from costmodel.layers.latent import LatentAttention

    if "q_lora_rank" not in fields.values:
        raise fields.refuse("missing required field q_lora_rank (null where queries are projected directly)")
    return LatentAttention(
        D, fields.count("num_attention_heads"), fields.count("kv_lora_rank"), fields.count("qk_rope_head_dim"),
        fields.count("qk_nope_head_dim"), fields.count("v_head_dim"), fields.count("q_lora_rank", null=None),
    )  # fmt: skip


def mamba(fields: Fields, family: Family, D: int) -> Layer:
    """A Mamba layer, in the names of the pure models or of Jamba."""
    from costmodel.layers.state_space import Mamba

    if family.mixer == "mamba hybrid":
        names = ("mamba_d_state", "mamba_d_conv", "mamba_dt_rank", "mamba_conv_bias", "mamba_proj_bias")
        inner = D * fields.count("mamba_expand", default=2)
    else:
        names = ("state_size", "conv_kernel", "time_step_rank", "use_conv_bias", "use_bias")
        expanded = D * fields.count("expand", default=2)
        inner = fields.count("intermediate_size", default=expanded, null=expanded)
        if inner != expanded:
            raise fields.refuse(f"intermediate_size ({inner}) is not expand x hidden_size ({expanded})")
    state, kernel, rank, conv_bias, bias = names
    normed = family.mixer == "mamba hybrid"
    automatic = -(-D // 16)
    steps = automatic if fields.get(rank, "auto") == "auto" else fields.count(rank)
    return Mamba(
        D, inner, fields.count(state, default=16), fields.count(kernel, default=4), steps,
        conv_bias=fields.flag(conv_bias, True), bias=fields.flag(bias, False), inner_norms=normed,
    )  # fmt: skip


def mamba2(fields: Fields, D: int) -> Layer:
    """A Mamba-2 layer."""
    from costmodel.layers.state_space import Mamba2

    heads, width = fields.count("num_heads", default=128), fields.count("head_dim", default=64)
    if heads * width != D * fields.count("expand", default=2):
        raise fields.refuse(f"num_heads ({heads}) x head_dim ({width}) is not expand x hidden_size ({D})")
    return Mamba2(
        D, heads, width, fields.count("state_size", default=128), fields.count("n_groups", default=8),
        fields.count("conv_kernel", default=4), fields.flag("use_conv_bias", True), fields.flag("use_bias", False),
    )  # fmt: skip


def delta(fields: Fields, D: int) -> Layer:
    """A gated delta net."""
    from costmodel.layers.recurrent import GatedDelta

    names = ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim", "conv_kernel_dim")
    return GatedDelta(D, *(fields.count(f"linear_{name}") for name in names))


def mlp(fields: Fields, family: Family, D: int) -> Mlp:
    """The feed-forward layer."""
    factor = D * family.ffn_factor if family.ffn_factor else None
    others = [n for n in ("intermediate_size", *ALIASES["intermediate_size"]) if fields.values.get(n) is not None]
    if others and family.ffn_field not in others and "intermediate_size" not in family.fixed:
        raise fields.refuse(f"{others[0]} is not read by models of this family; {family.ffn_field} is")
    usual = family_default(family, "intermediate_size") if factor is None else {"default": factor, "null": factor}
    F = fields.count("intermediate_size", **usual)
    return Mlp(D, F, gated=family.gated, bias=switched(fields, family.mlp_bias))


def moe(fields: Fields, family: Family, experts: Experts, D: int) -> Layer:
    """The mixture of experts; Jamba's with a single expert is a plain MLP."""
    from costmodel.layers.moe import Moe

    width, count, active = (fields.count(name) for name in (experts.width, experts.count, experts.active))
    if active > count:
        raise fields.refuse(f"{experts.active} ({active}) exceeds {experts.count} ({count})")
    if experts.offset and count == 1:
        return mlp(fields, family, D)
    shared = None
    if experts.shared and (width_shared := fields.whole(experts.shared)):
        shared = Mlp(D, width_shared)
    if experts.shared_count and (times := fields.whole(experts.shared_count)):
        shared = Mlp(D, times * width)
    return Moe(
        Mlp(D, width, gated=family.gated, bias=experts.bias), count, active, shared,
        shared_gate=experts.shared_gate and shared is not None, router_bias=experts.router_bias,
    )  # fmt: skip
