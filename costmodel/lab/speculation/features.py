"""EAGLE's idea: guess what the head will read next, and let the target's own head turn it into tokens.

The next feature depends on the token that was drawn, so that token is part of the input. (Li et al., 2401.15077.)
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.selection import draw
from costmodel.lab.speculation.drafts import Proposal
from costmodel.lab.speculation.models import CachedDecoder, TableModel
from costmodel.lab.speculation.regression import Regression, read_by_head
from costmodel.lab.transformer import Decoder


class FeatureDraft:
    """A draft that continues the target's features: f(t+1) from f(t) and token t+1, then the target's head.

    Parameters
    ----------
    decoder : the target
    texts : what it is trained on, best the target's own; at least one of two tokens or more
    options : width, penalty, seed of `Regression`

    Raises
    ------
    CostModelError
        for texts that are all shorter, ids outside the vocabulary, or options that `Regression` refuses

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> from costmodel.lab.speculation import speculative_generate
    >>> tiny = TinyDecoder()
    >>> draft = FeatureDraft(tiny, [tiny.generate([token], 12).tokens for token in range(8)], width=32)
    >>> run = speculative_generate([3], tiny, draft, 12, 3, np.random.default_rng(0), temperature=0)
    >>> run.tokens == tiny.generate([3], 12).tokens
    True

    References
    ----------
    Li et al., EAGLE, 2401.15077.
    """

    def __init__(self, decoder: Decoder, texts: Sequence[Sequence[int]], **options: Any) -> None:
        self.decoder = decoder
        pairs = read_by_head(decoder, texts, 2)
        before = np.concatenate([self._inputs(read[:-1], ids[1:]) for ids, read in pairs])
        self.next_feature = Regression(before, np.concatenate([read[1:] for _, read in pairs]), **options)

    def _inputs(self, features: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        embedding = self.decoder.weights.embedding
        scale = np.sqrt(embedding.shape[1])  # embeddings have variance 1/D, features 1
        return np.concatenate([features, scale * embedding[tokens]], axis=1)

    def beside(self, target: TableModel | CachedDecoder) -> "AttachedFeatureDraft":
        """The draft of one run, reading the features that the target's passes leave behind."""
        if not isinstance(target, CachedDecoder) or target.decoder is not self.decoder:
            raise CostModelError("a feature-level draft works only beside the decoder that it was trained on")
        return AttachedFeatureDraft(self, target)


class AttachedFeatureDraft:
    """A feature-level draft and the target it reads from."""

    def __init__(self, draft: FeatureDraft, target: CachedDecoder) -> None:
        self.draft, self.target = draft, target

    def propose(
        self, sequences: Mapping[int, Sequence[int]], counts: Mapping[int, int], rngs: Mapping[int, np.random.Generator]
    ) -> dict[int, Proposal]:
        """Tokens drawn from the head on guessed features; none before the target's first pass."""
        return {slot: self._guess(slot, tokens, counts[slot], rngs[slot]) for slot, tokens in sequences.items()}

    def _guess(self, slot: int, tokens: Sequence[int], count: int, rng: np.random.Generator) -> Proposal:
        seen = self.target.features.get(slot, [])
        if len(seen) < len(tokens) - 1 or not seen:
            return Proposal([])
        feature, token = seen[len(tokens) - 2][np.newaxis], tokens[-1]
        guesses: list[int] = []
        probs = []
        for _ in range(count):
            feature = self.draft.next_feature(self.draft._inputs(feature, np.array([token])))
            (row,) = self.target.filters.probs(feature @ self.draft.decoder.weights.head.values)
            token = int(draw(row, rng.random()))
            guesses.append(token)
            probs.append(row)
        return Proposal(guesses, np.array(probs))
