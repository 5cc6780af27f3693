"""How long a decoder takes here: seconds of a prefill and of a decode step, the fastest of several runs."""

from time import perf_counter

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.lab.transformer import Decoder


def measured_seconds(decoder: Decoder, *, prompt: int, context: int, rounds: int = 5) -> dict[str, float]:
    """Seconds of one prefill of `prompt` tokens, and of one step whose token sees `context` tokens, itself included.

    Parameters
    ----------
    decoder : with a vocabulary of at least 8; its work goes on counting
    prompt : of the prefill, which begins with an empty cache, 1 to max_len [token]
    context : of the step, 2 to max_len; context - 1 of them are prefilled before the clock starts [token]
    rounds : runs of each, at least 1; the fastest counts

    Returns
    -------
    {"prefill": …, "decode": …} [s]

    Raises
    ------
    CostModelError
        for a prompt or rounds that is not an integer of at least 1, a context that is not one of at least 2, a length
        beyond max_len, or a smaller vocabulary

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> seconds = measured_seconds(tiny, prompt=4, context=3, rounds=2)
    >>> sorted(seconds), tiny.work.positions  # (3 - 1) + 2·(4 + 1)
    (['decode', 'prefill'], 12)
    """
    whole("prompt", prompt, 1), whole("context", context, 2), whole("rounds", rounds, 1)
    shape = decoder.shape
    if max(prompt, context) > shape.max_len:
        raise CostModelError(f"prompt and context must be at most max_len, {shape.max_len}, got {prompt} and {context}")
    if shape.vocab < 8:
        raise CostModelError(f"the decoder's vocabulary must have at least 8 tokens, got {shape.vocab}")
    cache = decoder.new_cache()
    tokens = [1 + i % 7 for i in range(context - 1)]
    decoder.forward_full(tokens, cache)
    prefill, decode = [], []
    for _ in range(rounds):
        start = perf_counter()
        decoder.forward_full([1 + i % 7 for i in range(prompt)], decoder.new_cache())
        prefill.append(perf_counter() - start)
        start = perf_counter()
        decoder.forward_step(1, context - 1, cache)
        decode.append(perf_counter() - start)
        cache.truncate(context - 1)
    return {"prefill": min(prefill), "decode": min(decode)}
