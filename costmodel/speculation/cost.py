"""What a round costs on an accelerator, from the ledgers of target and draft, and when that pays."""

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from costmodel.common import checks
from costmodel.common.errors import CostModelError
from costmodel.exact import Number, amount, is_plain, ratio, tidy, whole
from costmodel.hardware import Accelerator
from costmodel.model import Model, element_bytes
from costmodel.operation import Widths
from costmodel.ops import Ledger
from costmodel.passes import ForwardPass
from costmodel.roofline import timing
from costmodel.speculation.acceptance import expected_tokens
from costmodel.speculation.rounds import verify_ledger
from costmodel.symbols import B, S, alpha, gamma


@dataclass(frozen=True)
class Speculation:
    """A target and its draft on one accelerator.

    Parameters
    ----------
    target, accelerator : what verifies, and on what
    draft : the model that guesses; None for guesses that cost nothing (prompt lookup)
    weights, draft_weights : formats of the weights (None: as stored), or bytes per weight [byte]
    cache, activations : formats of cache and activations, of both models, or bytes per element [byte]
    compute : dtype of the arithmetic

    Raises
    ------
    CostModelError
        for a target, draft or accelerator that is none

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> pair = Speculation(load("llama-3-70b"), accelerator("h100-sxm").times(4), load("llama-3-8b"))
    >>> round(pair.speedup(0.8, batch=1, context=1024, gamma=4), 2), pair.best_gamma(0.8, batch=1, context=1024)
    (2.34, 6)

    References
    ----------
    Leviathan et al., 2211.17192, section 3, with each pass timed by the roofline in place of one cost ratio c.
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

    def __post_init__(self) -> None:
        for name, kinds in (("target", Model), ("draft", Model | None), ("accelerator", Accelerator)):
            if not isinstance(getattr(self, name), kinds):
                kind = "an Accelerator" if kinds is Accelerator else "a Model, such as load('llama-3-8b')"
                raise CostModelError(f"{name} must be {kind}, got {getattr(self, name)!r}")

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
        amount(alpha, "alpha", 0, 1)
        context = amount(context, "context")
        steps = [self._step_seconds(batch, context + i, 0 if i else _exact(alpha) ** gamma) for i in range(gamma)]
        return sum(steps)

    def cost_ratio(self, batch: Number = B, context: Number = S) -> Number:
        """c: ratio of the time of one draft step to that of one step of the target."""
        return ratio(self._step_seconds(batch, context), self.plain_seconds(batch, context))

    def speedup(self, alpha: Number = alpha, *, batch: Number = B, context: Number = S, gamma: int) -> Number:
        """E(α, γ)·plain/(drafting + verifying): how many times as fast as the target alone; an estimate, as E is.

        Examples
        --------
        >>> from costmodel import accelerator, load
        >>> Speculation(load("llama-3-8b"), accelerator("h100-sxm")).speedup(0.8, batch=8, context=512, gamma=0)
        1.0
        """
        amount(alpha, "alpha", 0, 1)
        spent = self.draft_seconds(batch, context, gamma, alpha) + self.verify_seconds(batch, context, gamma)
        return ratio(expected_tokens(alpha, gamma) * self.plain_seconds(batch, context), spent)

    def speedups(self, alpha: Number, *, batch: int, context: int, at_most: int = 16) -> list[float]:
        """The speed-up at γ = 0 … at_most; that at 0 is 1."""
        checks.amount("alpha", alpha, 0, 1)
        batch, context = checks.whole("batch", batch, 1), checks.whole("context", context, 1)
        at_most = checks.whole("at_most", at_most, 0)
        plain = self.plain_seconds(batch, context)
        later = 0.0  # the steps after the first, which do not depend on γ
        found = [1.0]
        for guesses in range(1, at_most + 1):
            first = self._step_seconds(batch, context, _exact(alpha) ** guesses)
            later += self._step_seconds(batch, context + guesses - 1) if guesses > 1 else 0.0
            spent = first + later + self.verify_seconds(batch, context, guesses)
            found.append(float(expected_tokens(alpha, guesses) * plain / spent))
        return found

    def best_gamma(self, alpha: Number, *, batch: int, context: int, at_most: int = 16) -> int:
        """The γ from 0 to at_most with the largest speed-up, by trying each; the smaller of equals."""
        found = self.speedups(alpha, batch=batch, context=context, at_most=at_most)
        return found.index(max(found))

    def largest_batch(self, context: int) -> int | None:
        """⌊(capacity − weights of both)/(caches of both per sequence)⌋, at least 0; None if nothing is cached.

        Parameters
        ----------
        context : tokens of each sequence [token]

        Returns
        -------
        sequences that memory holds [sequence], whether guesses pay for them or not

        Raises
        ------
        CostModelError
            for a context that is no whole number of at least 1

        Examples
        --------
        >>> from costmodel import accelerator, load
        >>> cards = accelerator("h100-sxm").times(4)
        >>> Speculation(load("llama-3-70b"), cards, load("llama-3-8b")).largest_batch(8192)
        43
        >>> (320 * 10**9 - 2 * (70_553_706_496 + 8_030_261_248)) // (8192 * (327_680 + 131_072))
        43
        """
        given = [(self.target, self.weights), (self.draft, self.draft_weights)]
        models = [(model, weights) for model, weights in given if model is not None]
        free = self.accelerator.capacity - sum(model.weight_bytes(weights) for model, weights in models)
        each = sum(model.cache_bytes(whole(context, "context"), self.cache) for model, _ in models)
        if each == 0:
            return None if free >= 0 else 0
        return max(0, int(free // each))

    def largest_paying_batch(
        self, alpha: Number, *, context: int, gamma: int | None = None, limit: int = 2**16, at_most: int = 16
    ) -> int | None:
        """The largest batch at which guessing is faster than not: `limit` is halved until it pays, then bisected.

        Beyond the batch that is found guessing does not pay, provided that it pays up to some batch and never after it.
        A mixture may gain nothing alone, where every draft reads further experts, and gain in company, which reads them
        anyway; such a span of batches is found if one of limit/2, limit/4, … lies in it.

        Parameters
        ----------
        alpha, context : α and S
        gamma : drafts per round; None takes the best for each batch
        limit : the largest batch tried
        at_most : the largest γ tried

        Returns
        -------
        a batch, 0 when none that was tried gains, None when it still pays at the limit

        Raises
        ------
        CostModelError
            for α outside 0 … 1, or a context, a limit or an at_most that is no whole number of at least 1
        """
        checks.amount("alpha", alpha, 0, 1)
        numbers = (("context", context), ("limit", limit), ("at_most", at_most))
        context, limit, at_most = (checks.whole(name, value, 1) for name, value in numbers)

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
