"""What a Llama-shaped GGUF file says of itself: sizes from its metadata, checked against its tensors."""

from dataclasses import dataclass
from math import inf

from costmodel.common.errors import ConfigError
from costmodel.common.gguf_file import GGUFFile


@dataclass(frozen=True)
class LlamaHeader:
    """Sizes and constants of a Llama-shaped model.

    Attributes
    ----------
    vocab, d_model, n_layers, max_len : V, D, L, and the longest context
    n_heads, n_kv_heads, head_dim, d_ff : N, K, H, F
    norm_eps, rope_theta : constants of norms and rotary positions
    tied : whether the head is the embedding table
    """

    vocab: int
    d_model: int
    n_layers: int
    max_len: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_ff: int
    norm_eps: float
    rope_theta: float
    tied: bool


def llama_header(file: GGUFFile) -> LlamaHeader:
    """The sizes that the metadata states, with every tensor they ask for there and no other.

    Raises
    ------
    ConfigError
        naming the file and the key or tensor at fault
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
    header = LlamaHeader(
        vocab=table.shape[0],
        d_model=width,
        n_layers=_count(file, "block_count"),
        max_len=_count(file, "context_length"),
        n_heads=heads,
        n_kv_heads=_count(file, "attention.head_count_kv", default=heads),
        head_dim=head_dim,
        d_ff=_count(file, "feed_forward_length"),
        norm_eps=_positive(file, "attention.layer_norm_rms_epsilon"),
        rope_theta=_positive(file, "rope.freq_base", default=10_000.0),
        tied="output.weight" not in file.tensors,
    )
    if header.n_heads % header.n_kv_heads:
        raise ConfigError(
            f"{file.path}: n_heads must be a multiple of n_kv_heads, got {header.n_heads} and {header.n_kv_heads}"
        )
    _check_tensors(file, header)
    return header


def _count(file: GGUFFile, key: str, default: int | None = None) -> int:
    value = file.metadata.get(f"llama.{key}", default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        fault = "is missing" if value is None else f"must be a positive integer, got {value!r}"
        raise ConfigError(f"{file.path}: llama.{key} {fault}")
    return value


def _positive(file: GGUFFile, key: str, default: float | None = None) -> float:
    value = file.metadata.get(f"llama.{key}", default)
    if not isinstance(value, float) or not 0 < value < inf:
        fault = "is missing" if value is None else f"must be a positive number, got {value!r}"
        raise ConfigError(f"{file.path}: llama.{key} {fault}")
    return value


def _tensor_shapes(header: LlamaHeader) -> dict[str, tuple[int, ...]]:
    """Every tensor of a Llama-shaped file, outputs × inputs."""
    D, F, V = header.d_model, header.d_ff, header.vocab
    queries, keys = header.n_heads * header.head_dim, header.n_kv_heads * header.head_dim
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
    found = {f"blk.{i}.{name}.weight": size for i in range(header.n_layers) for name, size in layer.items()}
    found |= {"token_embd.weight": (V, D), "output_norm.weight": (D,)}
    return found if header.tied else found | {"output.weight": (V, D)}


def _check_tensors(file: GGUFFile, header: LlamaHeader) -> None:
    if header.n_layers > len(file.tensors):
        raise ConfigError(f"{file.path}: llama.block_count {header.n_layers} is more than there are tensors")
    expected = _tensor_shapes(header)
    for name, size in expected.items():
        if name not in file.tensors:
            raise ConfigError(f"{file.path}: tensor {name!r} is missing")
        if file.tensors[name].shape != size:
            raise ConfigError(f"{file.path}: tensor {name!r} must have shape {size}, got {file.tensors[name].shape}")
    for name in file.tensors:
        if name not in expected:
            raise ConfigError(f"{file.path}: tensor {name!r} is not part of a Llama-shaped model without biases")
