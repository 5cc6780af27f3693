"""Who guesses: a smaller model token by token, or the text itself (prompt lookup)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.lab.ragged import checked_ids
from costmodel.lab.selection import draw
from costmodel.lab.speculation.models import CachedDecoder, TableModel


@dataclass(frozen=True)
class Proposal:
    """Drafted tokens, and the distributions (n, V) that they were drawn from; None when each was certain.

    Attributes
    ----------
    tokens : (n,) ids; none is allowed
    probs : (n, V), row i what token i was drawn from; None when each was certain

    Examples
    --------
    >>> LookupDraft().propose({0: [5, 1, 2, 5]}, {0: 2}, {})[0]  # no model, so no distributions
    Proposal(tokens=[1, 2], probs=None)
    """

    tokens: list[int]
    probs: np.ndarray | None = None


class Draft(Protocol):
    """Anything that proposes up to so many tokens after each of several sequences."""

    def propose(
        self, sequences: Mapping[int, Sequence[int]], counts: Mapping[int, int], rngs: Mapping[int, np.random.Generator]
    ) -> dict[int, Proposal]:
        """A proposal for each sequence, of at most its count of tokens."""


class ModelDraft:
    """A model that drafts token by token: γ passes for γ tokens, all sequences in each.

    After a round in which every draft passed, its cache lacks the last one: the first pass then runs two tokens.

    Parameters
    ----------
    model : a table, or a decoder with its caches; it keeps its own filters

    Examples
    --------
    >>> from costmodel.lab.speculation import Filters
    >>> after = [1, 2, 0]  # after 0 comes 1, after 1 comes 2, after 2 comes 0
    >>> draft = ModelDraft(TableModel(np.eye(3)[after], Filters()))
    >>> draft.propose({0: [2]}, {0: 4}, {0: np.random.default_rng(0)})[0].tokens, draft.model.passes
    ([0, 1, 2, 0], 4)

    References
    ----------
    Leviathan et al., 2211.17192, algorithm 1; Chen et al., 2302.01318, algorithm 2.
    """

    def __init__(self, model: TableModel | CachedDecoder) -> None:
        self.model = model

    def propose(
        self, sequences: Mapping[int, Sequence[int]], counts: Mapping[int, int], rngs: Mapping[int, np.random.Generator]
    ) -> dict[int, Proposal]:
        """γ tokens for each sequence, each drawn from the model after those before it."""
        tokens = {slot: list(sequence) for slot, sequence in sequences.items()}
        probs: dict[int, list[np.ndarray]] = {slot: [] for slot in sequences}
        for step in range(max(counts.values(), default=0)):
            found = self.model.after({slot: (tokens[slot], 1) for slot, count in counts.items() if step < count})
            for slot, (row,) in found.items():
                probs[slot].append(row)
                tokens[slot].append(int(draw(row, rngs[slot].random())))
        return {
            slot: Proposal(tokens[slot][len(sequence) :], np.array(probs[slot])) for slot, sequence in sequences.items()
        }


class LookupDraft:
    """Prompt lookup: what followed the last time that the text ended like this.

    Parameters
    ----------
    longest, shortest : of the ending that is looked for [token]; the longest found decides, at its latest place

    Raises
    ------
    CostModelError
        unless they are integers and 1 ≤ shortest ≤ longest

    Examples
    --------
    >>> LookupDraft().guess([5, 1, 2, 3, 9, 1, 2], 2)
    [3, 9]

    References
    ----------
    Saxena, Prompt lookup decoding, 2023.
    """

    def __init__(self, longest: int = 3, shortest: int = 1) -> None:
        whole("longest", longest, 1), whole("shortest", shortest, 1)
        if shortest > longest:
            raise CostModelError(f"an ending must have 1 to longest tokens, got {shortest} to {longest}")
        self.longest, self.shortest = longest, shortest

    def guess(self, tokens: Sequence[int], count: int) -> list[int]:
        """At most `count` tokens, none when the ending is new."""
        text = np.asarray(tokens)
        for size in range(min(self.longest, len(text) - 1), self.shortest - 1, -1):
            windows = np.lib.stride_tricks.sliding_window_view(text[:-1], size)
            places = np.flatnonzero((windows == text[-size:]).all(axis=1))
            if places.size:
                after = int(places[-1]) + size
                return text[after : after + count].tolist()
        return []

    def propose(
        self,
        sequences: Mapping[int, Sequence[int]],
        counts: Mapping[int, int],
        rngs: Mapping[int, np.random.Generator],  # noqa: ARG002 a certain guess draws nothing
    ) -> dict[int, Proposal]:
        """What followed in the text, as certain guesses; no model runs."""
        return {slot: Proposal(self.guess(sequence, counts[slot])) for slot, sequence in sequences.items()}


def bigram_table(tokens: Sequence[int], vocab: int, *, smoothing: float = 0.1) -> np.ndarray:
    """A bigram draft from counts: (count of x then y + smoothing)/(count of x + V·smoothing).

    Parameters
    ----------
    tokens : (n,) ids, 0 to V - 1, at least 1
    vocab : V, at least 1
    smoothing : finite number added to every count, above 0 so that nothing is impossible

    Returns
    -------
    (V, V), row x the distribution after x; "count of x" leaves out a last token, which nothing follows

    Raises
    ------
    CostModelError
        for a smoothing that is not finite and above 0, a V that is not a positive integer, no tokens, or ids beyond V

    Examples
    --------
    >>> bigram_table([0, 1, 0, 1], 2, smoothing=1).round(2)
    array([[0.25, 0.75],
           [0.67, 0.33]])

    References
    ----------
    Chen and Goodman, An empirical study of smoothing techniques for language modeling, ACL 1996 (additive smoothing).
    """
    if not 0 < smoothing < np.inf:
        raise CostModelError(f"smoothing must be a finite number above 0, got {smoothing}")
    ids = checked_ids(tokens, whole("vocab", vocab, 1))
    counts = np.full((vocab, vocab), float(smoothing))
    np.add.at(counts, (ids[:-1], ids[1:]), 1)
    return counts / counts.sum(axis=1, keepdims=True)
