"""Layers with a constant state in place of a growing cache: Mamba, the gated delta net, linear attention.

Their state does not depend on the context: it is read and written once per pass, whatever came before.
"""

from dataclasses import dataclass

from costmodel.exact import Number
from costmodel.layers._layer import Layer
from costmodel.operation import Op, Tensor
from costmodel.ops import Ledger, Row, contract
from costmodel.passes import ForwardPass
from costmodel.symbols import D, H, N


def _stored(name: str, elements: Number) -> Row:
    """Small weights that take part in elementwise work: read, no contraction."""
    return Row(name, Op(0, (Tensor(name, elements, "weight"),)))


class Recurrent(Layer):
    """A layer whose memory is a state of fixed size."""

    def cache_elements(self, context: Number) -> Number:  # noqa: ARG002
        """The state, at any context."""
        return self.state_elements


def _state(forward: ForwardPass, elements: Number) -> Row:
    """The state of every sequence, read before and written after."""
    state = Tensor("state", forward.batch * elements, "state")
    return Row("state", Op(0, (state,), (state,)))


@dataclass(frozen=True)
class Mamba(Recurrent):
    """A selective state-space layer (Gu and Dao, 2312.00752): params as its matrices say; state = I·(n + k).

    Attributes
    ----------
    width, inner : D, I
    state : n, numbers kept per inner channel
    kernel : k, taps of the short convolution
    rank : width of the step-size projection
    conv_bias, bias : biases of the convolution, and of the projections in and out
    inner_norms : whether step size, B and C are normalised, with gains
    """

    residual = "mamba residual"

    width: Number
    inner: Number
    state: Number
    kernel: Number
    rank: Number
    conv_bias: bool = True
    bias: bool = False
    inner_norms: bool = False

    @property
    def matrix_params(self) -> Number:
        """The four projections."""
        return 3 * self.width * self.inner + self.inner * (2 * self.rank + 2 * self.state)

    @property
    def state_elements(self) -> Number:
        """I·(n + k)."""
        return self.inner * (self.state + self.kernel)

    def ledger(self, forward: ForwardPass) -> Ledger:
        """Projections and the read-out of the state are contractions; its update is elementwise."""
        sizes = forward.sizes | {"D": self.width, "I": self.inner, "J": 2 * self.inner, "R": self.rank}
        sizes |= {"X": self.rank + 2 * self.state, "Z": self.state}
        small = self.inner * (self.kernel + int(self.conv_bias) + self.state + 2)  # convolution, A, D, step bias
        small += int(self.bias) * (2 * self.inner + self.width) + int(self.inner_norms) * sizes["X"]
        return Ledger(
            [
                Row("in", contract("B T D, D J -> B T J", sizes=sizes)),
                Row("selection", contract("B T I, I X -> B T X", sizes=sizes)),
                Row("step size", contract("B T R, R I -> B T I", sizes=sizes, on_chip=[0])),
                _stored("convolution and scan", small),
                Row("read-out", contract("B T I Z, B T Z -> B T I", sizes=sizes, on_chip=[0, 1, -1])),
                _state(forward, self.state_elements),
                Row("out", contract("B T I, I D -> B T D", sizes=sizes)),
            ]
        )


@dataclass(frozen=True)
class Mamba2(Recurrent):
    """A state-space layer with scalar decay per head (Dao and Gu, 2405.21060); state = N·H·n + k·(N·H + 2·G·n).

    Attributes
    ----------
    width, heads, head_width : D, N, H; the inner width is N·H
    state, groups, kernel : n, groups that share B and C, taps of the short convolution k
    conv_bias, bias : biases of the convolution, and of the projections in and out
    """

    residual = "mamba residual"

    width: Number
    heads: Number
    head_width: Number
    state: Number
    groups: Number
    kernel: Number
    conv_bias: bool = True
    bias: bool = False

    @property
    def _mixed(self) -> Number:
        return self.heads * self.head_width + 2 * self.groups * self.state

    @property
    def matrix_params(self) -> Number:
        """The projections in and out."""
        inner = self.heads * self.head_width
        return self.width * (self._mixed + inner + self.heads) + inner * self.width

    @property
    def state_elements(self) -> Number:
        """N·H·n + k·(N·H + 2·G·n)."""
        return self.heads * self.head_width * self.state + self.kernel * self._mixed

    def ledger(self, forward: ForwardPass) -> Ledger:
        """One projection in makes gate, B, C, steps and values; the scan itself is elementwise."""
        inner = self.heads * self.head_width
        sizes = forward.sizes | {"D": self.width, "I": inner, "J": self._mixed + inner + self.heads}
        small = self._mixed * (self.kernel + int(self.conv_bias)) + 3 * self.heads + inner
        small += int(self.bias) * (sizes["J"] + self.width)
        return Ledger(
            [
                Row("in", contract("B T D, D J -> B T J", sizes=sizes)),
                _stored("convolution, scan, norm", small),
                _state(forward, self.state_elements),
                Row("out", contract("B T I, I D -> B T D", sizes=sizes)),
            ]
        )


@dataclass(frozen=True)
class GatedDelta(Recurrent):
    """A gated delta net (Yang et al., 2412.06464): a matrix of H x U per value head is its memory.

    state = n_v·H·U + k·(2·n_k·H + n_v·U).

    Attributes
    ----------
    width : D
    key_heads, value_heads : n_k, n_v
    key_width, value_width : H, U
    kernel : k, taps of the short convolution
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
                _stored("convolution, decay, norm", small),
                Row("memory", visit, 3),  # recall, correct, read
                _state(forward, self.state_elements),
                Row("out", contract("B T N U, N U D -> B T D", sizes=sizes)),
            ]
        )


@dataclass(frozen=True)
class LinearAttention(Recurrent):
    """Linear attention (Katharopoulos et al., 2006.16236): softmax left out, so keys and values fold into one matrix.

    params = 4·D·N·H; state = N·H·H, at any context.

    Attributes
    ----------
    width, heads, head_width : D, N, H
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
                _state(forward, self.state_elements),
                Row("output", contract("B T N H, N H D -> B T D", sizes=sizes)),
            ]
        )
