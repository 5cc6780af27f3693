"""Why a target cannot be met: the bound that stays however far the unknown is turned."""

from collections.abc import Callable

from sympy import Expr

from costmodel.exact import Number
from costmodel.sizing.deployment import Deployment
from costmodel.sizing.levers import Lever, Metric, Use, opened
from costmodel.tables import with_prefix

FAR = 1e40  # as good as infinite for any quantity in SI units
TIMED = {"latency": "s", "ttft": "s"}


def forbidden(
    deployment: Deployment, use: Use, turned: Lever, wanted: Metric, target: Number, value: Callable[[float], float]
) -> str:
    """The sentence: which value is out of reach, and what takes how much of it whatever is done.

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> Deployment(load("llama-3-8b"), accelerator("h100-sxm")).solve("batch", latency=0.002)
    Traceback (most recent call last):
    costmodel.common.errors.CostModelError: no batch reaches 2 ms: reading the weights alone takes 4.48 ms
    """
    least = 1.0 if turned.whole else 1 / FAR
    sign = 1 if wanted.at_most else -1
    best = min((least, FAR), key=lambda x: sign * value(x))
    if turned.name == "utilisation":
        best = 1.0
    reached = value(best)
    head = f"no {turned.plural} reaches {_shown(float(target), wanted.unit)}: "
    if wanted.name == "memory":
        weights = opened(deployment, use, [turned])[0].weight_bytes
        alone = float(weights.subs(turned.symbol, best) if isinstance(weights, Expr) else weights)
        what = "the weights alone take" if alone > float(target) else "weights and caches take at least"
        return head + f"{what} {_shown(alone if alone > float(target) else reached, 'byte')}"
    if wanted.name not in TIMED:
        return head + f"the {'least' if wanted.at_most else 'most'} is {_shown(reached, wanted.unit)}"
    return head + _what_binds(deployment, use, turned, wanted, float(target), best)


def _what_binds(d: Deployment, use: Use, turned: Lever, wanted: Metric, target: float, best: float) -> str:
    device, used = opened(d, use, [turned])
    step = (
        device.prefill(used.prompt_tokens) if wanted.name == "ttft" else device.decode(used.batch, used.context).timing
    )
    at = lambda x: float(x.subs(turned.symbol, best)) if isinstance(x, Expr) else float(x)  # noqa: E731
    alone = {
        "reading the weights": at(_weights_read(device, used, wanted) / device.accelerator.bandwidth),
        "the arithmetic": at(step.compute_seconds),
        "sending between the devices": at(step.communication_seconds),
    }
    longest = max(alone, key=lambda what: alone[what])
    if alone[longest] > target:
        return f"{longest} alone takes {_shown(alone[longest], 's')}"
    sent = " and sending between the devices" if alone["sending between the devices"] else ""
    return f"reading weights and caches{sent} takes {_shown(at(step.seconds), 's')}"


def _weights_read(d: Deployment, use: Use, wanted: Metric) -> Number:
    """Bytes of weights that one device reads in the pass."""
    if d.textbook:
        return d.weight_bytes
    ledger = d.part.prefill(1, use.prompt_tokens) if wanted.name == "ttft" else d.decode_ledger(use.batch, use.context)
    return ledger.elements("weight") * d.widths.weight


def _shown(value: float, unit: str) -> str:
    if unit == "$":
        return f"${value:.4g}"
    return with_prefix(value, "B" if unit == "byte" else unit, 3)
