"""An operation priced from its axes: a contraction, or a step that touches each element of one activation."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf, prod

from costmodel.common.checks import is_real, is_whole
from costmodel.common.errors import CostModelError
from costmodel.exact import Number, amount, is_open, quotient
from costmodel.operation import ROLES, SIXTEEN_BIT, Op, Tensor, Widths
from costmodel.symbols import NOTATION

SYMBOLS: dict[str, Number] = {name: line.symbol for name, line in NOTATION.items()}


def _axes(pattern: str, operand: str) -> list[str]:
    axes = operand.split() if isinstance(operand, str) else []
    if not axes or len(set(axes)) < len(axes):
        problem = "is empty" if not axes else "repeats an axis"
        raise CostModelError(f"operand {operand!r} of {pattern!r} {problem}; write letters like 'B T D', each once")
    return axes


def _sized(pattern: str, axes: Iterable[str], sizes: Mapping[str, Number] | None) -> dict[str, Number]:
    """Every letter's size: the symbol itself unless `sizes` binds it, and G is N/K; those of the axes are positive."""
    known = SYMBOLS if sizes is None else SYMBOLS | dict(sizes)
    shared = "G" in axes and (sizes is None or "G" not in sizes)
    for axis in (*axes, "N", "K") if shared else axes:
        if axis not in known:
            raise CostModelError(
                f"unknown axis {axis!r} in {pattern!r}; give sizes={{{axis!r}: …}} or use a letter of the notation"
            )
        if not is_open(known[axis]) and not (is_real(known[axis]) and known[axis] > 0):
            raise CostModelError(f"axis {axis} of {pattern!r} must be positive, got {known[axis]!r}")
    return {**known, "G": quotient(known["N"], known["K"])} if shared else known


def contract(
    pattern: str,
    *,
    sizes: Mapping[str, Number] | None = None,
    roles: Sequence[str] | None = None,
    on_chip: Collection[int] = (),
    visible: Number | None = None,
    widths: Widths = SIXTEEN_BIT,
) -> Op:
    """Price a contraction written like einsum, one letter per axis.

    FLOPs = 2·(product of the distinct axes); bytes = the sum of elements x width over operands not on chip.

    Parameters
    ----------
    pattern : inputs, an arrow and the output, as in "B T D, D F -> B T F"
    sizes : size of each axis, for letters that are not to stay symbols
    roles : "weight", "cache" or "activation" for each input and then the output; by default an input without the
        batch axis B is a weight and everything else an activation
    on_chip : positions (0, 1, …; -1 is the output) of operands that never reach memory
    visible : (query, key) pairs that are computed, in place of the product of the axes T and S (a causal mask)
    widths : bytes per element by role [byte]

    Returns
    -------
    Op with flops [FLOP], bytes [byte] and intensity [FLOP/byte]

    Raises
    ------
    CostModelError
        quoting the pattern, when an axis is unknown, repeated, only in the output or not of a positive size; for roles
        or positions on chip that do not fit the operands, or fewer than 0 pairs visible

    Examples
    --------
    >>> op = contract("B D, D F -> B F")
    >>> op.flops, op.bytes
    (2*B*D*F, 2*B*D + 2*B*F + 2*D*F)
    >>> contract("B D, D F -> B F", sizes={"B": 1, "D": 4, "F": 8}).flops
    64
    """
    if not isinstance(pattern, str) or "->" not in pattern:
        raise CostModelError(f"{pattern!r} has no arrow; write it like 'B T D, D F -> B T F'")
    left, _, output = pattern.partition("->")
    operands = [_axes(pattern, operand) for operand in left.split(",")] + [_axes(pattern, output)]
    distinct = list(dict.fromkeys(axis for axes in operands[:-1] for axis in axes))
    extra = [axis for axis in operands[-1] if axis not in distinct]
    known = _sized(pattern, [*distinct, *extra], sizes)
    if extra:
        raise CostModelError(f"axis {extra[0]!r} of {pattern!r} is in the output but in no input")
    if roles is None:
        roles = ["activation" if "B" in axes else "weight" for axes in operands[:-1]] + ["activation"]
    if len(roles) != len(operands) or (unknown := set(roles) - set(ROLES)):
        problem = (
            f"{len(roles)} for {len(operands)} operands" if len(roles) != len(operands) else f"{sorted(unknown)[0]!r}"
        )
        raise CostModelError(f"roles of {pattern!r}: got {problem}; give one of {', '.join(ROLES)} for each")
    last = len(operands) - 1
    for position in on_chip:
        if not is_whole(position, -last - 1, last):
            raise CostModelError(f"on_chip of {pattern!r}: no operand {position!r}; they are 0 … {last}, or -1")
    if visible is not None:
        amount(visible, f"pairs visible in {pattern!r}", at_least=0, at_most=inf)
    kept = {position % len(operands) for position in on_chip}
    tensors = [
        Tensor(" ".join(axes), prod(known[a] for a in axes), role, place in kept, tuple(known[a] for a in axes))
        for place, (axes, role) in enumerate(zip(operands, roles, strict=True))
    ]
    worked = [known[a] for a in distinct if visible is None or a not in ("T", "S")]
    flops = 2 * prod(worked) * (1 if visible is None else visible)
    return Op(flops, tuple(tensors[:-1]), (tensors[-1],), widths)


def elementwise(
    axes: str,
    per_element: Number = 0,
    *,
    sizes: Mapping[str, Number] | None = None,
    gain: str | None = None,
    on_chip: bool = False,
) -> Op:
    """Price a step that touches each element of one activation: reads it, writes it, `per_element` FLOPs on each.

    FLOPs = per_element·(product of the axes); bytes = the activation twice, unless it is on chip, and the gain once.

    Parameters
    ----------
    axes : of the activation, as in "B T D"
    per_element : work on each element [FLOP]
    sizes : size of each axis, for letters that are not to stay symbols
    gain : axes of weights that are read along, as "D" for those of a norm; None for none
    on_chip : whether the activation never reaches memory, because the step is fused with its neighbours

    Returns
    -------
    Op with flops [FLOP], bytes [byte] and intensity [FLOP/byte]

    Raises
    ------
    CostModelError
        quoting the axes, when one is unknown, repeated or not of a positive size; for less than 0 FLOPs on an element

    Examples
    --------
    >>> elementwise("B T D", gain="D").bytes
    4*B*D*T + 2*D
    >>> elementwise("B T D", 3, sizes={"B": 1, "T": 2, "D": 4}).flops
    24
    """
    touched, read = _axes(axes, axes), [] if gain is None else _axes(gain, gain)
    known = _sized(axes if gain is None else f"{axes}, {gain}", [*touched, *read], sizes)
    count = prod(known[a] for a in touched)
    x = Tensor(axes, count, "activation", on_chip)
    weights = () if gain is None else (Tensor(gain, prod(known[a] for a in read), "weight"),)
    return Op(amount(per_element, "per_element", at_least=0, at_most=inf) * count, (x, *weights), (x,))
