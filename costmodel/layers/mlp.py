"""The feed-forward layer: gated (up, gate, down; Shazeer 2002.05202) or plain (up, down)."""

from dataclasses import dataclass, replace

from costmodel.exact import Number
from costmodel.layers._layer import Layer
from costmodel.ops import Ledger, Row, contract, elementwise
from costmodel.passes import ForwardPass
from costmodel.symbols import D, F


@dataclass(frozen=True)
class Mlp(Layer):
    """One feed-forward layer: params = 3·D·F gated, 2·D·F plain, plus biases where there are any.

    Attributes
    ----------
    width, hidden : D, F [element]
    gated : whether a gate multiplies the up projection
    bias : whether every matrix has a bias

    Examples
    --------
    >>> Mlp().params, Mlp(4096, 14336).params
    (3*D*F, 176160768)
    >>> Mlp(4, 8, gated=False, bias=True).params  # 2·4·8, and 8 + 4 biases
    76

    References
    ----------
    Vaswani et al., 1706.03762, section 3.3 (plain); Shazeer, GLU variants improve transformer, 2002.05202, section 2.
    """

    residual = "mlp residual"

    width: Number = D
    hidden: Number = F
    gated: bool = True
    bias: bool = False

    @property
    def matrix_params(self) -> Number:
        """3·D·F, or 2·D·F without the gate."""
        return replace(self, bias=False).params

    def ledger(self, forward: ForwardPass) -> Ledger:
        """Gate shares up's read of X, and down takes the activated product on chip."""
        sizes = forward.sizes | {"D": self.width, "F": self.hidden}
        counted = forward.elementwise
        rows = [Row("up", contract("B T D, D F -> B T F", sizes=sizes))]
        if self.gated:
            rows.append(Row("gate", contract("B T D, D F -> B T F", sizes=sizes, on_chip=[0])))
        per_element = 5 if self.gated else 1  # SiLU and the product; ReLU
        rows += [
            Row("activation", elementwise("B T F", per_element * counted, sizes=sizes, on_chip=True)),
            Row("down", contract("B T F, F D -> B T D", sizes=sizes, on_chip=[0])),
        ]
        if self.bias:
            biased = (("up", "F"), ("gate", "F"), ("down", "D")) if self.gated else (("up", "F"), ("down", "D"))
            rows += [
                Row(f"{name} bias", elementwise(f"B T {axis}", int(counted), sizes=sizes, gain=axis, on_chip=True))
                for name, axis in biased
            ]
        return Ledger(rows)


def mlp(*, gated: bool = True) -> Ledger:
    """One feed-forward layer as a ledger in B, T, D and F.

    FLOPs = 6·B·T·D·F; bytes = 4·B·T·D + 4·B·T·F + 6·D·F at 16 bit; intensity tends to B·T as D and F grow.
    Without the gate: 4·B·T·D·F and 4·B·T·D + 2·B·T·F + 4·D·F.

    Parameters
    ----------
    gated : whether a gate multiplies the up projection

    Returns
    -------
    Ledger with flops [FLOP], bytes [byte] and intensity [FLOP/byte]

    Examples
    --------
    >>> mlp().flops, mlp().bytes
    (6*B*D*F*T, 4*B*D*T + 4*B*F*T + 6*D*F)
    >>> mlp(gated=False).flops
    4*B*D*F*T

    References
    ----------
    Shazeer, GLU variants improve transformer, 2002.05202, section 2.
    """
    return Mlp(gated=gated).ledger(ForwardPass())
