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
    decoder : whose head is changed in place (and with a tied head, that token's embedding)
    prompt : (P,) ids, at least 1, not all of the vocabulary
    rng : draws the vector

    Returns
    -------
    first : the greedy token
    second : the one made its equal, the lowest other id that the prompt does not use

    Raises
    ------
    CostModelError
        for a prompt that leaves no token unused, is empty or longer than max_len, or has ids outside the vocabulary

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> first, second = plant_near_tie(tiny, [1, 2, 3], np.random.default_rng(0))
    >>> logits = tiny.forward_full([1, 2, 3])[-1]
    >>> bool(abs(logits[first] - logits[second]) < 1e-12), second  # id 0: the prompt does not use it
    (True, 0)

    References
    ----------
    He and Thinking Machines Lab, Defeating nondeterminism in LLM inference, 2025 (why ties matter).
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
    decoder : runs them all; each prompt but its last token is prefilled alone before
    prompt : (P,) ids, at least 2
    company : other prompts, at least 2 ids each; none, and the prompt is decoded alone

    Returns
    -------
    the token's id

    Raises
    ------
    CostModelError
        for a prompt of fewer than 2 ids, longer than max_len, or with ids outside the vocabulary

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
