"""What can be turned, and what it moves: levers open a deployment to a symbol, metrics are formulas in those."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace

from sympy import Expr, Symbol, sympify

from costmodel.common.errors import CostModelError, unknown_name
from costmodel.exact import Number, amount, exact, whole
from costmodel.sizing.deployment import Deployment
from costmodel.sizing.heads import kv_heads, with_kv_heads
from costmodel.sizing.money import HOUR, checked_utilisation, input_dollars, joules_per_token, output_dollars
from costmodel.symbols import (
    B,
    K,
    P,
    S,
    b_a,
    b_kv,
    b_w,
    interconnect,
    memory_bandwidth,
    peak,
    price,
    replicas,
    utilisation,
)


@dataclass(frozen=True)
class Use:
    """How a deployment is used: batch B, context S, prompt, price [$ per hour of a device], utilisation."""

    batch: Number = 1
    context: Number = 1024
    prompt: Number | None = None
    price: Number | None = None
    utilisation: Number = 1

    def __post_init__(self) -> None:
        whole(self.batch, "batch")
        whole(self.context, "context")
        whole(self.prompt_tokens, "prompt")
        amount(0 if self.price is None else self.price, "price", at_least=0)
        checked_utilisation(self.utilisation)

    @property
    def prompt_tokens(self) -> Number:
        """Tokens of the prompt: the context unless stated."""
        return self.context if self.prompt is None else self.prompt

    @property
    def dollars_per_hour(self) -> Number:
        """The price, which nobody but the reader knows.

        Raises
        ------
        CostModelError
            when none was given
        """
        if self.price is None:
            raise CostModelError("dollars need a price of one device for one hour [$]; no prices are on record")
        return self.price


USES = tuple(field.name for field in fields(Use))


def used(**where: Number) -> Use:
    """A Use of these conditions, each of a known name."""
    for name in where:
        if name not in USES:
            raise unknown_name("condition", name, USES)
    return Use(**where)


@dataclass(frozen=True)
class Lever:
    """A quantity that can be turned: its symbol, how it is set, and what it is now."""

    name: str
    symbol: Symbol
    plural: str
    unit: str
    into: Callable[[Deployment, Use], tuple[Deployment, Use]]  # with the symbol in place of the number
    now: Callable[[Deployment, Use], Number]  # in the symbol's own unit
    scale: int = 1  # of the reader's unit, in the symbol's: 8 bits a byte
    whole: bool = False


@dataclass(frozen=True)
class Metric:
    """A quantity that is wanted small ("at most") or large ("at least")."""

    name: str
    meaning: str
    unit: str
    formula: Callable[[Deployment, Use], Number]
    at_most: bool = True


def _used(name: str, symbol: Symbol, plural: str, unit: str = "", *, whole: bool = False) -> Lever:
    now = lambda _, use: use.prompt_tokens if name == "prompt" else getattr(use, name)  # noqa: E731
    return Lever(name, symbol, plural, unit, lambda d, use: (d, replace(use, **{name: symbol})), now, whole=whole)


def _stored(name: str, field: str, width: str, symbol: Symbol) -> Lever:
    def now(d: Deployment, _: Use) -> Number:
        if d.calibrated:
            raise CostModelError(f"{name} cannot be turned in a calibrated forecast: its constants belong to formats")
        return getattr(d.widths, width)

    return Lever(
        name, symbol, name.replace("_", " "), "bit", lambda d, use: (replace(d, **{field: symbol}), use), now, 8
    )


def _with_accelerator(d: Deployment, **figures: Number) -> Deployment:
    return replace(d, accelerator=replace(d.accelerator, **figures))


def _peaked(d: Deployment, use: Use) -> tuple[Deployment, Use]:
    either = (d.arithmetic, d.accelerator.peak_dtype(d.compute))  # a forecast's, and that of the bound beside it
    return _with_accelerator(d, peaks=dict.fromkeys(either, peak), fp16_accumulate=None), use


def _connected(d: Deployment, _: Use) -> Number | None:
    if d.parallel.shards and d.calibrated:
        raise CostModelError("interconnect cannot be turned in a calibrated forecast: its constants belong to kinds")
    return d.accelerator.interconnect if d.parallel.shards else None


def _copied(d: Deployment, use: Use) -> tuple[Deployment, Use]:
    return replace(d, parallel=replace(d.parallel, replicas=replicas)), use


LEVERS: dict[str, Lever] = {
    lever.name: lever
    for lever in (
        _used("batch", B, "batch", "sequences", whole=True),
        _used("context", S, "context", "tokens", whole=True),
        _used("prompt", P, "prompt", "tokens", whole=True),
        Lever("bandwidth", memory_bandwidth, "bandwidth", "byte/s",
              lambda d, use: (_with_accelerator(d, bandwidth=memory_bandwidth), use),
              lambda d, _: d.accelerator.bandwidth),
        Lever("peak", peak, "peak", "FLOP/s", _peaked, lambda d, _: d.peak),
        _stored("weight_bits", "weights", "weight", b_w),
        _stored("cache_bits", "cache", "cache", b_kv),
        _stored("activation_bits", "activations", "activation", b_a),
        Lever("kv_heads", K, "number of KV heads", "heads",
              lambda d, use: (replace(d, model=with_kv_heads(d.model, K)), use),
              lambda d, _: kv_heads(d.model), whole=True),
        Lever("interconnect", interconnect, "interconnect", "byte/s",
              lambda d, use: (_with_accelerator(d, interconnect=interconnect), use), _connected),
        Lever("replicas", replicas, "number of replicas", "", _copied, lambda d, _: d.parallel.replicas, whole=True),
        Lever("price", price, "price", "$/hour", lambda d, use: (d, replace(use, price=HOUR * price)),
              lambda _, use: None if use.price is None else exact(use.price) / HOUR, HOUR),
        _used("utilisation", utilisation, "utilisation"),
    )
}  # fmt: skip
ALIASES = {"bits": "weight_bits"}


def _dollars_out(d: Deployment, use: Use) -> Number:
    return output_dollars(d, use.batch, use.context, use.dollars_per_hour, use.utilisation)


def _dollars_in(d: Deployment, use: Use) -> Number:
    return input_dollars(d, use.prompt_tokens, use.dollars_per_hour, use.utilisation)


def _joules(d: Deployment, use: Use) -> Number:
    return joules_per_token(d, batch=use.batch, context=use.context, utilisation=use.utilisation)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("latency", "seconds per output token", "s", lambda d, u: d.decode(u.batch, u.context).seconds_per_token),
        Metric("ttft", "time to first token", "s", lambda d, u: d.prefill(u.prompt_tokens).seconds),
        Metric("throughput", "output tokens per second", "token/s",
               lambda d, u: d.decode(u.batch, u.context).tokens_per_s, at_most=False),
        Metric("memory", "weights and caches", "byte", lambda d, u: d.memory_bytes(u.batch, u.context)),
        Metric("dollars_per_million", "cost of a million output tokens", "$", _dollars_out),
        Metric("dollars_per_million_input", "cost of a million input tokens", "$", _dollars_in),
        Metric("joules_per_token", "energy of an output token at rated power, an upper estimate", "J", _joules),
    )
}  # fmt: skip


def lever(name: str) -> Lever:
    """A lever by its name; `bits` are those of a weight."""
    name = ALIASES.get(name, name)
    if name not in LEVERS:
        raise unknown_name("lever", name, LEVERS)
    return LEVERS[name]


def metric(name: str) -> Metric:
    """A metric by its name."""
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    return METRICS[name]


def turnable(deployment: Deployment, use: Use) -> list[Lever]:
    """Those levers that this deployment has."""
    found = []
    for one in LEVERS.values():
        try:
            if one.now(deployment, use) is not None:
                found.append(one)
        except CostModelError:  # no key/value heads, or several kinds of them; constants of a forecast
            continue
    return found


def opened(deployment: Deployment, use: Use, levers: Collection[Lever]) -> tuple[Deployment, Use]:
    """The deployment and its use with symbols in place of what the levers turn."""
    for one in levers:
        deployment, use = one.into(deployment, use)
    return deployment, use


def formula(name: str, deployment: Deployment, use: Use, levers: Collection[Lever]) -> Expr:
    """A metric as a formula in the levers' symbols, everything else bound; made once for a deployment."""
    key = (name, use, tuple(one.name for one in levers))
    made = deployment.asked
    if key not in made:
        made[key] = sympify(metric(name).formula(*opened(deployment, use, levers)))
    return made[key]
