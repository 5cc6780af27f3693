"""The quantities one can ask for by name, each a formula of a deployment in B and S (and P for the prompt)."""

from collections.abc import Callable
from dataclasses import dataclass

from costmodel.common.errors import resolve_name
from costmodel.exact import Number
from costmodel.generation import cached_flops, naive_flops
from costmodel.hardware import SYMBOLIC_ACCELERATOR
from costmodel.layers import Attention, Mlp
from costmodel.model import transformer
from costmodel.ops import Ledger
from costmodel.passes import ForwardPass
from costmodel.sizing import Deployment
from costmodel.symbols import B, M, P, S, b_kv, b_w


@dataclass(frozen=True)
class At:
    """Where a quantity is asked for: batch, context, prompt and generated tokens; letters unless given."""

    batch: Number = B
    context: Number = S
    prompt: Number = P
    generated: Number = M


@dataclass(frozen=True)
class Quantity:
    """A named quantity: what it means, its unit, and its formula for any deployment, numbers or symbols."""

    name: str
    meaning: str
    unit: str
    of: Callable[[Deployment, At], Number]

    def formula(self) -> Number:
        """The formula of a dense transformer, every size a symbol."""
        return self.of(SYMBOLIC_DEPLOYMENT, At())


SYMBOLIC_DEPLOYMENT = Deployment(transformer(), SYMBOLIC_ACCELERATOR, weights=b_w, cache=b_kv)


def _textbook(deployment: Deployment) -> Deployment:
    return Deployment(deployment.model, deployment.accelerator, deployment.weights, deployment.cache, textbook=True)


def _layers(deployment: Deployment, kind: type, forward: ForwardPass) -> Ledger:
    found = [(layer, n) for block, n in deployment.model.blocks for layer in block.layers if isinstance(layer, kind)]
    price = Attention.core if kind is Attention else Mlp.ledger
    rows = [row for layer, n in found for row in price(layer, forward).times(n).rows]
    return Ledger(rows).sized(deployment.widths)


def _decode(deployment: Deployment, at: At) -> Ledger:
    return deployment.model.decode(at.batch, at.context).sized(deployment.widths)


def _one(at: At) -> ForwardPass:
    return ForwardPass(at.batch, 1, at.context)


QUANTITIES: dict[str, Quantity] = {
    q.name: q
    for q in (
        Quantity("params", "stored parameters", "", lambda d, at: d.model.params),
        Quantity("weight-bytes", "memory that the weights take", "byte", lambda d, at: d.weight_bytes),
        Quantity("cache-bytes", "key/value cache of one sequence", "byte", lambda d, at: d.cache_bytes(at.context)),
        Quantity("memory", "weights and the cache of a batch", "byte", lambda d, at: d.memory_bytes(at.batch, at.context)),
        Quantity("mlp-flops", "feed-forward work of one decode step", "FLOP", lambda d, at: _layers(d, Mlp, _one(at)).flops),
        Quantity("attention-flops", "attention work of one decode step", "FLOP", lambda d, at: _layers(d, Attention, _one(at)).flops),
        Quantity("attention-bytes", "attention traffic of one decode step", "byte", lambda d, at: _layers(d, Attention, _one(at)).bytes),
        Quantity("attention-intensity", "FLOPs per byte of attention in a decode step", "FLOP/byte",
                 lambda d, at: _layers(d, Attention, _one(at)).intensity),
        Quantity("decode-flops", "work of one decode step", "FLOP", lambda d, at: _decode(d, at).flops),
        Quantity("decode-bytes", "traffic of one decode step", "byte", lambda d, at: _decode(d, at).bytes),
        Quantity("decode-intensity", "FLOPs per byte of a decode step", "FLOP/byte", lambda d, at: _decode(d, at).intensity),
        Quantity("prefill-flops", "work of prefilling one prompt", "FLOP", lambda d, at: d.model.prefill(1, at.prompt).flops),
        Quantity("naive-flops", "work of a whole answer without a cache", "FLOP",
                 lambda d, at: naive_flops(d.model, at.prompt, at.generated)),
        Quantity("cached-flops", "work of a whole answer with a cache", "FLOP",
                 lambda d, at: cached_flops(d.model, at.prompt, at.generated)),
        Quantity("ridge", "intensity at which compute and memory take equally long", "FLOP/byte", lambda d, at: d.accelerator.ridge()),
        Quantity("ttft", "time to first token: prefill of one prompt", "s", lambda d, at: d.prefill(at.prompt).seconds),
        Quantity("latency", "seconds per output token", "s", lambda d, at: d.decode(at.batch, at.context).seconds_per_token),
        Quantity("throughput", "output tokens per second of the whole batch", "token/s",
                 lambda d, at: d.decode(at.batch, at.context).tokens_per_s),
        Quantity("textbook-latency", "memory-bound latency, embedding counted", "s",
                 lambda d, at: _textbook(d).decode(at.batch, at.context).seconds_per_token),
        Quantity("textbook-throughput", "memory-bound throughput", "token/s",
                 lambda d, at: _textbook(d).decode(at.batch, at.context).tokens_per_s),
        Quantity("textbook-ttft", "compute-bound time to first token, 2·params·tokens/peak", "s",
                 lambda d, at: _textbook(d).prefill(at.prompt).seconds),
    )
}  # fmt: skip


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
    return QUANTITIES[resolve_name("quantity", name, QUANTITIES)]
