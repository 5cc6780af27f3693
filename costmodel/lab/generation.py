"""Generating token by token: the loop that every serving system runs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from costmodel.common.errors import CostModelError

if TYPE_CHECKING:
    from costmodel.lab.transformer import Decoder


@dataclass(frozen=True)
class Generation:
    """What a run produced and what it took.

    Attributes
    ----------
    tokens : the prompt's and the new ones
    positions_processed : tokens that went through the layers, over all passes [token]
    flops : of all passes [FLOP]
    prompt_length : how many of the tokens were given

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> run = TinyDecoder().generate([1, 2, 3], 4)
    >>> len(run.tokens), len(run.new_tokens), run.positions_processed  # 3 + 4 - 1: the last token is never processed
    (7, 4, 6)
    """

    tokens: list[int]
    positions_processed: int
    flops: int
    prompt_length: int = 0

    @property
    def new_tokens(self) -> list[int]:
        """The tokens after the prompt."""
        return self.tokens[self.prompt_length :]


def stream(
    decoder: "Decoder",
    prompt: Sequence[int],
    n_new: int,
    use_cache: bool,
    *,
    choose: Callable[[np.ndarray], int],
    stop: Iterable[int],
) -> Iterator[int]:
    """New tokens one by one. Stopping early, by Ctrl-C too, loses only this run's cache; the decoder stays as it was.

    Parameters
    ----------
    decoder : runs the passes
    prompt : (P,) ids
    n_new : M, the most tokens to add
    use_cache : whether to keep keys and values, else every pass runs the whole prefix
    choose : logits (V,) -> token
    stop : tokens that end it early (the last one is given too)

    Returns
    -------
    iterator over at most M ids

    Raises
    ------
    CostModelError
        before any work, for an empty prompt, a negative n_new, or a last position beyond max_len

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> list(stream(TinyDecoder(), [1], 5, True, choose=lambda logits: 7, stop=[7]))
    [7]
    """
    tokens, ends = list(prompt), set(stop)
    if not tokens:
        raise CostModelError("prompt is empty; give at least one token")
    if n_new < 0:
        raise CostModelError(f"n_new must be at least 0, got {n_new}")
    check_room(len(tokens), n_new, decoder.shape.max_len)
    return _steps(decoder, tokens, n_new, use_cache, choose, ends)


def check_room(prompt: int, n_new: int, max_len: int) -> None:
    """Refuse before any work an answer that would need more positions than max_len."""
    longest = prompt + n_new - 1  # the last token is chosen and never processed
    if longest > max_len:
        raise CostModelError(
            f"{prompt} prompt tokens and {n_new} new ones need {longest} positions; max_len is {max_len}"
        )


def _steps(
    decoder: "Decoder",
    tokens: list[int],
    n_new: int,
    use_cache: bool,
    choose: Callable[[np.ndarray], int],
    ends: set[int],
) -> Iterator[int]:
    cache = decoder.new_cache() if use_cache else None
    for _ in range(n_new):
        if cache is not None and cache.length:
            logits = decoder.forward_step(tokens[-1], cache.length, cache)
        else:
            logits = decoder.forward_full(tokens, cache)[-1]
        tokens.append(int(choose(logits)))
        yield tokens[-1]
        if tokens[-1] in ends:
            return
