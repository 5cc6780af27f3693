"""Tiny configurations of every family: torch counts their FLOPs, and costmodel is held to that count without it."""

from dataclasses import replace

from costmodel.layers import LatentAttention
from costmodel.model import Model

BATCH, PROMPT = 2, 24

COMMON = {"vocab_size": 128}
DENSE = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 96, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip
PLAIN = {name: value for name, value in DENSE.items() if name != "num_key_value_heads"}
GPT2 = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 40}
LATENT = {
    **DENSE, **EXPERTS, "num_key_value_heads": 4, "n_routed_experts": 8, "n_shared_experts": 2, "kv_lora_rank": 24,
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 12, "v_head_dim": 20, "first_k_dense_replace": 1, "n_group": 1,
    "topk_group": 1,
}  # fmt: skip
FALCON = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
DELTA = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 12,
    "linear_conv_kernel_dim": 4, "shared_expert_intermediate_size": 48,
    "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip
SIZES: dict[str, dict[str, object]] = {
    "llama": DENSE,
    "mistral": DENSE | {"sliding_window": 8},
    "mixtral": DENSE | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2": DENSE,
    "qwen2_moe": DENSE | EXPERTS | {"num_experts": 8, "shared_expert_intermediate_size": 48},
    "qwen3": DENSE | {"head_dim": 24},
    "qwen3_moe": DENSE | EXPERTS | {"num_experts": 8, "head_dim": 24},
    "gemma2": DENSE | {"head_dim": 24, "sliding_window": 8},
    "gemma3_text": DENSE | {"head_dim": 24, "sliding_window": 8, "sliding_window_pattern": 2},
    "phi3": DENSE | {"sliding_window": 8},
    "cohere": DENSE,
    "gpt2": GPT2,
    "gptj": GPT2 | {"rotary_dim": 8},
    "gpt_neox": PLAIN,
    "gpt_bigcode": GPT2,
    "opt": {**PLAIN, "ffn_dim": 96, "word_embed_proj_dim": 64} | {"intermediate_size": None},
    "bloom": {"hidden_size": 64, "n_layer": 2, "n_head": 4},
    "falcon": FALCON | {"multi_query": True, "alibi": False},
    "falcon (new decoder)": FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2},
    "mpt": {"d_model": 64, "n_layers": 2, "n_heads": 4, "max_seq_len": 64},
    "gpt_oss": DENSE | {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 24, "sliding_window": 8},
    "deepseek_v2": LATENT | {"q_lora_rank": None},
    "deepseek_v3": LATENT | {"q_lora_rank": 16},
    "mamba": {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8},
    "jamba": DENSE | {
        "num_experts": 4, "num_experts_per_tok": 2, "attn_layer_period": 2, "attn_layer_offset": 1,
        "mamba_d_state": 8, "use_mamba_kernels": False,
    },
    "qwen3_5_moe_text": DENSE | EXPERTS | DELTA | {"num_experts": 8, "head_dim": 24},
}  # fmt: skip


def given(sizes: dict[str, object]) -> dict[str, object]:
    """The fields of one configuration; None leaves a field out, except where it means something."""
    return {field: value for field, value in (COMMON | sizes).items() if value is not None or field == "q_lora_rank"}


def expanded(model: Model) -> Model:
    """The same model, its latent attention in the form that transformers runs."""
    form = lambda layer: replace(layer, absorbed=False) if isinstance(layer, LatentAttention) else layer  # noqa: E731
    blocks = tuple((replace(block, layers=tuple(map(form, block.layers))), n) for block, n in model.blocks)
    return replace(model, blocks=blocks)
