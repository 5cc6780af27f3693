"""A model known only by its size: one row that reads every parameter, and a key/value cache beside it."""

from dataclasses import dataclass

from costmodel.exact import Number
from costmodel.layers._layer import Layer, kv_elements
from costmodel.operation import Op, Tensor
from costmodel.ops import Ledger, Row
from costmodel.passes import ForwardPass
from costmodel.symbols import H, K, params


@dataclass(frozen=True)
class StatedWeights(Layer):
    """All weights as one matrix: 2·params FLOPs per token, params elements read per pass.

    Attributes
    ----------
    stated : params, the number of stored parameters

    Examples
    --------
    >>> from costmodel.passes import ForwardPass
    >>> pass_of_one = StatedWeights(7 * 10**9).ledger(ForwardPass(batch=1, tokens=1, context=1))
    >>> pass_of_one.flops, pass_of_one.bytes
    (14000000000, 14000000000)

    References
    ----------
    Kaplan et al., Scaling laws, 2001.08361, section 2.1.
    """

    stated: Number = params

    def ledger(self, forward: ForwardPass) -> Ledger:
        """One row; activations are left out, since no width is known."""
        op = Op(2 * self.stated * forward.batch * forward.tokens, (Tensor("params", self.stated, "weight"),))
        return Ledger([Row("weights", op)])


@dataclass(frozen=True)
class StatedCache(Layer):
    """K key/value heads of width H whose query heads are unknown: cache traffic is counted, attention FLOPs are not.

    Attributes
    ----------
    kv_heads : K, number of key/value heads
    head_width : H [element]

    Examples
    --------
    >>> StatedCache(kv_heads=8, head_width=128).cache_elements(1000)
    2048000
    """

    kv_heads: Number = K
    head_width: Number = H

    def cache_elements(self, context: Number) -> Number:
        """2·K·H·S."""
        return kv_elements(context, self.kv_heads, self.head_width)

    def ledger(self, forward: ForwardPass) -> Ledger:
        """S keys and values read, T written, per sequence."""
        read = Tensor("B S K H", forward.batch * self.cache_elements(forward.context), "cache")
        written = Tensor("B T K H", forward.batch * self.cache_elements(forward.tokens), "cache")
        return Ledger([Row("cache", Op(0, (read,), (written,)))])
