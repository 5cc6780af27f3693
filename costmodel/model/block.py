"""What a model is stacked from: blocks of layers, encoders beside them, and the size of a stored element."""

from dataclasses import dataclass

from costmodel.common.formats import number_format
from costmodel.exact import Number, amount
from costmodel.layers._layer import Layer
from costmodel.ops import Ledger, Row, elementwise
from costmodel.passes import ForwardPass

WIDEST = 64  # bytes of the widest element that is believed


def element_bytes(width: str | Number) -> Number:
    """Bytes per element of a format's name; a number or symbol is taken as bytes already."""
    return number_format(width).bytes if isinstance(width, str) else amount(width, "bytes per element", 0, WIDEST)


@dataclass(frozen=True)
class Tower:
    """An encoder known by its size: stored, and run apart from the text model's passes."""

    name: str
    params: int


@dataclass(frozen=True)
class Block:
    """Layers that follow each other; the output of each mixing layer is added to the residual stream."""

    layers: tuple[Layer, ...]
    name: str = "block"

    @property
    def width(self) -> Number | None:
        """D, where the block's layers know it."""
        return next((layer.width for layer in self.layers if hasattr(layer, "width")), None)

    def ledger(self, forward: ForwardPass) -> Ledger:
        """The rows of every layer; residual additions ride along with the writes they follow."""
        rows: list[Row] = []
        for layer in self.layers:
            rows += layer.ledger(forward).rows
            if layer.residual:
                added = elementwise(
                    "B T D", int(forward.elementwise), sizes=forward.sizes | {"D": layer.width}, on_chip=True
                )
                rows.append(Row(layer.residual, added))
        return Ledger(rows)
