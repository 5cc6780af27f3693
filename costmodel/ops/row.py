"""One line of a ledger: an operation, its name, and how often it happens."""

from dataclasses import dataclass

from costmodel.exact import Number
from costmodel.operation import Op


@dataclass(frozen=True)
class Row:
    """A named line of a ledger: an op that happens `count` times.

    Attributes
    ----------
    name : what it is called
    op : one occurrence
    count : number of occurrences

    Examples
    --------
    >>> from costmodel.ops import contract
    >>> Row("up", contract("B D, D F -> B F"), count=32).flops
    64*B*D*F
    """

    name: str
    op: Op
    count: Number = 1

    @property
    def flops(self) -> Number:
        """Count x the op's FLOPs [FLOP]."""
        return self.count * self.op.flops

    @property
    def bytes(self) -> Number:
        """Count x the op's bytes [byte]."""
        return self.count * self.op.bytes

    @property
    def sent(self) -> Number:
        """Count x the bytes the op sends to other devices [byte]."""
        return self.count * self.op.sent

    @property
    def messages(self) -> Number:
        """Count x the sends of the op that follow each other."""
        return self.count * self.op.messages
