"""A made-up trace of conversations: every request repeats all that was said before it."""

import random
from itertools import count

from costmodel.common.checks import number, whole


def conversation_trace(
    requests: int, *, seed: int, system: int = 2, turn: int = 3, turns: float = 4.0, together: int = 50
) -> list[list[int]]:
    """Ids of the blocks of each request: the system prompt's, then those of its conversation so far.

    Parameters
    ----------
    requests : how many, at least 1
    seed : of the choices; the same seed gives the same trace
    system : blocks that all conversations begin with, at least 0; ids 0 to system - 1
    turn : blocks that each request adds to its conversation, at least 1; their ids are new
    turns : mean number of requests of a conversation, at least 1; after each it ends with probability 1/turns
    together : conversations that go on at the same time, at least 1; each request comes from one of them at random, and
        one that ends makes room for a new one

    Returns
    -------
    for each request its block ids in order, as `hit_ratio` takes them

    Raises
    ------
    CostModelError
        for requests, turn or together that are not positive integers, a system that is not an integer of at least 0, or
        turns below 1

    Examples
    --------
    >>> conversation_trace(3, seed=1, system=1, turn=2, together=1)
    [[0, 1, 2], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]]
    >>> conversation_trace(2, seed=1, system=1, turn=2, turns=1)  # each a conversation of its own
    [[0, 1, 2], [0, 3, 4]]
    """
    for name, value in (("requests", requests), ("turn", turn), ("together", together)):
        whole(name, value, 1)
    whole("system", system, 0)
    number("turns", turns, 1, infinite=True)
    rng, fresh = random.Random(seed), count(system)
    open_now: list[list[int]] = [list(range(system)) for _ in range(together)]
    trace = []
    for _ in range(requests):
        which = rng.randrange(together)
        open_now[which] += [next(fresh) for _ in range(turn)]
        trace.append(list(open_now[which]))
        if rng.random() < 1 / turns:
            open_now[which] = list(range(system))
    return trace
