"""One table of families: which parts their layers have, and what an absent field stands for.

The defaults are those of the classes that read these files in practice; a field that is present always wins.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Experts:
    """Fields of a mixture of experts; those left None do not occur in the family.

    Attributes
    ----------
    count, active, width : fields of E, A and the experts' width
    shared, shared_count : field of the shared expert's width, or of how many experts wide it is
    shared_gate, bias, router_bias : whether the family has them
    first_dense, every, offset, only_dense : fields of the first layers without experts, of how often they occur and
        from where, and of a list of layers without
    """

    count: str
    active: str = "num_experts_per_tok"
    width: str = "moe_intermediate_size"
    shared: str | None = None
    shared_count: str | None = None
    shared_gate: bool = False
    bias: bool = False
    router_bias: bool = False
    first_dense: str | None = None
    every: str | None = None
    offset: str | None = None
    only_dense: str | None = None


@dataclass(frozen=True)
class Family:
    """One family of configurations. A part that is a string names the field that switches it.

    Attributes
    ----------
    architectures : classes whose files these are
    mixer : "attention", "latent", "mamba", "mamba2", "delta hybrid" or "mamba hybrid"
    gated, qkv_bias, out_bias, mlp_bias, qk_norm, sinks, output_gate : parts of a layer
    norms, norm_bias, embed_norm : norms per layer, whether they are layer norms with biases, and one on the embedding
    kv_heads, head_width : K and H when absent (None: N, and D/N); kv_rule names a rule of `patterns` for K instead
    window, window_switch, pattern : W when absent, the field that must be true, and which layers have it: "all",
        "even", "from" (the layer of max_window_layers, or `window_from`), or the field (with its default) that says
        every how many layers one is global
    ffn_field, ffn_factor : the field of F, and F/D when it is absent or null
    vocab : V when absent; None: required
    learned_positions, extra_positions : field of a learned table's length, and rows it has beyond
    tied_head, head_bias : what an absent tie_word_embeddings means; whether the head has biases
    experts : mixture of experts, where there is one
    defaults : sizes that may be absent, for the few classes whose published files leave them out
    fixed : sizes that the class does not read: if stated, they must be what it uses (D/N, N, F of `ffn_factor`)
    text : family of the nested text_config; tower names the formula of its vision encoder
    expects : fields with the only values that are understood, absent or present
    """

    architectures: tuple[str, ...]
    mixer: str = "attention"
    gated: bool = True
    qkv_bias: bool | str = False
    out_bias: bool | str = False
    mlp_bias: bool | str = False
    qk_norm: bool = False
    sinks: bool = False
    output_gate: bool = False
    norms: int = 2
    norm_bias: bool = False
    embed_norm: bool = False
    kv_heads: int | None = None
    kv_rule: str | None = None
    head_width: int | None = None
    window: int | None = None
    window_switch: str | None = None
    pattern: str | tuple[str, int] = "all"
    window_from: int = 28
    ffn_field: str = "intermediate_size"
    ffn_factor: int | None = None
    vocab: int | None = None
    learned_positions: str | None = None
    extra_positions: int = 0
    tied_head: bool = False
    head_bias: bool = False
    experts: Experts | None = None
    defaults: dict[str, int] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    text: str | None = None
    tower: str | None = None
    expects: dict[str, tuple[Any, ...]] = field(default_factory=dict)


def _causal(name: str, **parts: Any) -> Family:
    return Family((f"{name}ForCausalLM",), **parts)


_ATTENTION_BIAS = {"qkv_bias": "attention_bias", "out_bias": "attention_bias"}
_ALL_BIASES: dict[str, Any] = {"qkv_bias": True, "out_bias": True, "mlp_bias": True, "norm_bias": True}
_QWEN_WINDOW = {"window": 4096, "window_switch": "use_sliding_window"}
_OWN_HEADS = ("head_dim", "num_key_value_heads")
_QWEN_EXPERTS: dict[str, Any] = {
    "count": "num_experts",
    "every": "decoder_sparse_step",
    "only_dense": "mlp_only_layers",
}
_DEEPSEEK = {
    "mixer": "latent",
    "experts": Experts("n_routed_experts", shared_count="n_shared_experts", first_dense="first_k_dense_replace"),
    "expects": {
        "attention_bias": (False, None),
        "mlp_bias": (False, None),
        "moe_layer_freq": (1, None),
        "sliding_window": (None,),
    },
}
_QWEN3_5 = {
    "mixer": "delta hybrid", "qk_norm": True, "output_gate": True, "qkv_bias": "attention_bias",
    "out_bias": "attention_bias", "kv_heads": 2, "head_width": 256,
    "experts": Experts("num_experts", shared="shared_expert_intermediate_size", shared_gate=True),
    "expects": {"attn_output_gate": (True, None), "mlp_only_layers": ([], None), "attention_bias": (False, None)},
}  # fmt: skip

FAMILIES: dict[str, Family] = {
    "llama": _causal("Llama", mlp_bias="mlp_bias", **_ATTENTION_BIAS),
    "mistral": _causal("Mistral", kv_heads=8, window=4096),
    "mixtral": _causal("Mixtral", kv_heads=8, experts=Experts("num_local_experts", width="intermediate_size")),
    "qwen2": _causal("Qwen2", qkv_bias=True, kv_heads=32, pattern="from", **_QWEN_WINDOW),
    "qwen2_vl_text": _causal(
        "Qwen2VLText", qkv_bias=True, kv_heads=8, pattern="from", window_from=80, fixed=("head_dim",), **_QWEN_WINDOW
    ),
    "qwen2_moe": _causal(
        "Qwen2Moe", qkv_bias=True, kv_heads=16, **_QWEN_WINDOW,
        experts=Experts(shared="shared_expert_intermediate_size", shared_gate=True, **_QWEN_EXPERTS),
        expects={"qkv_bias": (True, None), "use_sliding_window": (False, None)},
    ),
    "qwen3": _causal(
        "Qwen3", pattern="from", qk_norm=True, kv_heads=32, head_width=128, **_ATTENTION_BIAS, **_QWEN_WINDOW
    ),
    "qwen3_moe": _causal(
        "Qwen3Moe", qk_norm=True, kv_heads=4, **_ATTENTION_BIAS, **_QWEN_WINDOW, experts=Experts(**_QWEN_EXPERTS)
    ),
    "qwen3_5_moe_text": _causal("Qwen3_5Moe", **_QWEN3_5),
    "phi3": _causal("Phi3", expects={"attention_bias": (False, None)}),
    "gemma2": _causal(
        "Gemma2", norms=4, kv_heads=4, head_width=256, window=4096, pattern="even", tied_head=True, **_ATTENTION_BIAS
    ),
    "gemma3_text": _causal(
        "Gemma3", norms=4, qk_norm=True, kv_heads=4, head_width=256, window=4096, tied_head=True, vocab=262_208,
        pattern=("sliding_window_pattern", 6), **_ATTENTION_BIAS,
        defaults={"hidden_size": 2304, "num_attention_heads": 8, "num_hidden_layers": 26, "intermediate_size": 9216},
    ),
    "cohere": _causal(
        "Cohere", norms=1, tied_head=True, **_ATTENTION_BIAS, expects={"use_qk_norm": (False, None)}
    ),
    "gpt2": Family(
        ("GPT2LMHeadModel",), gated=False, ffn_field="n_inner", ffn_factor=4,
        learned_positions="n_positions", tied_head=True,
        **_ALL_BIASES, expects={"add_cross_attention": (False, None)}, fixed=_OWN_HEADS,
    ),
    "gptj": _causal(
        "GPTJ", gated=False, norms=1, norm_bias=True, mlp_bias=True, ffn_field="n_inner", ffn_factor=4, head_bias=True,
        fixed=_OWN_HEADS,
    ),
    "gpt_neox": _causal(
        "GPTNeoX", gated=False, **_ALL_BIASES, expects={"attention_bias": (True, None)}, fixed=_OWN_HEADS
    ),
    "gpt_bigcode": _causal(
        "GPTBigCode", gated=False, ffn_field="n_inner", ffn_factor=4, learned_positions="n_positions", tied_head=True,
        kv_rule="bigcode", fixed=("head_dim",), **_ALL_BIASES,
    ),
    "opt": _causal(
        "OPT", gated=False, ffn_field="ffn_dim", learned_positions="max_position_embeddings",
        extra_positions=2, tied_head=True,
        **_ALL_BIASES,
        fixed=_OWN_HEADS,
        expects={
            "do_layer_norm_before": (True, None), "_remove_final_layer_norm": (False, None),
            "enable_bias": (True, None), "layer_norm_elementwise_affine": (True, None),
        },
    ),
    "bloom": _causal(
        "Bloom", gated=False, ffn_factor=4, embed_norm=True, tied_head=True, **_ALL_BIASES,
        fixed=(*_OWN_HEADS, "intermediate_size"),
    ),
    "falcon": _causal(
        "Falcon", gated=False, qkv_bias="bias", out_bias="bias", mlp_bias="bias", norm_bias=True, ffn_factor=4,
        ffn_field="ffn_hidden_size", kv_rule="falcon", tied_head=True, fixed=("head_dim",),
    ),
    "mpt": _causal(
        "Mpt", gated=False, ffn_factor=4, tied_head=True, fixed=(*_OWN_HEADS, "intermediate_size"),
        expects={"no_bias": (True, None), "expansion_ratio": (4, None), "attn_config.qk_ln": (False, None),
                 "attn_config.alibi": (True, None), "attn_config.attn_type": ("multihead_attention", None)},
    ),
    "gpt_oss": _causal(
        "GptOss", qkv_bias=True, out_bias=True, sinks=True, kv_heads=8, head_width=64, window=128, pattern="even",
        experts=Experts("num_local_experts", width="intermediate_size", bias=True, router_bias=True),
        expects={"attention_bias": (True, None)},
    ),
    "deepseek_v2": _causal("DeepseekV2", **_DEEPSEEK),
    "deepseek_v3": _causal("DeepseekV3", **_DEEPSEEK),
    "jamba": _causal(
        "Jamba", mixer="mamba hybrid", kv_heads=8, expects={"sliding_window": (None,)},
        experts=Experts(
            "num_experts", width="intermediate_size", every="expert_layer_period", offset="expert_layer_offset"
        ),
    ),
    "mamba": _causal("Mamba", mixer="mamba", norms=1, tied_head=True),
    "mamba2": _causal("Mamba2", mixer="mamba2", norms=1),
    "gemma3": Family(("Gemma3ForConditionalGeneration",), text="gemma3_text", tower="siglip"),
    "qwen2_vl": Family(("Qwen2VLForConditionalGeneration",), text="qwen2_vl_text", tower="qwen2_vl"),
    "qwen2_5_vl": Family(("Qwen2_5_VLForConditionalGeneration",), text="qwen2_vl_text", tower="qwen2_5_vl"),
    "qwen3_5_moe": Family(("Qwen3_5MoeForConditionalGeneration",), text="qwen3_5_moe_text", tower="qwen3_vl"),
}  # fmt: skip

# Fields that change the count: a file with one that its family does not read is something else.
FOREIGN = (
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok",
    "n_shared_experts", "moe_intermediate_size", "shared_expert_intermediate_size", "kv_lora_rank",
    "q_lora_rank", "vision_config", "audio_config", "encoder_layers", "state_size", "mamba_d_state", "ssm_cfg",
    "layers_block_type", "linear_num_value_heads", "cla_factor", "cross_attention_layers",
    "num_kv_shared_layers", "hidden_size_per_layer_input", "mamba_num_heads",
)  # fmt: skip
