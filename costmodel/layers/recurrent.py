"""Layers with a constant state in place of a growing cache: here, those whose state is a matrix of keys and values.

Their state does not depend on the context: it is read and written once per pass, whatever came before.
"""

from dataclasses import dataclass

from costmodel.exact import Number
from costmodel.layers._layer import Layer
from costmodel.operation import Op, Tensor
from costmodel.ops import Ledger, Row, contract
from costmodel.passes import ForwardPass
from costmodel.symbols import D, H, N


def stored_row(name: str, elements: Number) -> Row:
    """Small weights that take part in elementwise work: read, no contraction."""
    return Row(name, Op(0, (Tensor(name, elements, "weight"),)))


class Recurrent(Layer):
    """A layer whose memory is a state of fixed size."""

    def cache_elements(self, context: Number) -> Number:  # noqa: ARG002
        """The state, at any context."""
        return self.state_elements


def state_row(forward: ForwardPass, elements: Number) -> Row:
    """The state of every sequence, read before and written after."""
    state = Tensor("state", forward.batch * elements, "state")
    return Row("state", Op(0, (state,), (state,)))


@dataclass(frozen=True)
class GatedDelta(Recurrent):
    """A gated delta net: a matrix of H x U per value head is its memory.

    state = n_v·H·U + k·(2·n_k·H + n_v·U) elements per sequence.

    Attributes
    ----------
    width : D [element]
    key_heads, value_heads : n_k, n_v
    key_width, value_width : H, U [element]
    kernel : k, taps of the short convolution

    Examples
    --------
    >>> layer = GatedDelta(2048, key_heads=16, value_heads=32, key_width=128, value_width=128)
    >>> layer.state_elements == 32 * 128 * 128 + 4 * (2 * 16 * 128 + 32 * 128)
    True

    References
    ----------
    Yang et al., Gated delta networks, 2412.06464.
    """

    residual = "delta residual"

    width: Number = D
    key_heads: int = 1
    value_heads: int = 1
    key_width: int = 1
    value_width: int = 1
    kernel: int = 4

    @property
    def _mixed(self) -> int:
        return 2 * self.key_heads * self.key_width + self.value_heads * self.value_width

    @property
    def matrix_params(self) -> Number:
        """Without convolution, decay, step bias and norm."""
        out = self.value_heads * self.value_width
        return self.width * (self._mixed + 2 * out + 2 * self.value_heads)

    @property
    def state_elements(self) -> Number:
        """n_v·H·U + k·(2·n_k·H + n_v·U)."""
        return self.value_heads * self.key_width * self.value_width + self.kernel * self._mixed

    def ledger(self, forward: ForwardPass) -> Ledger:
        """Queries, keys, values, gate and decays are projected; each token updates and reads the memory."""
        sizes = forward.sizes | {"D": self.width, "M": self._mixed, "A": 2 * self.value_heads}
        sizes |= {"N": self.value_heads, "H": self.key_width, "U": self.value_width}
        small = self._mixed * self.kernel + 2 * self.value_heads + self.value_width
        visit = contract("B T N H, N H U -> B T N U", sizes=sizes, roles=("activation",) * 3, on_chip=[0, 1, -1])
        return Ledger(
            [
                Row("query, key, value", contract("B T D, D M -> B T M", sizes=sizes)),
                Row("gate", contract("B T D, D N U -> B T N U", sizes=sizes, on_chip=[0])),
                Row("decay and step", contract("B T D, D A -> B T A", sizes=sizes, on_chip=[0])),
                stored_row("convolution, decay, norm", small),
                Row("memory", visit, 3),  # recall, correct, read
                state_row(forward, self.state_elements),
                Row("out", contract("B T N U, N U D -> B T D", sizes=sizes)),
            ]
        )


@dataclass(frozen=True)
class LinearAttention(Recurrent):
    """Linear attention: softmax left out, so keys and values fold into one matrix per head.

    params = 4·D·N·H; state = N·H·H elements per sequence, at any context.

    Attributes
    ----------
    width, head_width : D, H [element]
    heads : N, number of heads

    Examples
    --------
    >>> LinearAttention().params, LinearAttention().cache_elements(1000)
    (4*D*H*N, H**2*N)

    References
    ----------
    Katharopoulos et al., Transformers are RNNs, 2006.16236, section 3.
    """

    residual = "attention residual"

    width: Number = D
    heads: Number = N
    head_width: Number = H

    @property
    def state_elements(self) -> Number:
        """N·H·H."""
        return self.heads * self.head_width**2

    def ledger(self, forward: ForwardPass) -> Ledger:
        """Each token adds one outer product to the state and reads it once."""
        sizes = forward.sizes | {"D": self.width, "N": self.heads, "H": self.head_width, "U": self.head_width}
        shared = [("query", ()), ("key", [0]), ("value", [0])]
        visit = contract("B T N H, N H U -> B T N U", sizes=sizes, roles=("activation",) * 3, on_chip=[0, 1, -1])
        return Ledger(
            [
                *(Row(n, contract("B T D, D N H -> B T N H", sizes=sizes, on_chip=kept)) for n, kept in shared),
                Row("memory", visit, 2),  # add, read
                state_row(forward, self.state_elements),
                Row("output", contract("B T N H, N H D -> B T D", sizes=sizes)),
            ]
        )
