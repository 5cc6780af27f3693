"""Beam search: keep the few most likely continuations so far instead of the single next token."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from costmodel.common.checks import whole
from costmodel.lab.cache import Cache
from costmodel.lab.filters import checked_logits
from costmodel.lab.losses import unchecked_log_softmax
from costmodel.lab.selection import top_k_mask
from costmodel.lab.transformer import Decoder


@dataclass(frozen=True)
class Beam:
    """A continuation and the log of its probability given the prompt.

    Attributes
    ----------
    tokens : ids, the prompt's first
    log_prob : Σ ln p(token | all before it) over the new tokens [nat], at most 0; not divided by their number
    """

    tokens: list[int]
    log_prob: float


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """logits - ln Σ exp(logits), over the last axis: the logarithm of softmax [nat].

    Parameters
    ----------
    logits : (…, V); -inf stays -inf, and no size overflows

    Returns
    -------
    (…, V), at most 0

    Raises
    ------
    CostModelError
        for NaN or +inf logits, nothing but -inf, or no token

    Examples
    --------
    >>> log_softmax(np.array([1000.0, 1000.0])).round(4)  # ln 1/2 each
    array([-0.6931, -0.6931])
    """
    return unchecked_log_softmax(checked_logits(logits))


def beam_search(
    decoder: Decoder, prompt: Sequence[int], n_new: int, width: int, *, cache: Cache | None = None
) -> list[Beam]:
    """The `width` best continuations found by extending every beam by every token and keeping the best.

    All beams go through the decoder as one batch. Width 1 is greedy; the best sequence overall can still be lost early.
    No token ends a beam.

    Parameters
    ----------
    decoder : with room for P + n_new - 1 positions
    prompt : (P,) ids, at least 1
    n_new : tokens that every beam gets, at least 1
    width : beams to keep, at least 1
    cache : an empty one to begin with, such as a `PagedKVCache`, whose forks share blocks; freed in the end; None for
        one of the decoder's own

    Returns
    -------
    beams, best first; of V^n_new continuations all, when there are fewer than `width`

    Raises
    ------
    CostModelError
        for a width or n_new that is not a positive integer, no prompt, ids outside the vocabulary, or more positions
        than the decoder has

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> beam_search(tiny, [1, 2, 3], 5, width=1)[0].tokens == tiny.generate([1, 2, 3], 5).tokens
    True
    >>> everything = beam_search(tiny, [1, 2, 3], 2, width=256)  # all 16² pairs: their probabilities sum to 1
    >>> len(everything), round(sum(float(np.exp(beam.log_prob)) for beam in everything), 6)
    (256, 1.0)

    References
    ----------
    Sutskever, Vinyals and Le, Sequence to sequence learning with neural networks, 1409.3215, section 3.2.
    Beams that share blocks: Kwon et al., PagedAttention, 2309.06180, section 4.4.
    """
    whole("n_new", n_new, 1), whole("width", width, 1)
    cache = decoder.new_cache() if cache is None else cache
    logits = [decoder.forward_full(prompt, cache)[-1]]
    beams, caches = [Beam([int(token) for token in prompt], 0.0)], [cache]
    for step in range(n_new):
        if step:
            logits = [rows[-1] for rows in decoder.forward_batch([[beam.tokens[-1]] for beam in beams], caches)]
        totals = np.array([beam.log_prob for beam in beams])[:, np.newaxis] + log_softmax(np.array(logits))
        best = np.flatnonzero(top_k_mask(totals.ravel(), width))
        best = best[np.argsort(-totals.ravel()[best], kind="stable")]
        parents, tokens = np.divmod(best, decoder.shape.vocab)
        caches = _caches_of(parents.tolist(), caches)
        beams = [
            Beam([*beams[parent].tokens, token], float(totals[parent, token]))
            for parent, token in zip(parents.tolist(), tokens.tolist(), strict=True)
        ]
    for cache in caches:
        cache.free()
    return beams


def _caches_of(parents: list[int], caches: list[Cache]) -> list[Cache]:
    """Each beam's cache: its parent's for the first child, a fork for every other; those without children are freed."""
    for parent in set(range(len(caches))) - set(parents):
        caches[parent].free()
    seen: set[int] = set()
    found = []
    for parent in parents:
        found.append(caches[parent].fork() if parent in seen else caches[parent])
        seen.add(parent)
    return found
