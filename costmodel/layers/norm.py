"""Normalisation: each vector scaled to unit size, with a learned gain (RMS norm; Zhang and Sennrich 1910.07467)."""

from dataclasses import dataclass

from costmodel.exact import Number
from costmodel.layers._layer import Layer
from costmodel.ops import Ledger, Row, elementwise
from costmodel.passes import ForwardPass
from costmodel.symbols import D


@dataclass(frozen=True)
class Norm(Layer):
    """One norm of width D: params = D, 2·D with a bias, 0 without a gain; it reads and writes B·T·D activations.

    Attributes
    ----------
    width : D [element]
    name : what its row of the ledger is called
    gain, bias : whether it has learned gains, and biases beside them (layer norm)

    Examples
    --------
    >>> from costmodel.passes import ForwardPass
    >>> Norm().params, Norm(bias=True).params, Norm().ledger(ForwardPass()).bytes
    (D, 2*D, 4*B*D*T + 2*D)

    References
    ----------
    Zhang and Sennrich, Root mean square layer normalization, 1910.07467; Ba et al., Layer normalization, 1607.06450.
    """

    width: Number = D
    name: str = "norm"
    gain: bool = True
    bias: bool = False

    @property
    def matrix_params(self) -> Number:
        """0: a gain is no matrix."""
        return 0

    def ledger(self, forward: ForwardPass) -> Ledger:
        """Square, sum, scale, gain: 4 FLOPs an element where elementwise work is counted."""
        sizes = forward.sizes | {"D": self.width}
        gain = "D" if self.gain else None
        rows = [Row(self.name, elementwise("B T D", 4 * forward.elementwise, sizes=sizes, gain=gain))]
        if self.bias:
            shift = elementwise("B T D", int(forward.elementwise), sizes=sizes, gain="D", on_chip=True)
            rows.append(Row(f"{self.name} bias", shift))
        return Ledger(rows)
