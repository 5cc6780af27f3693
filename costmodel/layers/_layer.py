"""What the layers share: parameters are the weights that the ledger's rows read."""

from math import prod
from typing import TYPE_CHECKING

from costmodel.exact import Number, smallest
from costmodel.ops import Ledger
from costmodel.passes import ForwardPass

ONE_TOKEN = ForwardPass(1, 1, 1)


class Layer:
    """A layer prices a forward pass; what it stores follows from what it reads, unless it says otherwise."""

    if TYPE_CHECKING:  # a kind has these as fields, constants or properties of its own

        @property
        def width(self) -> Number:
            """D, of the kinds that read or write the residual stream."""

        @property
        def residual(self) -> str:
            """What the addition of its output to the residual stream is called, where there is one."""

    else:
        residual = ""

    def ledger(self, forward: ForwardPass) -> Ledger:
        """The rows of one forward pass through this layer."""
        raise NotImplementedError

    @property
    def params(self) -> Number:
        """Stored parameters: each weight is read exactly once in a pass."""
        return self.ledger(ONE_TOKEN).elements("weight")

    @property
    def active_params(self) -> Number:
        """Parameters that one token uses; all of them unless the layer chooses among experts."""
        return self.params

    @property
    def matrix_params(self) -> Number:
        """Parameters in matrices, biases and gains left out: what textbook counts include."""
        return self.params

    @property
    def active_matrix_params(self) -> Number:
        """Of those in matrices, the ones that a token uses."""
        return self.matrix_params

    def matrices(self) -> list[tuple[int, int, int]]:
        """(inputs, outputs, how many) of every weight matrix, for sizes that are numbers."""
        found = []
        for row in self.ledger(ONE_TOKEN).rows:
            outputs = set(row.op.writes[0].axes.split()) if row.op.writes else set()
            for tensor in row.op.reads:
                if tensor.role == "weight" and len(tensor.dims) > 1:
                    inner = prod(n for a, n in zip(tensor.axes.split(), tensor.dims, strict=True) if a not in outputs)
                    found.append((inner, tensor.elements // inner, 1))
        return found

    @property
    def state_elements(self) -> Number:
        """Those of `cache_elements` that do not grow with the context and are no keys or values."""
        return 0

    def cache_elements(self, context: Number) -> Number:  # noqa: ARG002
        """Elements that one sequence of `context` tokens keeps between passes."""
        return 0


def kv_elements(context: Number, kv_heads: Number, head_width: Number, window: Number | None = None) -> Number:
    """Keys and values one layer keeps for one sequence: 2·K·H·min(S, W) elements."""
    kept = context if window is None else smallest(context, window)
    return 2 * kv_heads * head_width * kept
