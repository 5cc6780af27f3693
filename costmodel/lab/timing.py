"""How long a decoder takes here: seconds of a prefill and of a decode step, the fastest of several runs."""

from time import perf_counter

from costmodel.lab.transformer import Decoder


def measured_seconds(decoder: Decoder, *, prompt: int, context: int, rounds: int = 5) -> dict[str, float]:
    """Seconds of one prefill of `prompt` tokens, and of one step whose token sees `context` tokens, itself included.

    Parameters
    ----------
    decoder : any of the lab's decoders
    prompt, context : tokens; the context at least 2
    rounds : runs of each; the fastest counts

    Returns
    -------
    {"prefill": …, "decode": …} [s]
    """
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
