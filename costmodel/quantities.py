"""The quantities one can ask for by name, each a formula of a deployment in B and S (and P for the prompt)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from costmodel.common.errors import CostModelError, resolve_name
from costmodel.exact import Number, is_plain, largest, whole_times
from costmodel.generation import cached_flops, naive_flops
from costmodel.hardware import SYMBOLIC_ACCELERATOR
from costmodel.layers import Attention, LatentAttention, Mlp, Moe
from costmodel.model import transformer
from costmodel.ops import Ledger
from costmodel.passes import ForwardPass
from costmodel.sizing import Deployment
from costmodel.symbols import B, M, P, S, b_a, b_kv, b_w


@dataclass(frozen=True)
class At:
    """Where a quantity is asked for: batch, context, prompt and generated tokens; letters unless given."""

    batch: Number = B
    context: Number = S
    prompt: Number = P
    generated: Number = M


Formula = Callable[[Deployment, At], Number]


@dataclass(frozen=True)
class Quantity:
    """A named quantity: what it means, its unit, and its formula for any deployment, numbers or symbols."""

    name: str
    meaning: str
    unit: str
    of: Formula

    def formula(self) -> Number:
        """The formula of a dense transformer, every size a symbol."""
        return self.of(SYMBOLIC_DEPLOYMENT, At())


SYMBOLIC_DEPLOYMENT = Deployment(transformer(), SYMBOLIC_ACCELERATOR, weights=b_w, cache=b_kv, activations=b_a)
QUANTITIES: dict[str, Quantity] = {}
# The keys under which `costmodel size` and `inspect` answer, and other usual names.
ALSO = {
    "seconds-per-token": "latency", "tokens-per-s": "throughput", "ttft-s": "ttft", "memory-bytes": "memory",
    "cache-bytes-per-sequence": "cache-bytes", "kv-cache-bytes": "cache-bytes", "intensity": "decode-intensity",
    "kv-cache-bytes-per-token": "cache-bytes-per-token", "ridge-point": "ridge", "parameters": "params",
}  # fmt: skip


def _quantity(meaning: str, unit: str) -> Callable[[Formula], Formula]:
    def register(of: Formula) -> Formula:
        name = of.__name__.strip("_").replace("_", "-")
        QUANTITIES[name] = Quantity(name, meaning, unit, of)
        return of

    return register


def quantity(name: str) -> Quantity:
    """Look up a quantity by name.

    Raises
    ------
    UnknownNameError
        suggesting the near ones

    Examples
    --------
    >>> quantity("cache-bytes").formula()
    2*H*K*L*S*b_kv
    >>> quantity("ridge").formula()
    peak/memory_bandwidth
    """
    slug = resolve_name("quantity", name, [*QUANTITIES, *ALSO])
    return QUANTITIES[ALSO.get(slug, slug)]


def _rows(d: Deployment, what: str, kinds: tuple[type, ...], price: Callable[[Any], Ledger]) -> Ledger:
    """The rows of some kinds of layer in a pass."""
    found = [(layer, n) for block, n in d.model.blocks for layer in block.layers if isinstance(layer, kinds)]
    if not found:
        raise CostModelError(f"{d.model.name} has no {what} layers of known sizes")
    return Ledger(row for layer, n in found for row in price(layer).times(n).rows).sized(d.widths)


def _attention(d: Deployment, at: At) -> Ledger:
    """Without its projections."""
    return _rows(d, "attention", (Attention, LatentAttention), lambda layer: layer.core(_one_token(at)))


def _mlp(d: Deployment, at: At) -> Ledger:
    """Routers and shared experts included."""
    return _rows(d, "feed-forward", (Mlp, Moe), lambda layer: layer.ledger(_one_token(at)))


def _decode_ledger(d: Deployment, at: At) -> Ledger:
    return d.model.decode(at.batch, at.context).sized(d.widths)


def _one_token(at: At) -> ForwardPass:
    return ForwardPass(at.batch, 1, at.context)


def _textbook(d: Deployment) -> Deployment:
    return replace(d, textbook=True)


@_quantity("stored parameters", "")
def _params(d: Deployment, _: At) -> Number:
    return d.model.params


@_quantity("memory that the weights take", "byte")
def _weight_bytes(d: Deployment, _: At) -> Number:
    return d.weight_bytes


@_quantity("key/value cache of one sequence", "byte")
def _cache_bytes(d: Deployment, at: At) -> Number:
    return d.cache_bytes(at.context)


@_quantity("what each further token adds to the cache, without windows", "byte")
def _cache_bytes_per_token(d: Deployment, _: At) -> Number:
    return d.cache_bytes(2) - d.cache_bytes(1)


@_quantity("sequences that fit beside the weights", "")
def _largest_batch(d: Deployment, at: At) -> Number:
    if is_plain(at.context, d.weight_bytes):
        return d.largest_batch(at.context)
    return largest(0, whole_times(d.usable_bytes - d.weight_bytes, d.cache_bytes(at.context)) * d.parallel.data)


@_quantity("weights and the caches of a batch", "byte")
def _memory(d: Deployment, at: At) -> Number:
    return d.memory_bytes(at.batch, at.context)


@_quantity("feed-forward work of one decode step", "FLOP")
def _mlp_flops(d: Deployment, at: At) -> Number:
    return _mlp(d, at).flops


@_quantity("feed-forward traffic of one decode step", "byte")
def _mlp_bytes(d: Deployment, at: At) -> Number:
    return _mlp(d, at).bytes


@_quantity("FLOPs per byte of the feed-forward layers in a decode step", "FLOP/byte")
def _mlp_intensity(d: Deployment, at: At) -> Number:
    return _mlp(d, at).intensity


@_quantity("attention work of one decode step, projections apart", "FLOP")
def _attention_flops(d: Deployment, at: At) -> Number:
    return _attention(d, at).flops


@_quantity("attention traffic of one decode step, projections apart", "byte")
def _attention_bytes(d: Deployment, at: At) -> Number:
    return _attention(d, at).bytes


@_quantity("FLOPs per byte of attention in a decode step", "FLOP/byte")
def _attention_intensity(d: Deployment, at: At) -> Number:
    return _attention(d, at).intensity


@_quantity("work of one decode step", "FLOP")
def _decode_flops(d: Deployment, at: At) -> Number:
    return _decode_ledger(d, at).flops


@_quantity("traffic of one decode step", "byte")
def _decode_bytes(d: Deployment, at: At) -> Number:
    return _decode_ledger(d, at).bytes


@_quantity("FLOPs per byte of a decode step", "FLOP/byte")
def _decode_intensity(d: Deployment, at: At) -> Number:
    return _decode_ledger(d, at).intensity


@_quantity("work of prefilling one prompt", "FLOP")
def _prefill_flops(d: Deployment, at: At) -> Number:
    return d.model.prefill(1, at.prompt).flops


@_quantity("work of a whole answer without a cache", "FLOP")
def _naive_flops(d: Deployment, at: At) -> Number:
    return naive_flops(d.model, at.prompt, at.generated)


@_quantity("work of a whole answer with a cache", "FLOP")
def _cached_flops(d: Deployment, at: At) -> Number:
    return cached_flops(d.model, at.prompt, at.generated)


@_quantity("intensity at which compute and memory take equally long", "FLOP/byte")
def _ridge(d: Deployment, _: At) -> Number:
    return d.accelerator.ridge(d.compute)


@_quantity("time to first token: the prefill of one prompt", "s")
def _ttft(d: Deployment, at: At) -> Number:
    return d.prefill(at.prompt).seconds


@_quantity("seconds per output token", "s")
def _latency(d: Deployment, at: At) -> Number:
    return d.decode(at.batch, at.context).seconds_per_token


@_quantity("output tokens per second of the whole batch", "token/s")
def _throughput(d: Deployment, at: At) -> Number:
    return d.decode(at.batch, at.context).tokens_per_s


@_quantity("time to first token if only arithmetic counts", "s")
def _textbook_ttft(d: Deployment, at: At) -> Number:
    return _textbook(d).prefill(at.prompt).seconds


@_quantity("seconds per output token if only memory counts, embedding included", "s")
def _textbook_latency(d: Deployment, at: At) -> Number:
    return _textbook(d).decode(at.batch, at.context).seconds_per_token


@_quantity("output tokens per second if only memory counts", "token/s")
def _textbook_throughput(d: Deployment, at: At) -> Number:
    return _textbook(d).decode(at.batch, at.context).tokens_per_s
