"""A made-up trace of conversations: every request repeats all that was said before it."""

import random
from itertools import count

from costmodel.common.checks import whole


def conversation_trace(
    requests: int, *, seed: int, system: int = 2, turn: int = 3, turns: float = 4.0, together: int = 50
) -> list[list[int]]:
    """Ids of the blocks of each request: the system prompt's, then those of its conversation so far.

    Parameters
    ----------
    requests : how many
    seed : of the choices
    system : blocks that all conversations begin with
    turn : blocks that each turn adds, question and answer
    turns : of a conversation, on average (geometric)
    together : conversations that go on at the same time; each request comes from one of them at random

    Examples
    --------
    >>> conversation_trace(3, seed=1, system=1, turn=2, together=1)
    [[0, 1, 2], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]]
    """
    for name, value in (("requests", requests), ("turn", turn), ("together", together)):
        whole(name, value, 1)
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
