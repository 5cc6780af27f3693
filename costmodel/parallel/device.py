"""A whole model on many devices: the pass that a batch makes through them, and what the fullest of them holds."""

from dataclasses import dataclass, replace
from typing import Any

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain
from costmodel.layers import Unembedding
from costmodel.layers._layer import Layer
from costmodel.model import Block, Model
from costmodel.ops import Ledger
from costmodel.parallel.collectives import collective, send
from costmodel.parallel.options import Parallel
from costmodel.parallel.shard import Talking, shard
from costmodel.passes import ForwardPass


@dataclass(frozen=True)
class Handover(Layer):
    """Activations passed from each pipeline stage to the next: B·T·D elements, stages − 1 times."""

    width: Number
    stages: Number

    def ledger(self, forward: ForwardPass) -> Ledger:
        """One row."""
        row = collective("stage send", "B T D", forward.batch * forward.tokens * self.width, send())
        return Ledger([row]).times(self.stages - 1)


def device_pass(model: Model, spread: Parallel) -> Model:
    """The model as one device of each stage sees it, through all stages: its ledger is the pass of one batch.

    Σ over tensor-parallel devices of what is divided = the whole; what every device keeps is counted once per device.

    Parameters
    ----------
    model : whole
    spread : how it is spread; replicas do not matter here

    Examples
    --------
    >>> from costmodel.model import transformer
    >>> llama = transformer(V=128256, D=4096, F=14336, N=32, K=8, H=128, L=32)
    >>> part = device_pass(llama, Parallel(tensor=8))
    >>> part.cache_elements(1) * 8 == llama.cache_elements(1)
    True
    >>> part.decode(1, 1024)["mlp all-reduce"].sent  # 2·(8 − 1)/8 of 2·4096 bytes, in each of 32 layers
    458752
    """
    if not spread.shards:
        return model
    ends: dict[str, Any] = {
        end: tuple(shard(layer, spread) for layer in getattr(model, end)) for end in ("before", "after")
    }
    blocks = tuple(
        (Block(tuple(shard(layer, spread) for layer in block.layers), block.name), count)
        for block, count in model.blocks
    )
    if spread.pipeline != 1:
        width = next(block.width for block, _ in model.blocks)
        if width is None:
            raise CostModelError(f"{model.name} does not state its width, which pipeline stages pass on")
        ends["after"] = (Handover(width, spread.pipeline), *ends["after"])
    return replace(model, blocks=blocks, towers=(), **ends)


def device_share(model: Model, spread: Parallel) -> Model:
    """What the fullest device stores: its part of every layer of a stage, and of the larger end of the model.

    Each kind of block is dealt out evenly; a tied head is stored again where it stands in the last stage. With
    symbols the last stage is taken for the fullest.

    Raises
    ------
    CostModelError
        when a kind of block does not split evenly over the stages (unless padded)
    """
    if not spread.shards:
        return model
    part, stages = device_pass(model, spread), spread.pipeline
    if stages == 1:
        return replace(part, towers=model.towers)
    dealt = tuple((block, spread.split(count, stages, f"{block.name} layers")) for block, count in part.blocks)
    after = tuple(_stored(layer) for layer in part.after)
    first, last = (sum(layer.params for layer in end) for end in (part.before, after))
    if is_plain(first, last) and first > last:
        return replace(part, blocks=dealt, after=(), towers=model.towers)
    return replace(part, blocks=dealt, before=(), after=after, towers=model.towers, tied_head=False)


def _stored(layer: Layer) -> Layer:
    """A head that cannot reuse the embedding, which is on another device."""
    if isinstance(layer, Talking):
        return replace(layer, part=_stored(layer.part))
    return replace(layer, tied=False) if isinstance(layer, Unembedding) else layer
