"""State-space layers: Mamba and Mamba-2. Each inner channel keeps n numbers, whatever the context."""

from dataclasses import dataclass

from costmodel.exact import Number
from costmodel.layers.recurrent import Recurrent, state_row, stored_row
from costmodel.ops import Ledger, Row, contract
from costmodel.passes import ForwardPass


@dataclass(frozen=True)
class Mamba(Recurrent):
    """A selective state-space layer: params as its matrices say; state = I·(n + k) elements per sequence.

    Attributes
    ----------
    width, inner : D, I [element]
    state : n, numbers kept per inner channel [element]
    kernel : k, number of taps of the short convolution
    rank : width of the step-size projection [element]
    conv_bias, bias : whether the convolution has biases, and whether the projections in and out have
    inner_norms : whether step size, B and C are normalised, with gains

    Examples
    --------
    >>> layer = Mamba(width=4096, inner=8192, state=16, kernel=4, rank=256)
    >>> layer.cache_elements(10), layer.cache_elements(10**6)  # 8192·(16 + 4), whatever the context
    (163840, 163840)

    References
    ----------
    Gu and Dao, Mamba, 2312.00752, section 3.
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
                stored_row("convolution and scan", small),
                Row("read-out", contract("B T I Z, B T Z -> B T I", sizes=sizes, on_chip=[0, 1, -1])),
                state_row(forward, self.state_elements),
                Row("out", contract("B T I, I D -> B T D", sizes=sizes)),
            ]
        )


@dataclass(frozen=True)
class Mamba2(Recurrent):
    """A state-space layer with scalar decay per head; state = N·H·n + k·(N·H + 2·G·n) elements per sequence.

    Attributes
    ----------
    width, head_width : D, H [element]; the inner width is N·H
    heads : N, number of heads
    state : n, numbers kept per inner channel [element]
    groups : G, number of groups of heads that share B and C
    kernel : k, number of taps of the short convolution
    conv_bias, bias : whether the convolution has biases, and whether the projections in and out have

    Examples
    --------
    >>> layer = Mamba2(2560, heads=80, head_width=64, state=128, groups=1, kernel=4)
    >>> layer.state_elements == 80 * 64 * 128 + 4 * (80 * 64 + 2 * 128)
    True

    References
    ----------
    Dao and Gu, Transformers are SSMs, 2405.21060.
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
                stored_row("convolution, scan, norm", small),
                state_row(forward, self.state_elements),
                Row("out", contract("B T I, I D -> B T D", sizes=sizes)),
            ]
        )
