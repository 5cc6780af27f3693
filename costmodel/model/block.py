"""What a model is stacked from: blocks of layers, encoders beside them, and the size of a stored element."""

from dataclasses import dataclass

from costmodel.common.formats import number_format
from costmodel.exact import Number, amount
from costmodel.layers._layer import Layer
from costmodel.ops import Ledger, Row, elementwise
from costmodel.passes import ForwardPass

WIDEST = 64  # bytes of the widest element that is believed


def element_bytes(width: str | Number) -> Number:
    """Bytes per element of a format's name; a number or symbol is taken as bytes already.

    Parameters
    ----------
    width : name of a format, or the size of an element [byte], at most 64

    Returns
    -------
    size of an element [byte], scales that belong to the format included

    Raises
    ------
    UnknownNameError
        for a format that is not on record
    CostModelError
        for a size below 0 or above 64

    Examples
    --------
    >>> element_bytes("mxfp4"), element_bytes(2)  # 4 bits, and 8 for each 32 elements
    (Fraction(17, 32), 2)
    """
    return number_format(width).bytes if isinstance(width, str) else amount(width, "bytes per element", 0, WIDEST)


@dataclass(frozen=True)
class Tower:
    """An encoder known by its size: stored, and run apart from the text model's passes.

    Attributes
    ----------
    name : what it is called
    params : number of its parameters

    Examples
    --------
    >>> from dataclasses import replace
    >>> from costmodel import load
    >>> replace(load("llama-3-8b"), towers=(Tower("vision", 10**9),)).params
    9030261248
    """

    name: str
    params: int


@dataclass(frozen=True)
class Block:
    """Layers that follow each other; the output of each mixing layer is added to the residual stream.

    Attributes
    ----------
    layers : in the order in which they run
    name : what tells its rows from those of other blocks

    Examples
    --------
    >>> from costmodel.layers import Mlp, Norm
    >>> block = Block((Norm(8), Mlp(8, 32)))
    >>> [row.name for row in block.ledger(ForwardPass()).rows]
    ['norm', 'up', 'gate', 'activation', 'down', 'mlp residual']
    """

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
