"""How many blocks several continuations of one prompt need when they share what they have in common."""

from collections.abc import Sequence

import numpy as np

from costmodel.common.blocks import blocks_of
from costmodel.lab.beam import beam_search
from costmodel.lab.paging import PagedMemory
from costmodel.lab.sampling import sample_next
from costmodel.lab.transformer import Decoder


def parallel_blocks(
    decoder: Decoder, prompt: Sequence[int], n_new: int, samples: int, block_tokens: int, *, seed: int = 0
) -> int:
    """The most blocks in use while so many answers to one prompt are sampled: only the prompt is shared.

    With P + n_new - 1 positions each: ⌊P/b⌋ shared ones and the rest for each.

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> parallel_blocks(TinyDecoder(), [1] * 20, 9, samples=4, block_tokens=4)
    13
    """
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

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> beam_blocks(TinyDecoder(), [1] * 20, 9, width=4, block_tokens=4) <= 13
    True
    """
    memory = _memory(decoder, len(prompt) + n_new, width, block_tokens)
    beam_search(decoder, prompt, n_new, width, cache=memory.new_cache())
    return memory.tables.pool.peak


def _memory(decoder: Decoder, tokens: int, sequences: int, block_tokens: int) -> PagedMemory:
    """Blocks enough if nothing were shared."""
    return PagedMemory(decoder.shape, (sequences + 1) * blocks_of(tokens, block_tokens), block_tokens)
