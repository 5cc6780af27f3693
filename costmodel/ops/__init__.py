"""Operations and the ledger: the cost of a tensor contraction follows from its axes.

FLOPs are 2 x (product of the distinct axes): one multiply and one add per combination. Bytes are the elements of each
operand that crosses the memory boundary, times the size of an element of its role. An operand kept on chip costs none.
"""

from costmodel.ops.contraction import contract, elementwise
from costmodel.ops.ledger import Ledger
from costmodel.ops.row import Row

__all__ = ["Ledger", "Row", "contract", "elementwise"]
