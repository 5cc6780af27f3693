"""The passes of a round of speculative decoding, and what they add up to in a whole run.

The target checks γ drafts in one pass over γ + 1 tokens; the draft takes γ passes of one token. After a round in which
every draft passed, the draft's cache lacks the last one, so that its next first pass runs two.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sympy import Expr, Min

from costmodel.common import checks
from costmodel.common.errors import CostModelError
from costmodel.exact import Number, amount, is_plain, quotient, whole
from costmodel.model import Model
from costmodel.ops import Ledger
from costmodel.passes import ForwardPass
from costmodel.symbols import B, S, gamma


def verify_ledger(
    target: Model, batch: Number = B, context: Number = S, gamma: Number = gamma, **switches: Any
) -> Ledger:
    """The target's pass of one round: T = γ + 1 tokens for each sequence, which attend to S + γ, logits for all.

    Parameters
    ----------
    target : the model that verifies; its sizes may be symbols
    batch : B [sequence]
    context : S as of the first of the tokens [token], so that γ = 0 is a decode step
    gamma : γ, drafts to check [token]
    switches : causal, elementwise, as in ForwardPass

    Returns
    -------
    Ledger with flops [FLOP] and bytes [byte]

    Raises
    ------
    CostModelError
        for a γ that is not whole or is below 0, and a batch or context that is neither a symbol nor a number above 0

    Examples
    --------
    >>> from costmodel.model import transformer
    >>> tiny = transformer(V=16, D=16, F=64, N=2, K=2, H=8, L=2, norms=False, gated=False)
    >>> verify_ledger(tiny, 1, 10, 0).flops == tiny.decode(1, 10).flops
    True

    References
    ----------
    Leviathan et al., 2211.17192, algorithm 1; Chen et al., 2302.01318, algorithm 2.
    """
    gamma = whole(gamma, "gamma", at_least=0)
    return target.forward(ForwardPass(batch, gamma + 1, amount(context, "context") + gamma, head="all", **switches))


def draft_ledger(
    draft: Model, batch: Number = B, context: Number = S, gamma: Number = gamma, **switches: Any
) -> Ledger:
    """The draft's γ passes of one round, at contexts S … S + γ - 1.

    A symbolic γ takes γ passes at their mean context, S + (γ - 1)/2: the same sum where costs are affine in S.

    Parameters
    ----------
    draft : the model that guesses; its sizes may be symbols
    batch : B [sequence]
    context : S as of the first of the tokens [token]
    gamma : γ, drafts to make [token]; 0 makes an empty ledger
    switches : causal, elementwise, as in ForwardPass

    Returns
    -------
    Ledger with flops [FLOP] and bytes [byte]

    Raises
    ------
    CostModelError
        for a symbolic γ with sliding windows, whose cost is not affine in S, a γ that is not whole or is below 0, and a
        batch or context that is neither a symbol nor a number above 0

    Examples
    --------
    >>> from costmodel.model import transformer
    >>> tiny = transformer(V=16, D=16, F=64, N=2, K=2, H=8, L=2, norms=False, gated=False)
    >>> draft_ledger(tiny, 1, 10, 2).flops == tiny.decode(1, 10).flops + tiny.decode(1, 11).flops
    True
    """
    gamma, context = whole(gamma, "gamma", at_least=0), amount(context, "context")
    if is_plain(gamma):
        steps = (draft.decode(batch, context + i, **switches) for i in range(gamma))
        return sum(steps, Ledger())
    mean = draft.decode(batch, context + quotient(gamma - 1, 2), **switches)
    if any(isinstance(total, Expr) and total.has(Min) for total in (mean.flops, mean.bytes)):
        raise CostModelError(f"{draft.name} has sliding windows; give gamma as a number")
    return mean.times(gamma)


def run_passes(
    prompt: int, rounds: Iterable[Sequence[int]], **switches: Any
) -> tuple[list[ForwardPass], list[ForwardPass]]:
    """The passes of target and draft in a whole run of one sequence, which starts with nothing cached.

    Parameters
    ----------
    prompt : P, at least 1 [token]
    rounds : (tokens drafted, drafts accepted) for each
    switches : causal, head, elementwise, as in ForwardPass

    Returns
    -------
    passes of the target, one for each round
    passes of the draft, one for each token drafted

    Raises
    ------
    CostModelError
        for drafts that are no whole numbers, more accepted than were made, or a prompt that is not a whole number of at
        least 1

    Examples
    --------
    >>> target, draft = run_passes(4, [(2, 2), (2, 0)])
    >>> [(p.tokens, p.context) for p in target], [(p.tokens, p.context) for p in draft]
    ([(6, 6), (3, 9)], [(4, 4), (1, 5), (2, 7), (1, 8)])
    """
    held = checks.whole("prompt", prompt, 1)  # tokens known
    cached, known = 0, 0  # of them in the target's, the draft's cache
    target: list[ForwardPass] = []
    draft: list[ForwardPass] = []
    for drafted, accepted in rounds:
        if not checks.is_whole(accepted, 0, checks.whole("drafts of a round", drafted, 0)):
            raise CostModelError(f"accepted drafts must be 0 to the {drafted} drafted, got {accepted!r}")
        for i in range(drafted):
            draft.append(ForwardPass(1, 1 if i else held - known, held + i, **switches))
        known = held + min(accepted, drafted - 1) if drafted else known
        target.append(ForwardPass(1, held + drafted - cached, held + drafted, **switches))
        cached = held + accepted
        held += accepted + 1
    return target, draft
