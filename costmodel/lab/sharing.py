"""How many blocks several continuations of one prompt need when they share what they have in common."""

from collections.abc import Sequence

import numpy as np

from costmodel.common.blocks import blocks_of
from costmodel.common.checks import whole
from costmodel.lab.beam import beam_search
from costmodel.lab.paging import PagedMemory
from costmodel.lab.sampling import sample_next
from costmodel.lab.transformer import Decoder


def parallel_blocks(
    decoder: Decoder, prompt: Sequence[int], n_new: int, samples: int, block_tokens: int, *, seed: int = 0
) -> int:
    """The most blocks in use while so many answers to one prompt are sampled: only the prompt is shared.

    ⌊P/b⌋ shared ones, and for each answer the rest of its ⌈(P + n_new - 1)/b⌉; ⌈P/b⌉ in all if n_new is 1, as the last
    token is never run.

    Parameters
    ----------
    decoder : with room for P + n_new - 1 positions
    prompt : (P,) ids, at least 1
    n_new : tokens in each answer, at least 1
    samples : answers, at least 1
    block_tokens : b, at least 1 [token]
    seed : of the draws; the number of blocks does not depend on it

    Returns
    -------
    peak number of blocks, of 2·L·K·H·b elements each

    Raises
    ------
    CostModelError
        for n_new, samples or block_tokens that are not positive integers, a prompt that is empty or outside the
        vocabulary, or more positions than the decoder has

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> parallel_blocks(TinyDecoder(), [1] * 20, 9, samples=4, block_tokens=4)  # 5 + 4·(7 - 5), where 4·7 = 28 alone
    13

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180, section 4.4 (parallel sampling).
    """
    whole("n_new", n_new, 1), whole("samples", samples, 1)
    memory, rng = _memory(decoder, len(prompt) + n_new, samples, block_tokens), np.random.default_rng(seed)
    first = memory.new_cache()
    logits = [decoder.forward_full(prompt, first)[-1]] * samples
    caches = [first, *(first.fork() for _ in range(samples - 1))]
    for _ in range(n_new - 1):
        rows = decoder.forward_batch([[sample_next(row, rng)] for row in logits], caches)
        logits = [row[-1] for row in rows]
    return memory.tables.pool.peak


def beam_blocks(decoder: Decoder, prompt: Sequence[int], n_new: int, width: int, block_tokens: int) -> int:
    """The most blocks in use during a beam search: beams share their prompt, and whatever past they have in common.

    At most what as many samples need; how much less depends on which beams survive.

    Parameters
    ----------
    decoder : with room for P + n_new - 1 positions
    prompt : (P,) ids, at least 1
    n_new : tokens in each beam, at least 1
    width : beams, at least 1; one shares with nobody and needs ⌈(P + n_new - 1)/b⌉
    block_tokens : b, at least 1 [token]

    Returns
    -------
    peak number of blocks

    Raises
    ------
    CostModelError
        for a block_tokens that is not a positive integer, or what `beam_search` refuses

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> beam_blocks(TinyDecoder(), [1] * 20, 20, width=4, block_tokens=4)  # four samples need 5 + 4·(10 - 5) = 25
    17
    >>> beam_blocks(TinyDecoder(), [1] * 20, 20, width=1, block_tokens=4)
    10

    References
    ----------
    Kwon et al., PagedAttention, 2309.06180, section 4.4 (beam search).
    """
    whole("n_new", n_new, 1), whole("width", width, 1)
    memory = _memory(decoder, len(prompt) + n_new, width, block_tokens)
    beam_search(decoder, prompt, n_new, width, cache=memory.new_cache())
    return memory.tables.pool.peak


def _memory(decoder: Decoder, tokens: int, sequences: int, block_tokens: int) -> PagedMemory:
    """Blocks enough if nothing were shared."""
    blocks = (sequences + 1) * blocks_of(tokens, whole("block_tokens", block_tokens, 1))
    return PagedMemory(decoder.shape, blocks, block_tokens)
