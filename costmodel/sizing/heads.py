"""Attention heads of a model, and the same model with other key/value heads: what turning `kv_heads` does."""

from dataclasses import replace

from costmodel.common.errors import CostModelError
from costmodel.exact import Number
from costmodel.model import Block, Model


def kv_heads(model: Model) -> Number:
    """The key/value heads that every attention layer of a model has.

    Raises
    ------
    CostModelError
        where there are none, or they differ between layers
    """
    found = {layer.kv_heads for block, _ in model.blocks for layer in block.layers if hasattr(layer, "kv_heads")}
    if len(found) != 1:
        has = f"layers with {sorted(found)} of them" if found else "none"
        raise CostModelError(f"kv_heads can be turned where all attention layers have the same; {model.name} has {has}")
    return found.pop()


def query_heads(model: Model) -> Number | None:
    """N, where the layers state it."""
    return next(
        (x.heads for block, _ in model.blocks for x in block.layers if hasattr(x, "kv_heads") and hasattr(x, "heads")),
        None,
    )


def with_kv_heads(model: Model, heads: Number) -> Model:
    """The same model with other key/value heads."""
    kv_heads(model)
    turned = lambda layer: replace(layer, kv_heads=heads) if hasattr(layer, "kv_heads") else layer  # noqa: E731
    blocks = tuple((Block(tuple(map(turned, block.layers)), block.name), count) for block, count in model.blocks)
    return replace(model, blocks=blocks)
