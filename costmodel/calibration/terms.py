"""A pass as a sum of terms, each a time at full speed times a few fitted constants.

seconds = √(weights² + compute²) + cache + launches + step + sequences + all-reduce + link, and, where prompts of
newcomers are prefilled between steps, their share. Every term is seconds-at-unit-constants x a product of constants, so
a fit, a formula in symbols and a single number all come from the same terms.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log2, prod

from costmodel.calibration.setting import Setting, device_class
from costmodel.exact import Number, ratio
from costmodel.model import Model
from costmodel.ops import Ledger

OVERLAPPED = ("weights", "compute")  # terms that run at the same time
UNKNOWN_LINK = {True: 300e9, False: 32e9}  # byte/s where no link is on record: fast or slow by the kind of device


@dataclass(frozen=True)
class Term:
    """Part of a pass: its seconds if every constant were 1, and the power of each constant that multiplies them.

    Attributes
    ----------
    name : what the time is spent on
    base : with every constant at 1 [s]; where a constant itself is a time, how often it is spent
    powers : exponent of each constant, by its name: −1 divides by an efficiency, 1 multiplies by a time; efficiencies
        whose product is above 1 count as 1

    Examples
    --------
    >>> Term("cache", 2.0, {"bandwidth.cache": -1}).seconds({"bandwidth.cache": 0.8})
    2.5
    >>> Term("compute", 2.0, {"compute.16": -1, "compute.vllm": -1}).seconds({"compute.16": 0.8, "compute.vllm": 1.5})
    2.0
    """

    name: str
    base: Number
    powers: Mapping[str, float]

    def seconds(self, constants: Mapping[str, float]) -> Number:
        """base·Π constant^power [s], no rate above the recorded one; a constant that is not on record counts as 1."""
        factors = [(power < 0, constants.get(name, 1.0) ** power) for name, power in self.powers.items()]
        slower = prod(factor for divides, factor in factors if divides)  # 1/Π efficiencies
        return self.base * max(1, slower) * prod(factor for divides, factor in factors if not divides)


def _width(model: Model, layers: Number) -> Number:
    known = (block.width for block, _ in model.blocks)
    return next((width for width in known if width is not None), (model.params / (12 * layers)) ** 0.5)


def _moved(model: Model, tokens: Number, setting: Setting, powers: Mapping[str, float]) -> list[Term]:
    """Two ring all-reduces of the residual stream per layer, 16 bit: 2·(n − 1)/n·tokens·D·2 bytes each."""
    layers, n = sum(count for _, count in model.blocks), setting.shards
    if n == 1:
        return []
    moved = 2 * layers * 2 * ratio(n - 1, n) * tokens * _width(model, layers) * 2
    return [
        Term("link", moved / (setting.accelerator.interconnect or UNKNOWN_LINK[setting.fast]), {"link": -1, **powers})
    ]


def _computed(flops: Number, setting: Setting, powers: Mapping[str, float]) -> list[Term]:
    if setting.peak is None:
        return []
    rate = setting.peak * setting.shards / setting.accelerator.devices
    at = {f"compute.{setting.precision}": -1, f"compute.{setting.engine.family}": -1}
    return [Term("compute", flops / rate, {**at, **powers})]


def pass_terms(model: Model, ledger: Ledger, setting: Setting, *, sequences: Number, tokens: Number) -> list[Term]:
    """The terms of a pass: weights, compute, cache, launches, step, sequences; on several devices all-reduce and link.

    Parameters
    ----------
    model, ledger : what runs, and its pass
    setting : where and how
    sequences : B [sequence]
    tokens : B·T [token]

    Returns
    -------
    list of Term; compute is left out where the device has no peak on record

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> from costmodel.calibration.engine import Engine
    >>> model, here = load("8b"), Setting(accelerator("h100-sxm"), 16, 16, Engine())
    >>> terms = pass_terms(model, model.decode(1, 1000), here, sequences=1, tokens=1)
    >>> terms[0].name, f"{1e3 * terms[0].base:.3f} ms"  # 16 GB over 3.35 TB/s
    ('weights', '4.776 ms')
    """
    device, family, n = setting.accelerator, setting.engine.family, setting.shards
    bandwidth = device.bandwidth * n / device.devices
    layers = sum(count for _, count in model.blocks)
    head = sum(r.op.reads[1].elements for r in ledger.rows if r.name == "unembedding")  # kept in 16 bits
    weights = (ledger.elements("weight") - head) * setting.stored_bits / 8 + head * max(setting.stored_bits, 16) / 8
    streamed = {f"bandwidth.{setting.precision}": -1, f"bandwidth.{device_class(device)}": -1}
    if setting.precision in ("4", "fp4"):
        streamed[f"narrow.{family}"] = -1
    cache = ledger.elements("cache") * setting.cache_bits / 8
    terms = [
        Term("weights", weights / bandwidth, streamed),
        *_computed(ledger.flops, setting, {}),
        Term("cache", cache / bandwidth, {"bandwidth.cache": -1, f"bandwidth.{device_class(device)}": -1}),
        Term("launches", layers, {f"layer.{setting.engine.launch}": 1, f"overhead.{family}": 1}),
        Term("step", 1, {"step": 1, f"overhead.{family}": 1}),
        Term("sequences", sequences, {"sequence": 1}),
    ]
    if n > 1:
        speed = "fast" if setting.fast else "slow"
        waits = {f"all_reduce.{speed}": 1, "all_reduce.growth": log2(n / 2), f"communication.{family}": 1}
        terms.append(Term("all-reduce", 2 * layers, waits))
    return [*terms, *_moved(model, tokens, setting, {})]


def interruption_terms(
    model: Model, prefill: Ledger, setting: Setting, *, batch: Number, prompt: Number, generated: Number
) -> list[Term]:
    """What the prompts of newcomers add to a step: each of the other B − 1 is replaced once in M steps.

    (B − 1)/M x the compute and the traffic between devices of one prefill.

    Parameters
    ----------
    model, prefill : what runs, and the pass over one prompt
    setting : where and how
    batch : B [sequence]
    prompt, generated : P, M, of each request [token]

    Returns
    -------
    list of Term, to be added to those of a decode step

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> from costmodel.calibration.engine import Engine
    >>> model, here = load("8b"), Setting(accelerator("h100-sxm"), 16, 16, Engine())
    >>> prefill = model.prefill(1, 1000)
    >>> (compute,) = interruption_terms(model, prefill, here, batch=9, prompt=1000, generated=100)
    >>> compute.name, f"{compute.base / (prefill.flops / here.peak):.2f}"  # 8 newcomers in 100 steps
    ("newcomers' compute", '0.08')
    """
    often, power = ratio(batch - 1, generated), {"interruption": 1}
    parts = [*_computed(prefill.flops, setting, power), *_moved(model, prompt, setting, power)]
    return [Term(f"newcomers' {term.name}", often * term.base, term.powers) for term in parts]


def total_seconds(terms: Iterable[Term], constants: Mapping[str, float]) -> Number:
    """√(weights² + compute²) + all the rest [s]: streaming and arithmetic overlap, though not perfectly.

    Parameters
    ----------
    terms : of one pass
    constants : by name; one that is not given counts as 1

    Returns
    -------
    the time of the pass [s]

    Examples
    --------
    >>> terms = [Term("weights", 3, {}), Term("compute", 4, {}), Term("step", 1, {"step": 1})]
    >>> total_seconds(terms, {"step": 0.5})  # 5 + 0.5
    5.5
    """
    found = [(term.name, term.seconds(constants)) for term in terms]
    squares = sum(value**2 for name, value in found if name in OVERLAPPED)
    return squares**0.5 + sum(value for name, value in found if name not in OVERLAPPED)
