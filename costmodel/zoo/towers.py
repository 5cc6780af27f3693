"""Vision encoders of multimodal models, counted by formula: stored beside the text model, outside its passes."""

from collections.abc import Callable

from costmodel.model import Tower
from costmodel.zoo.fields import Fields


def _linear(inputs: int, outputs: int, bias: bool = True) -> int:
    return inputs * outputs + bias * outputs


def siglip(vision: Fields, D: int) -> int:
    """SigLIP and Gemma 3's projector: patches, positions, layers, last norm; one matrix and one norm into width D."""
    E, F, L = (vision.count(n) for n in ("hidden_size", "intermediate_size", "num_hidden_layers"))
    image, patch = vision.count("image_size", default=224), vision.count("patch_size", default=16)
    if vision.flag("vision_use_head", True):
        raise vision.refuse("vision_use_head must be false: a pooling head is not understood")
    layer = 4 * E + 4 * _linear(E, E) + _linear(E, F) + _linear(F, E)
    embedding = _linear(vision.count("num_channels", default=3) * patch * patch, E) + (image // patch) ** 2 * E
    return embedding + L * layer + 2 * E + E * D + E


def qwen2_vl(vision: Fields, D: int) -> int:
    """Qwen2-VL: layer norms, a plain MLP; the merger joins patches two by two."""
    E, L = vision.count("embed_dim"), vision.count("depth")
    F = E * vision.count("mlp_ratio", default=4)
    out = vision.count("hidden_size", default=D)
    layer = 4 * E + _linear(E, 3 * E) + _linear(E, E) + _linear(E, F) + _linear(F, E)
    return _patches(vision, E, bias=False) + L * layer + 2 * E + _merger(vision, E, out)


def qwen2_5_vl(vision: Fields, D: int) -> int:
    """Qwen2.5-VL: RMS norms, a gated MLP with biases; the same merger."""
    E, F, L = (vision.count(n) for n in ("hidden_size", "intermediate_size", "depth"))
    out = vision.count("out_hidden_size", default=D)
    layer = 2 * E + _linear(E, 3 * E) + _linear(E, E) + 2 * _linear(E, F) + _linear(F, E)
    return _patches(vision, E, bias=False) + L * layer + E + _merger(vision, E, out)


def qwen3_vl(vision: Fields, D: int) -> int:  # noqa: ARG001
    """Qwen3-VL and 3.5: learned positions, layer norms, a plain MLP; the merger again, no deep stacks."""
    E, F, L = (vision.count(n) for n in ("hidden_size", "intermediate_size", "depth"))
    if vision.numbers("deepstack_visual_indexes"):
        raise vision.refuse("deepstack_visual_indexes must be empty: further mergers are not understood")
    out = vision.count("out_hidden_size")
    layer = 4 * E + _linear(E, 3 * E) + _linear(E, E) + _linear(E, F) + _linear(F, E)
    positions = vision.count("num_position_embeddings") * E
    return _patches(vision, E, bias=True) + positions + L * layer + 2 * E + _merger(vision, E, out)


def _patches(vision: Fields, E: int, *, bias: bool) -> int:
    channels = vision.count("in_channels", default=3)
    if vision.count("in_chans", default=channels) != channels:
        raise vision.refuse(f"in_chans differs from in_channels ({channels}), which alone is read")
    patch, frames = vision.count("patch_size"), vision.count("temporal_patch_size", default=2)
    return _linear(channels * frames * patch * patch, E, bias)


def _merger(vision: Fields, E: int, out: int) -> int:
    joined = E * vision.count("spatial_merge_size", default=2) ** 2
    return _linear(joined, joined) + _linear(joined, out)


TOWERS: dict[str, Callable[[Fields, int], int]] = {
    "siglip": siglip, "qwen2_vl": qwen2_vl, "qwen2_5_vl": qwen2_5_vl, "qwen3_vl": qwen3_vl,
}  # fmt: skip


def tower(fields: Fields, kind: str, D: int) -> Tower:
    """The vision encoder of a configuration whose text width is D.

    Raises
    ------
    ConfigError
        when vision_config is missing or has something the formula does not count
    """
    vision = fields.section("vision_config")
    if vision is None:
        raise fields.refuse("missing vision_config")
    return Tower(kind, TOWERS[kind](vision, D))
