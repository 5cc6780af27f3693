"""Iteration-level scheduling on a real decoder: requests join and leave between two passes.

Yu et al., Orca (OSDI 2022): each pass is one ragged batch of new prompts and of last tokens.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.lab.cache import Cache
from costmodel.lab.sampling import greedy
from costmodel.lab.transformer import Decoder


@dataclass(frozen=True)
class Served:
    """What everybody got, and who was in which pass.

    Attributes
    ----------
    answers : the new tokens of each request
    passes : for each pass, {request: its rows}
    """

    answers: list[list[int]]
    passes: list[dict[int, int]]


def serve_continuously(
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    n_new: Sequence[int],
    slots: int,
    *,
    new_cache: Callable[[], Cache] | None = None,
    choose: Callable[[np.ndarray], int] = greedy,
) -> Served:
    """Answer requests in order on so many slots; a new one's prompt travels with the others' next tokens.

    Parameters
    ----------
    decoder : computes every pass as one ragged batch; its work is counted
    prompts : (P_i,) ids, at least 1 each
    n_new : tokens that each answer has, at least 1; one number for each prompt
    slots : requests at a time, at least 1
    new_cache : makes an empty cache, freed when its request ends, such as `PagedMemory.new_cache`; None for the
        decoder's own
    choose : logits (V,) -> token

    Returns
    -------
    Served: the answers in the order of the prompts, and the rows of every pass

    Raises
    ------
    CostModelError
        for slots or an n_new below 1, another number of them than of prompts, a prompt that is empty or outside the
        vocabulary, a sequence longer than max_len, or blocks that run out

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> served = serve_continuously(TinyDecoder(), [[1, 2, 3], [4], [5, 6]], [3, 1, 2], slots=2)
    >>> served.passes  # request 1 ends after one pass; request 2 brings its 2 tokens beside request 0's last one
    [{0: 3, 1: 1}, {0: 1, 2: 2}, {0: 1, 2: 1}]

    References
    ----------
    Yu et al., Orca, OSDI 2022 (iteration-level scheduling, selective batching).
    """
    whole("slots", slots, 1)
    if len(prompts) != len(n_new):
        raise CostModelError(f"one n_new for each prompt is needed, got {len(n_new)} for {len(prompts)}")
    for tokens in n_new:
        whole("n_new", tokens, 1)
    new_cache = new_cache or decoder.new_cache
    waiting = deque(range(len(prompts)))
    caches: dict[int, Cache] = {}
    served = Served([[] for _ in prompts], [])
    while waiting or caches:
        while waiting and len(caches) < slots:
            caches[waiting.popleft()] = new_cache()
        rows = [served.answers[r][-1:] or prompts[r] for r in caches]
        served.passes.append({r: len(tokens) for r, tokens in zip(caches, rows, strict=True)})
        logits = decoder.forward_batch(rows, list(caches.values()))
        for request, row in zip(list(caches), logits, strict=True):
            served.answers[request].append(int(choose(row[-1])))
            if len(served.answers[request]) == n_new[request]:
                caches.pop(request).free()
    return served
