"""What a round costs, from the ledgers of target and draft, and when that pays.

The target checks γ drafts in one pass over γ + 1 tokens; the draft takes γ passes of one token. After a round in which
every draft passed, the draft's cache lacks the last one, so that its next first pass runs two.
"""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

from sympy import Expr, Min

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain, quotient, ratio, tidy, whole
from costmodel.hardware import Accelerator
from costmodel.model import Model, element_bytes
from costmodel.operation import Widths
from costmodel.ops import Ledger
from costmodel.passes import ForwardPass
from costmodel.roofline import timing
from costmodel.speculation.acceptance import checked_share, expected_tokens
from costmodel.symbols import B, S, alpha, gamma


def verify_ledger(
    target: Model, batch: Number = B, context: Number = S, gamma: Number = gamma, **switches: Any
) -> Ledger:
    """The target's pass of one round: T = γ + 1 tokens for each sequence, which attend to S + γ, logits for all.

    Parameters
    ----------
    target : sizes may be symbols
    batch, context : B, and S as of the first of the tokens (so γ = 0 is a decode step)
    gamma : drafts to check
    switches : causal, elementwise

    Examples
    --------
    >>> from costmodel.model import transformer
    >>> tiny = transformer(V=16, D=16, F=64, N=2, K=2, H=8, L=2, norms=False, gated=False)
    >>> verify_ledger(tiny, 1, 10, 0).flops == tiny.decode(1, 10).flops
    True
    """
    return target.forward(ForwardPass(batch, gamma + 1, context + gamma, head="all", **switches))


def draft_ledger(
    draft: Model, batch: Number = B, context: Number = S, gamma: Number = gamma, **switches: Any
) -> Ledger:
    """The draft's γ passes of one round, at contexts S … S + γ - 1.

    A symbolic γ takes γ passes at their mean context, S + (γ - 1)/2: the same sum where costs are affine in S.

    Raises
    ------
    CostModelError
        for a symbolic γ with sliding windows, whose cost is not affine in S
    """
    gamma = whole(gamma, "gamma", at_least=0)
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
    prompt : P, at least 1
    rounds : (tokens drafted, drafts accepted) for each
    switches : causal, head, elementwise

    Returns
    -------
    passes of the target, one for each round, and of the draft, one for each token drafted

    Examples
    --------
    >>> target, draft = run_passes(4, [(2, 2), (2, 0)])
    >>> [(p.tokens, p.context) for p in target], [(p.tokens, p.context) for p in draft]
    ([(6, 6), (3, 9)], [(4, 4), (1, 5), (2, 7), (1, 8)])
    """
    held, cached, known = whole(prompt, "prompt"), 0, 0  # tokens known; of them in the target's, the draft's cache
    target: list[ForwardPass] = []
    draft: list[ForwardPass] = []
    for drafted, accepted in rounds:
        if not 0 <= accepted <= drafted:
            raise CostModelError(f"accepted drafts must be 0 to the {drafted} drafted, got {accepted}")
        for i in range(drafted):
            draft.append(ForwardPass(1, 1 if i else held - known, held + i, **switches))
        known = held + min(accepted, drafted - 1) if drafted else known
        target.append(ForwardPass(1, held + drafted - cached, held + drafted, **switches))
        cached = held + accepted
        held += accepted + 1
    return target, draft


@dataclass(frozen=True)
class Speculation:
    """A target and its draft on one accelerator.

    Parameters
    ----------
    target, accelerator : what verifies, and on what
    draft : the model that guesses; None for guesses that cost nothing (prompt lookup)
    weights, draft_weights : formats of the weights (None: as stored), or bytes per weight
    cache, activations : formats of cache and activations, of both models
    compute : dtype of the arithmetic

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> pair = Speculation(load("llama-3-70b"), accelerator("h100-sxm").times(4), load("llama-3-8b"))
    >>> round(pair.speedup(0.8, batch=1, context=1024, gamma=4), 2), pair.best_gamma(0.8, batch=1, context=1024)
    (2.34, 6)
    """

    target: Model
    accelerator: Accelerator
    draft: Model | None = None
    _: KW_ONLY
    weights: str | Number | None = None
    draft_weights: str | Number | None = None
    cache: str | Number = "bf16"
    activations: str | Number = "bf16"
    compute: str = "bf16"

    def _seconds(self, model: Model, given: str | Number | None, ledger: Ledger) -> Number:
        formats = (model.stored_dtype() if given is None else given, self.cache, self.activations)
        widths = Widths(*(tidy(element_bytes(width)) for width in formats))
        return timing(ledger.sized(widths), self.accelerator, self.compute).seconds

    def plain_seconds(self, batch: Number = B, context: Number = S) -> Number:
        """One decode step of the target alone [s]."""
        return self._seconds(self.target, self.weights, self.target.decode(batch, context))

    def verify_seconds(self, batch: Number = B, context: Number = S, gamma: Number = gamma) -> Number:
        """The target's pass over γ + 1 tokens of each sequence [s]."""
        return self._seconds(self.target, self.weights, verify_ledger(self.target, batch, context, gamma))

    def _step_seconds(self, batch: Number, context: Number, extra: Number = 0) -> Number:
        """One draft step, of which a share `extra` runs two tokens: the expected ledger under one roofline [s]."""
        if self.draft is None:
            return 0
        step = self.draft.decode(batch, context)
        if extra != 0:
            longer = self.draft.forward(ForwardPass(batch, 2, context))
            step = step.times(1 - extra) + longer.times(extra)
        return self._seconds(self.draft, self.draft_weights, step)

    def draft_seconds(self, batch: Number = B, context: Number = S, gamma: int = 1, alpha: Number = alpha) -> Number:
        """The draft's γ steps; the first runs two tokens with probability α^γ, when the last round passed whole [s]."""
        gamma = whole(gamma, "gamma", at_least=0)
        if not is_plain(gamma):
            raise CostModelError("gamma must be a number where seconds are asked for: each step has its own roofline")
        steps = [self._step_seconds(batch, context + i, 0 if i else _exact(alpha) ** gamma) for i in range(gamma)]
        return sum(steps)

    def cost_ratio(self, batch: Number = B, context: Number = S) -> Number:
        """c: one draft step over one step of the target."""
        return ratio(self._step_seconds(batch, context), self.plain_seconds(batch, context))

    def speedup(self, alpha: Number = alpha, *, batch: Number = B, context: Number = S, gamma: int) -> Number:
        """E(α, γ)·plain/(drafting + verifying): how many times as fast as the target alone; an estimate, as E is.

        Examples
        --------
        >>> from costmodel import accelerator, load
        >>> Speculation(load("llama-3-8b"), accelerator("h100-sxm")).speedup(0.8, batch=8, context=512, gamma=0)
        1.0
        """
        checked_share("alpha", alpha)
        spent = self.draft_seconds(batch, context, gamma, alpha) + self.verify_seconds(batch, context, gamma)
        return ratio(expected_tokens(alpha, gamma) * self.plain_seconds(batch, context), spent)

    def speedups(self, alpha: Number, *, batch: int, context: int, at_most: int = 16) -> list[float]:
        """The speed-up at γ = 0 … at_most."""
        plain = self.plain_seconds(batch, context)
        later = 0.0  # the steps after the first, which do not depend on γ
        found = [1.0]
        for guesses in range(1, at_most + 1):
            first = self._step_seconds(batch, context, _exact(alpha) ** guesses)
            later += self._step_seconds(batch, context + guesses - 1) if guesses > 1 else 0.0
            spent = first + later + self.verify_seconds(batch, context, guesses)
            found.append(float(expected_tokens(checked_share("alpha", alpha), guesses) * plain / spent))
        return found

    def best_gamma(self, alpha: Number, *, batch: int, context: int, at_most: int = 16) -> int:
        """The γ from 0 to at_most with the largest speed-up, by trying each; the smaller of equals."""
        found = self.speedups(alpha, batch=batch, context=context, at_most=at_most)
        return found.index(max(found))

    def largest_paying_batch(
        self, alpha: Number, *, context: int, gamma: int | None = None, limit: int = 2**16, at_most: int = 16
    ) -> int | None:
        """The largest batch at which guessing is faster than not, by bisection: company makes guesses dearer.

        Parameters
        ----------
        alpha, context : α and S
        gamma : drafts per round; None takes the best for each batch
        limit : the largest batch tried
        at_most : the largest γ tried

        Returns
        -------
        a batch, 0 when not even one sequence gains, None when it still pays at the limit
        """

        def pays(batch: int) -> bool:
            if gamma is None:
                return max(self.speedups(alpha, batch=batch, context=context, at_most=at_most)[1:]) > 1
            return self.speedup(alpha, batch=batch, context=context, gamma=gamma) > 1

        if pays(limit):
            return None
        low, high = 0, limit
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if pays(middle) else (low, middle)
        return low


def _exact(share: Number) -> Number:
    """A float as the fraction it says, so that ledgers stay exact."""
    return Fraction(str(share)) if isinstance(share, float) else share
