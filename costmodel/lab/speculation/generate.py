"""Speculative generation: rounds of drafting, one verifying pass of the target, and the rule.

The output is distributed exactly as the target's own, and at temperature 0 it is the target's own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.generation import check_room
from costmodel.lab.speculation.drafts import Draft, ModelDraft
from costmodel.lab.speculation.features import FeatureDraft
from costmodel.lab.speculation.models import CachedDecoder, Filters, as_tokens, next_token_model
from costmodel.lab.speculation.rule import checked_count, verify
from costmodel.lab.transformer import Decoder

Source = np.ndarray | Decoder


@dataclass
class SpeculativeRun:
    """What one sequence's run produced, and round by round what it took.

    Attributes
    ----------
    tokens : the prompt's and the new ones
    prompt_length : how many of the tokens were given
    drafted, accepted : for each round, how many tokens were guessed and how many passed

    Examples
    --------
    >>> run = SpeculativeRun([9, *range(6)], 1, drafted=[3, 3], accepted=[3, 1])
    >>> run.tokens_per_pass, run.acceptance  # 6 in 2 rounds; 4 of 5 that were looked at
    (3.0, 0.8)
    """

    tokens: list[int]
    prompt_length: int
    drafted: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)

    @property
    def new_tokens(self) -> list[int]:
        """The tokens after the prompt."""
        return self.tokens[self.prompt_length :]

    @property
    def rounds(self) -> int:
        """Passes of the target that this sequence took part in."""
        return len(self.drafted)

    @property
    def tokens_per_pass(self) -> float:
        """New tokens for each pass of the target."""
        return len(self.new_tokens) / self.rounds if self.rounds else 0.0

    @property
    def acceptance(self) -> float:
        """Accepted over looked at: the drafts up to and including the first rejection of each round."""
        looked = sum(min(n, k + 1) for n, k in zip(self.drafted, self.accepted, strict=True))
        return sum(self.accepted) / looked if looked else 0.0


def speculative_round(
    last_token: int | Sequence[int], target: Source, draft: Source | Draft, n_draft: int, rng: np.random.Generator
) -> list[int]:
    """One round: draft, verify in one pass, accept or replace; 1 to n_draft + 1 tokens.

    Parameters
    ----------
    last_token : what the round continues, a token or all tokens so far
    target : a bigram table (V, V) or a decoder
    draft : likewise, or anything with `propose`
    n_draft : γ
    rng : of draft and verdicts

    Returns
    -------
    the new ids alone, 1 to γ + 1 [token]

    Raises
    ------
    CostModelError
        for a γ that is not a whole number of at least 0, no token to continue or one outside the vocabulary, or
        vocabularies that differ

    Examples
    --------
    >>> target, draft = np.eye(3)[[1, 2, 0]], np.eye(3)[[1, 2, 1]]  # after 0, 1, 2 come 1, 2, 0; the draft errs after 2
    >>> speculative_round(0, target, draft, 3, np.random.default_rng(0))
    [1, 2, 0]

    References
    ----------
    Leviathan et al., 2211.17192, algorithm 1; Chen et al., 2302.01318, algorithm 2.
    """
    n_draft = checked_count("n_draft", n_draft)
    return _Speculator([last_token], target, draft, Filters(), [rng]).round({0: n_draft})[0]


def speculative_generate(
    start: int | Sequence[int], target: Source, draft: Source | Draft, n_tokens: int, n_draft: int,
    rng: np.random.Generator, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
    min_p: float | None = None, stop: Iterable[int] = (),
) -> SpeculativeRun:  # fmt: skip
    """Continue a prompt by n_tokens, in rounds of up to n_draft guesses; distributed as the target alone would.

    Parameters
    ----------
    start : a token, or the prompt's tokens
    target : a bigram table (V, V) or a decoder
    draft : likewise, or anything with `propose` (prompt lookup, a feature-level draft)
    n_tokens : M; the last rounds guess less, so that no work is thrown away
    n_draft : γ; 0 is plain decoding
    rng : of draft and verdicts; without influence at temperature 0
    temperature : T, the number that logits are divided by; 0 is greedy
    top_k, top_p, min_p : as in `sample_next`; all four for target and draft alike (a `ModelDraft` has its own)
    stop : tokens that end it early (the last one is kept)

    Returns
    -------
    SpeculativeRun with up to M new tokens

    Raises
    ------
    CostModelError
        before any work, for a prompt that is empty or outside the vocabulary, a bad count or setting, vocabularies that
        differ, or a last position beyond max_len

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> target, draft = TinyDecoder(), TinyDecoder(n_layers=1)
    >>> run = speculative_generate([1, 2], target, draft, 20, 3, np.random.default_rng(0), temperature=0)
    >>> run.tokens == target.generate([1, 2], 20).tokens
    True

    References
    ----------
    Leviathan et al., 2211.17192, algorithm 1; Chen et al., 2302.01318, algorithm 2.
    """
    filters = Filters(temperature, top_k, top_p, min_p)
    return _run([start], target, draft, n_tokens, n_draft, [rng], filters, stop)[0]


def speculative_batch(
    starts: Sequence[int | Sequence[int]], target: Source, draft: Source | Draft, n_tokens: int, n_draft: int,
    rng: np.random.Generator, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
    min_p: float | None = None, stop: Iterable[int] = (),
) -> list[SpeculativeRun]:  # fmt: skip
    """`speculative_generate` for several prompts, which share every pass of target and draft.

    Each draws from a generator of its own, a child of `rng` (`rng.spawn`), so company does not change what it gets.

    Parameters
    ----------
    starts : for each sequence a token, or its prompt's tokens
    rng : parent of the sequences' generators
    temperature : T, the number that logits are divided by; 0 is greedy
    target, draft, n_tokens, n_draft, top_k, top_p, min_p, stop : as in `speculative_generate`

    Returns
    -------
    a SpeculativeRun for each start, in their order

    Raises
    ------
    CostModelError
        as `speculative_generate`

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> runs = speculative_batch([[1], [2, 3]], TinyDecoder(), TinyDecoder(seed=1), 5, 2, np.random.default_rng(0))
    >>> [len(run.new_tokens) for run in runs]
    [5, 5]
    """
    filters = Filters(temperature, top_k, top_p, min_p)
    return _run(starts, target, draft, n_tokens, n_draft, rng.spawn(len(starts)), filters, stop)


def _run(
    starts: Sequence[int | Sequence[int]], target: Source, draft: Source | Draft, n_tokens: int, n_draft: int,
    rngs: Sequence[np.random.Generator], filters: Filters, stop: Iterable[int],
) -> list[SpeculativeRun]:  # fmt: skip
    n_tokens, n_draft, ends = checked_count("n_tokens", n_tokens), checked_count("n_draft", n_draft), set(stop)
    speculator = _Speculator(starts, target, draft, filters, rngs)
    speculator.check_room(n_tokens)
    runs = [SpeculativeRun(tokens, len(tokens)) for tokens in speculator.tokens]
    left = dict.fromkeys(range(len(runs)), n_tokens)
    while left := {slot: n for slot, n in left.items() if n > 0}:
        for slot, new in speculator.round({slot: min(n_draft, n - 1) for slot, n in left.items()}).items():
            ended = next((i for i, token in enumerate(new) if token in ends), None)
            new = new if ended is None else new[: ended + 1]
            runs[slot].drafted.append(speculator.drafted[slot])
            runs[slot].accepted.append(min(len(new), speculator.accepted[slot]))
            runs[slot].tokens += new  # the speculator's own list
            left[slot] = 0 if ended is not None else left[slot] - len(new)
    return runs


class _Speculator:
    """Sequences, the target that verifies and the draft that guesses."""

    def __init__(
        self, starts: Sequence[int | Sequence[int]], target: Source, draft: Source | Draft, filters: Filters,
        rngs: Sequence[np.random.Generator],
    ) -> None:  # fmt: skip
        self.target = next_token_model(target, filters)
        self.tokens = [as_tokens(start, self.target.vocab) for start in starts]
        if isinstance(draft, FeatureDraft):
            draft = draft.beside(self.target)
        self.draft: Draft = draft if hasattr(draft, "propose") else ModelDraft(next_token_model(draft, filters))
        if isinstance(self.draft, ModelDraft) and self.draft.model.vocab != self.target.vocab:
            raise CostModelError(
                f"target and draft must share a vocabulary, got {self.target.vocab} and {self.draft.model.vocab} tokens"
            )
        self.rngs = dict(enumerate(rngs))
        self.drafted: dict[int, int] = {}
        self.accepted: dict[int, int] = {}

    def check_room(self, n_tokens: int) -> None:
        """Refuse before any work what would not fit."""
        models = [self.target, *([self.draft.model] if isinstance(self.draft, ModelDraft) else [])]
        for model in models:
            if isinstance(model, CachedDecoder):
                check_room(max(map(len, self.tokens), default=0), n_tokens, model.decoder.shape.max_len)

    def round(self, counts: dict[int, int]) -> dict[int, list[int]]:
        """The new tokens of one round for each sequence in `counts`, not yet appended."""
        guessing = {slot: n for slot, n in counts.items() if n}
        guesses = self.draft.propose({s: self.tokens[s] for s in guessing}, guessing, self.rngs) if guessing else {}
        tokens = {slot: guesses[slot].tokens if slot in guesses else [] for slot in counts}
        found = self.target.after({s: ([*self.tokens[s], *tokens[s]], len(tokens[s]) + 1) for s in counts})
        new = {}
        for slot, p in found.items():
            q = guesses[slot].probs if slot in guesses else None
            new[slot] = verify(tokens[slot], p, q, self.rngs[slot])
            self.drafted[slot], self.accepted[slot] = len(tokens[slot]), len(new[slot]) - 1
        return new
