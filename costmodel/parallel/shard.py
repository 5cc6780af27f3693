"""The part of each layer that one device holds, and what it must send the others.

Column then row: the first matrix of a pair is split by outputs and the second by inputs, so a layer needs one
all-reduce at its end (Megatron-LM, 1909.08053, section 3).
"""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain, largest, quotient
from costmodel.layers import Attention, Embedding, LatentAttention, Mlp, Moe, Norm, StatedWeights, Unembedding
from costmodel.layers._layer import Layer
from costmodel.layers.recurrent import GatedDelta, LinearAttention
from costmodel.layers.state_space import Mamba, Mamba2
from costmodel.layers.stated import StatedCache
from costmodel.ops import Ledger
from costmodel.parallel.collectives import all_gather, all_reduce, all_to_all, collective
from costmodel.parallel.options import Parallel
from costmodel.passes import ForwardPass

Join: TypeAlias = tuple[str, str, Number, tuple[Number, Number]]


@dataclass(frozen=True)
class Talking(Layer):
    """A layer's part, followed by the collectives that join it with the others'.

    Attributes
    ----------
    part : what this device holds
    joins : (name, axes, payload per token of the batch, shape of the collective) each
    """

    part: Layer
    joins: tuple[Join, ...]

    @property
    def residual(self) -> str:
        """That of the part."""
        return self.part.residual

    @property
    def width(self) -> Number:
        """D."""
        return self.part.width

    @property
    def params(self) -> Number:
        """Those of the part."""
        return self.part.params

    @property
    def active_params(self) -> Number:
        """Those of the part."""
        return self.part.active_params

    @property
    def matrix_params(self) -> Number:
        """Those of the part."""
        return self.part.matrix_params

    @property
    def active_matrix_params(self) -> Number:
        """Those of the part."""
        return self.part.active_matrix_params

    @property
    def state_elements(self) -> Number:
        """Those of the part."""
        return self.part.state_elements

    def cache_elements(self, context: Number) -> Number:
        """Those of the part."""
        return self.part.cache_elements(context)

    def ledger(self, forward: ForwardPass) -> Ledger:
        """The part's rows, then the collectives'."""
        last = isinstance(self.part, Unembedding) and forward.head == "last"
        positions = forward.batch * (1 if last else forward.tokens)
        joins = [collective(name, axes, positions * payload, shape) for name, axes, payload, shape in self.joins]
        return self.part.ledger(forward) + Ledger(joins)


def kv_heads_per_device(kv_heads: Number, tensor: Number) -> Number:
    """max(1, K/t): where there are fewer heads than devices, each head is kept by several.

    Raises
    ------
    CostModelError
        when neither number divides the other

    Examples
    --------
    >>> kv_heads_per_device(8, 4), kv_heads_per_device(8, 16)
    (2, 1)
    """
    if not is_plain(kv_heads, tensor):
        return kv_heads if tensor == 1 else largest(1, kv_heads / tensor)
    if kv_heads % tensor == 0:
        return quotient(kv_heads, tensor)
    if tensor % kv_heads == 0:
        return 1
    raise CostModelError(
        f"key/value heads ({kv_heads}) and tensor ({tensor}): one must be a multiple of the other; "
        "pad=True rounds up other sizes, not these"
    )


def _divided(layer: Any, spread: Parallel, sizes: dict[str, str]) -> Any:
    split = {field: spread.split(getattr(layer, field), spread.tensor, what) for field, what in sizes.items()}
    return replace(layer, **split)


HEADS = {"heads": "query heads"}
SPLIT = {  # which sizes of a kind are divided by the tensor-parallel devices; the others are kept whole by each
    LatentAttention: HEADS,
    LinearAttention: HEADS,
    Mamba: {"inner": "inner width"},
    Mamba2: HEADS,
    GatedDelta: {"value_heads": "value heads"},
    Mlp: {"hidden": "feed-forward width"},
    Embedding: {"vocab": "vocabulary"},
    Unembedding: {"vocab": "vocabulary"},
    StatedWeights: {},
    Norm: {},
}


def part_of(layer: Layer, spread: Parallel) -> Any:
    """What one of the tensor-parallel devices holds of a layer.

    Query heads, hidden widths and the vocabulary are divided; norms, latents and routers are kept whole by every
    device, as are key/value heads where there are fewer of them than devices.

    Examples
    --------
    >>> part = part_of(Attention(4096, 32, 8, 128), Parallel(tensor=16))
    >>> part.heads, part.kv_heads
    (2, 1)
    """
    t = spread.tensor
    if t == 1 and not isinstance(layer, Moe):
        return layer
    if isinstance(layer, Attention):
        heads, kv_heads = spread.split(layer.heads, t, "query heads"), kv_heads_per_device(layer.kv_heads, t)
        return replace(layer, heads=heads, kv_heads=kv_heads)
    if isinstance(layer, StatedCache):
        return replace(layer, kv_heads=kv_heads_per_device(layer.kv_heads, t))
    if isinstance(layer, StatedWeights):
        return replace(layer, stated=quotient(layer.stated, t))
    if isinstance(layer, Moe):
        return _experts(layer, spread)
    if isinstance(layer, Embedding) and layer.name != "embedding":
        return layer  # a table of positions is small: every device keeps it
    if type(layer) not in SPLIT:
        raise CostModelError(f"no rule says how to split {type(layer).__name__}; use data or pipeline parallelism")
    part = _divided(layer, spread, SPLIT[type(layer)])
    if isinstance(layer, Mamba2):
        part = replace(part, groups=kv_heads_per_device(layer.groups, t))
    if isinstance(layer, GatedDelta):
        part = replace(part, key_heads=kv_heads_per_device(layer.key_heads, t))
    return part


def _experts(layer: Moe, spread: Parallel) -> Moe:
    """E/e whole-numbered experts, each split over the devices that are left; router and its choice stay whole."""
    e = spread.expert
    if spread.data != 1 and e not in (1, spread.stage_devices):
        raise CostModelError(
            f"with data-parallel attention expert must be 1 or tensor·data = {spread.stage_devices} devices, got {e}"
        )
    slices = replace(spread, tensor=quotient(spread.stage_devices, e), data=1, expert=1)
    shared = layer.shared if layer.shared is None else part_of(layer.shared, replace(spread, data=1, expert=1))
    return replace(
        layer,
        expert=part_of(layer.expert, slices),
        experts=spread.split(layer.experts, e, "routed experts"),
        active=quotient(layer.active, e),
        shared=shared,
        scored=layer.experts,
        gathered=spread.data,
    )


def shard(layer: Layer, spread: Parallel) -> Layer:
    """A device's part of a layer with the collectives that follow it; the layer itself where nothing is split."""
    part, width = part_of(layer, spread), getattr(layer, "width", None)
    if isinstance(layer, Moe):
        joins = _expert_joins(layer, spread)
    elif part == layer:
        return part
    else:
        joins = _joins(layer, spread, width)
    return Talking(part, joins) if joins else part


def _joins(layer: Layer, spread: Parallel, width: Number) -> tuple[Join, ...]:
    t = spread.tensor
    reduce = all_reduce(spread.all_reduce)
    if isinstance(layer, StatedCache | StatedWeights):
        return ()
    if isinstance(layer, Unembedding):
        return (("logits all-gather", "B T V", layer.vocab, all_gather(t)),)
    name = layer.name if isinstance(layer, Embedding) else layer.residual.removesuffix(" residual")
    joins: tuple[tuple[str, Number, str], ...] = (("B T D", width, name),)
    if isinstance(layer, Mamba):  # step sizes, B and C come from all inner channels
        joins = (("B T X", layer.rank + 2 * layer.state, f"{name} selection"), *joins)
    return tuple((f"{label} all-reduce", axes, payload, reduce(t)) for axes, payload, label in joins)


def _expert_joins(layer: Moe, spread: Parallel) -> tuple[Join, ...]:
    """Where every device knows all tokens, a sum is enough; groups with tokens of their own exchange them."""
    t, ranks, width = spread.tensor, spread.stage_devices, layer.width
    if spread.data == 1:
        return () if t == 1 else (("mlp all-reduce", "B T D", width, all_reduce(spread.all_reduce)(t)),)
    if spread.expert == 1:  # every device has a slice of every expert: all tokens go everywhere, and sums come back
        both, axes, payload, shape = "all-gather reduce-scatter", "B T D", width * spread.data, all_gather(ranks)
    else:
        both, axes, payload, shape = "dispatch combine", "B T A D", quotient(layer.active * width, t), all_to_all(ranks)
    joins = tuple((f"expert {name}", axes, payload, shape) for name in both.split())
    return joins if t == 1 else (*joins, ("mlp all-gather", "B T D", width, all_gather(t)))
