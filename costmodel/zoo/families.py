"""What sets the dense families apart: which projections have biases, and what an absent field stands for.

The defaults are those of the classes that read these files in practice; a field that is present always wins.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One family of configurations.

    Attributes
    ----------
    architecture : the class its files name
    qkv_bias, out_bias, mlp_bias : True, False, or the field that says so
    qk_norm : whether queries and keys are normalised
    kv_heads : K when num_key_value_heads is absent (None: as many as query heads)
    head_width : H when head_dim is absent (None: hidden_size / num_attention_heads)
    window : W when sliding_window is absent
    window_switch : the field that must be true for sliding_window to count
    tied_head : what an absent tie_word_embeddings means
    """

    architecture: str
    qkv_bias: bool | str = False
    out_bias: bool | str = False
    mlp_bias: bool | str = False
    qk_norm: bool = False
    kv_heads: int | None = None
    head_width: int | None = None
    window: int | None = None
    window_switch: str | None = None
    tied_head: bool = False


FAMILIES: dict[str, Family] = {
    "llama": Family("LlamaForCausalLM", qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias"),
    "mistral": Family("MistralForCausalLM", kv_heads=8, window=4096),
    "qwen2": Family("Qwen2ForCausalLM", qkv_bias=True, kv_heads=32, window=4096, window_switch="use_sliding_window"),
    "qwen3": Family(
        "Qwen3ForCausalLM", qkv_bias="attention_bias", out_bias="attention_bias", qk_norm=True,
        kv_heads=32, head_width=128, window=4096, window_switch="use_sliding_window",
    ),
}  # fmt: skip

# Fields that change the count and that none of these families has: a file with one of them is something else.
FOREIGN = (
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok",
    "n_shared_experts", "moe_intermediate_size", "kv_lora_rank", "q_lora_rank", "vision_config", "audio_config",
    "encoder_layers", "state_size",
    "mamba_d_state", "ssm_cfg", "layers_block_type", "linear_num_value_heads", "cla_factor", "num_nextn_predict_layers",
    "cross_attention_layers", "alibi",
)  # fmt: skip
