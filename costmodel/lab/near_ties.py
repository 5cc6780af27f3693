"""Near ties: logits equal but for rounding, and a greedy choice that depends on who else is in the batch.

A kernel adds in an order that depends on how many rows it is given, so a prompt can be answered differently in company
(He, Thinking Machines Lab, Defeating nondeterminism in LLM inference, 2025).
"""

from collections.abc import Sequence

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.sampling import greedy
from costmodel.lab.transformer import Decoder


def plant_near_tie(decoder: Decoder, prompt: Sequence[int], rng: np.random.Generator) -> tuple[int, int]:
    """Give a token that the prompt does not use the same logit, after this prompt, as the greedy token has.

    Its column of the head becomes the greedy token's plus a vector at right angles to the hidden state: in exact
    arithmetic the same sum, over other terms.

    Parameters
    ----------
    decoder : whose head is changed (and with a tied head, that token's embedding)
    prompt : (P,) ids
    rng : draws the vector

    Returns
    -------
    the greedy token and the one made its equal
    """
    hidden = decoder.hidden(prompt)[-1].astype(np.float64)
    first = greedy(decoder.forward_full(prompt)[-1])
    unused = sorted(set(range(decoder.shape.vocab)) - {first, *prompt})
    if not unused:
        raise CostModelError(f"the prompt uses all {decoder.shape.vocab} tokens; leave one out")
    across = rng.normal(size=hidden.shape)
    across -= hidden * (across @ hidden) / (hidden @ hidden)
    head = decoder.weights.head.values
    head[:, unused[0]] = head[:, first] + across
    return first, unused[0]


def next_token(decoder: Decoder, prompt: Sequence[int], company: Sequence[Sequence[int]] = ()) -> int:
    """The greedy token after a prompt whose last token is decoded in one batch with those of others.

    Parameters
    ----------
    decoder : runs them all
    prompt : (P,) ids, at least 2
    company : other prompts, at least 2 ids each

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> next_token(tiny, [1, 2, 3]) == next_token(tiny, [1, 2, 3], [[4, 5]])  # no near tie, no difference
    True
    """
    prompts = [list(prompt), *(list(other) for other in company)]
    caches = [decoder.new_cache() for _ in prompts]
    for tokens, cache in zip(prompts, caches, strict=True):
        decoder.forward_full(tokens[:-1], cache)
    return greedy(decoder.forward_batch([tokens[-1:] for tokens in prompts], caches)[0][0])
