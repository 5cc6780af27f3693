"""Collectives: what n devices must send each other so that all know a result, as rows of a ledger.

Bytes are those that one device sends, one direction. (Thakur, Rabenseifner, Gropp, Optimization of collective
communication operations in MPICH, IJHPCA 19(1), 2005, sections 4.1 to 4.4.)
"""

from collections.abc import Callable
from math import ceil, log2

from sympy import ceiling, log

from costmodel.common.errors import CostModelError, resolve_name
from costmodel.exact import Number, is_plain, quotient, tidy
from costmodel.operation import Op, Tensor
from costmodel.ops import Row

Shape = tuple[Number, Number]  # elements sent per element of payload, sends that follow each other


def ring_all_reduce(n: Number) -> Shape:
    """2·(n − 1)/n of the payload in 2·(n − 1) sends: every part travels the ring twice, summed and then shared.

    Examples
    --------
    >>> ring_all_reduce(4)
    (Fraction(3, 2), 6)
    """
    return quotient(2 * (n - 1), n), 2 * (n - 1)


def tree_all_reduce(n: Number) -> Shape:
    """2 times the payload in 2·⌈log₂ n⌉ sends: up a tree of sums and down again; fewer sends, more bytes.

    Examples
    --------
    >>> tree_all_reduce(8), tree_all_reduce(1)
    ((2, 6), (0, 0))
    """
    if is_plain(n):
        return (2, 2 * ceil(log2(n))) if n > 1 else (0, 0)
    return 2, 2 * ceiling(log(n, 2))


def all_gather(n: Number) -> Shape:
    """(n − 1)/n of the gathered result in n − 1 sends round the ring.

    Examples
    --------
    >>> all_gather(4)
    (Fraction(3, 4), 3)
    """
    return quotient(n - 1, n), n - 1


def all_to_all(n: Number) -> Shape:
    """(n − 1)/n of what a device holds, since one part stays at home, in n − 1 sends.

    Examples
    --------
    >>> all_to_all(4)
    (Fraction(3, 4), 3)
    """
    return quotient(n - 1, n), n - 1


def send(n: Number = 2) -> Shape:  # noqa: ARG001  (the others depend on it)
    """The payload once, to one neighbour."""
    return 1, 1


ALL_REDUCES: dict[str, Callable[[Number], Shape]] = {"ring": ring_all_reduce, "tree": tree_all_reduce}


def all_reduce(algorithm: str) -> Callable[[Number], Shape]:
    """The all-reduce of a name: "ring" or "tree"."""
    return ALL_REDUCES[resolve_name("all-reduce", algorithm, ALL_REDUCES)]


def collective(name: str, axes: str, payload: Number, shape: Shape) -> Row:
    """A row that sends and neither computes nor touches memory.

    Parameters
    ----------
    name, axes : of the row and of its payload
    payload : elements of the result, or of what a device holds
    shape : of one of the functions above, at so many devices

    Examples
    --------
    >>> row = collective("mlp all-reduce", "B T D", 4096, ring_all_reduce(8))
    >>> row.sent, row.messages, row.bytes
    (14336, 14, 0)
    """
    share, messages = shape
    elements = tidy(payload * share)
    if is_plain(elements) and elements < 0:
        raise CostModelError(f"{name}: devices must be at least 1")
    return Row(name, Op(0, sends=(Tensor(axes, elements, "activation"),), messages=messages))
