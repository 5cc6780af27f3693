"""The two ends of the model: a table whose rows are looked up, and a head that scores the whole vocabulary."""

from dataclasses import dataclass

from costmodel.exact import Number
from costmodel.layers._layer import Layer
from costmodel.operation import Op, Tensor
from costmodel.ops import Ledger, Row, contract, elementwise
from costmodel.passes import ForwardPass
from costmodel.symbols import D, V


@dataclass(frozen=True)
class Embedding(Layer):
    """A V x D table that is gathered, not streamed: V·D parameters are stored, B·T·D are read.

    Attributes
    ----------
    vocab : V, number of rows: the vocabulary, or the most positions for a table of learned positions
    width : D [element]
    name : what its row of the ledger is called

    Examples
    --------
    >>> from costmodel.passes import ForwardPass
    >>> table = Embedding(32_000, 4096)
    >>> table.params, table.ledger(ForwardPass(batch=1, tokens=1, context=10)).elements("weight")
    (131072000, 4096)
    """

    vocab: Number = V
    width: Number = D
    name: str = "embedding"

    @property
    def params(self) -> Number:
        """V·D."""
        return self.vocab * self.width

    def ledger(self, forward: ForwardPass) -> Ledger:
        """One row of the table per token, no FLOPs."""
        elements = forward.batch * forward.tokens * self.width
        rows = Tensor("B T D", elements, "weight")
        return Ledger([Row(self.name, Op(0, (rows,), (Tensor("B T D", elements, "activation"),)))])


@dataclass(frozen=True)
class Unembedding(Layer):
    """The head: D x V, read whole in every pass; it stores no matrix of its own when tied to the embedding.

    Attributes
    ----------
    vocab : V, number of tokens that it scores
    width : D [element]
    tied : whether the matrix is the embedding's
    bias : whether each token has a bias

    Examples
    --------
    >>> from costmodel.passes import ForwardPass
    >>> head = Unembedding(tied=True)
    >>> head.params, head.ledger(ForwardPass()).flops, head.ledger(ForwardPass(head="all")).flops
    (0, 2*B*D*V, 2*B*D*T*V)

    References
    ----------
    Press and Wolf, Using the output embedding to improve language models, 1608.05859 (tied weights).
    """

    vocab: Number = V
    width: Number = D
    tied: bool = False
    bias: bool = False

    @property
    def params(self) -> Number:
        """D·V, or 0 when tied, and V biases where there are any."""
        return (0 if self.tied else self.vocab * self.width) + int(self.bias) * self.vocab

    @property
    def matrix_params(self) -> Number:
        """D·V, or 0 when tied."""
        return 0 if self.tied else self.vocab * self.width

    def ledger(self, forward: ForwardPass) -> Ledger:
        """2·B·D·V FLOPs for the last position of each sequence, T times that for all."""
        sizes = forward.sizes | {"D": self.width, "V": self.vocab}
        if forward.head == "last":
            sizes["T"] = 1
        rows = [Row("unembedding", contract("B T D, D V -> B T V", sizes=sizes))]
        if self.bias:
            added = elementwise("B T V", int(forward.elementwise), sizes=sizes, gain="V", on_chip=True)
            rows.append(Row("unembedding bias", added))
        return Ledger(rows)
