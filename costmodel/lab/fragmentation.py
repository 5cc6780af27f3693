"""Where key/value memory goes when it is reserved in one piece per request, and when it is handed out in blocks.

The policies and the four shares are those of figure 2 of Kwon et al. (PagedAttention, 2309.06180).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError, resolve_name
from costmodel.lab.reservation import BlockMemory, BuddyMemory, Memory, Request

POLICIES = {"max": "max length", "pow2": "power of two", "oracle": "foreseen", "blocks": "blocks"}  # and in words
SHORTEST = 32  # tokens; of the lengths that `chat_requests` draws one in 2000 is as short, and hardly any is shorter


@dataclass(frozen=True)
class MemoryShares:
    """Shares of the memory, averaged over the steps in which a request was waiting (they sum to 1), and its price.

    Attributes
    ----------
    tokens : share that holds keys and values
    reserved : share that will hold some before its request ends
    internal : share that is given to a request that will never fill it (in blocks: has not yet)
    external : share that is given to nobody, and no use to the request that waits
    running : mean number of requests at a time
    restarts : how often a request lost its blocks and began again
    recomputed : tokens that they held then, all to be computed again [token]

    Examples
    --------
    >>> shares = MemoryShares(0.25, 0.25, 0.5, 0.0, running=1.0, restarts=0, recomputed=0)
    >>> shares.tokens + shares.reserved + shares.internal + shares.external
    1.0
    """

    tokens: float
    reserved: float
    internal: float
    external: float
    running: float
    restarts: int
    recomputed: int


def memory_shares(
    requests: Sequence[Request], policy: str, *, capacity: int, max_len: int = 2048, block_tokens: int = 16
) -> MemoryShares:
    """Serve requests in order, each as soon as it finds room, one token per step, and watch the memory.

    When blocks run out, the request that came last starts over later (its memory is freed, its tokens computed again).
    Computing takes no time here: `restarts` and `recomputed` say how much of it there would be.

    Parameters
    ----------
    requests : all there from the start
    policy : "max", "pow2" or "oracle" reserve one piece per request, of max_len tokens, of the prompt and the least
        power of two for the answer, or of its true length, each rounded up to a power of two; "blocks" reserves nothing
    capacity : of the memory [token]
    max_len : the most that one request may have, prompt and answer [token]
    block_tokens : of a block [token]

    Returns
    -------
    MemoryShares, averaged over the steps in which a request waits

    Raises
    ------
    CostModelError
        for an unknown policy, sizes that are not positive integers, no requests, one that can never fit, or so few that
        none ever waits

    Examples
    --------
    >>> memory_shares([Request(1, 3)] * 3, "max", capacity=8, max_len=8)  # 1, 2, 3 of 8 tokens are there; 4 will be
    MemoryShares(tokens=0.25, reserved=0.25, internal=0.5, external=0.0, running=1.0, restarts=0, recomputed=0)
    >>> memory_shares([Request(1, 3)] * 3, "oracle", capacity=8, max_len=8)
    MemoryShares(tokens=0.5, reserved=0.5, internal=0.0, external=0.0, running=2.0, restarts=0, recomputed=0)

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180, figure 2 (Orca "Max", "Pow2", "Oracle", and vLLM).
    """
    policy = resolve_name("policy", policy, POLICIES)
    for name, value in (("capacity", capacity), ("max_len", max_len), ("block_tokens", block_tokens)):
        whole(name, value, 1)
    if not requests:
        raise CostModelError("no requests: give at least one")
    for request in requests:
        whole("prompt", request.prompt, 1), whole("output", request.output, 1)
        if request.total > min(capacity, max_len):
            raise CostModelError(
                f"a request of {request.total} tokens never fits: the most is {min(capacity, max_len)}"
            )
    memory = BlockMemory(capacity, block_tokens) if policy == "blocks" else BuddyMemory(capacity, policy, max_len)
    sums, steps = np.zeros(5), 0
    lost: list[int] = []  # tokens of each request that had to begin again
    for row in _watch(memory, requests, capacity, lost, foreseen=policy != "blocks"):
        sums, steps = sums + row, steps + 1
    if not steps:
        raise CostModelError(f"no request ever waited: {len(requests)} of them fit at once; give more")
    tokens, reserved, internal, external = (sums[:4] / (steps * capacity)).tolist()
    return MemoryShares(tokens, reserved, internal, external, float(sums[4] / steps), len(lost), sum(lost))


def _watch(
    memory: Memory, requests: Sequence[Request], capacity: int, lost: list[int], *, foreseen: bool
) -> Iterator[np.ndarray]:
    """In each step in which a request waits: tokens held, reserved, wasted inside and outside, and requests running."""
    waiting = deque(enumerate(requests))
    running: dict[int, Request] = {}
    done: dict[int, int] = {}  # tokens so far
    while True:
        while waiting and memory.admit(*waiting[0]):
            name, request = waiting.popleft()
            running[name], done[name] = request, request.prompt
        if not waiting:
            return
        if not running:
            raise CostModelError(f"a request of {waiting[0][1].total} tokens never fits, even alone")
        held, given = sum(done.values()), sum(map(memory.given, running))
        reserved = sum(request.total for request in running.values()) - held if foreseen else 0
        yield np.array([held, reserved, given - held - reserved, capacity - given, len(running)])
        for name in list(running):
            while name in running and not memory.grow(name):
                last, request = running.popitem()
                memory.free(last)
                grown = done.pop(last)
                lost.append(grown)
                waiting.appendleft((last, Request(grown, request.total - grown)))
            if name in running:
                done[name] += 1
                if done[name] == running[name].total:
                    memory.free(name)
                    del running[name], done[name]


def chat_requests(count: int, *, seed: int, max_len: int = 2048) -> list[Request]:
    """Requests about as long as those of ShareGPT conversations: lognormal, with means of 161 tokens in and 338 out.

    That the logarithm's standard deviation is 1 is our assumption. Requests beyond max_len are drawn again, which
    lowers the means by about a tenth at 2048.

    Parameters
    ----------
    count : how many, at least 0
    seed : of the lengths; the same seed gives the same requests
    max_len : the most that a prompt and its answer have together, at least 32: almost no draw is shorter [token]

    Returns
    -------
    requests, with prompt and output of at least 1 [token]

    Raises
    ------
    CostModelError
        for a count or max_len that is not such an integer

    Examples
    --------
    >>> chat_requests(2, seed=0)
    [Request(prompt=111, output=180), Request(prompt=186, output=228)]

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180, figure 11 (the means).
    """
    whole("count", count, 0), whole("max_len", max_len, SHORTEST)
    rng = np.random.default_rng(seed)
    found: list[Request] = []
    while len(found) < count:
        prompt, output = np.ceil(rng.lognormal(np.log([161.3, 338.0]) - 0.5, 1.0)).astype(int).tolist()
        if prompt + output <= max_len:
            found.append(Request(prompt, output))
    return found
