"""Which deployment should I choose? The cheapest that keeps its promises, the runner-up, and why not the others.

A request reads a prompt and writes an answer: one copy is busy for prefill + generated·step/batch seconds with it, the
prefill shared by as many prompts as its groups and stages read at once. The load, divided by the share of time that may
be busy, says how many copies are needed; copies times devices, what it costs. The context is taken at its longest,
prompt + answer, in time and in memory.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from costmodel.common.checks import amount, whole
from costmodel.common.errors import CostModelError, unknown_name
from costmodel.exact import LARGEST, is_open
from costmodel.hardware import accelerator
from costmodel.model import Model, element_bytes
from costmodel.parallel import Parallel
from costmodel.sizing.choice import Choice, Load, Plan, Slo, option_words
from costmodel.sizing.deployment import Deployment
from costmodel.sizing.money import HOUR, MILLION, checked_utilisation, paid_devices, reading
from costmodel.sizing.words import as_spread, several
from costmodel.tables import with_prefix

LARGEST_BATCH = 4096  # where memory sets no limit
ROUNDING = 1e-9  # relative, of the copies needed
OPTIONS = ("activations", "reserve", "compute", "textbook", "calibrated")  # of a Deployment, beside what a plan decides


def busy_seconds(d: Deployment, load: Load, batch: int) -> float:
    """prefill/(data·pipeline) + generated·step/batch: how long one request keeps one copy busy [s]."""
    seconds, prompts = reading(d, load.prompt)
    return seconds / prompts + load.generated * d.decode(batch, load.context).seconds_per_token / batch


def choice(d: Deployment, hardware: str, batch: int, load: Load, price: float, utilisation: float) -> Choice:
    """The choice at this batch: as many copies as the load needs."""
    needed = load.requests_per_s * busy_seconds(d, load, batch) / utilisation
    copies = max(1, ceil(needed * (1 - ROUNDING)))
    devices = copies * paid_devices(d)
    cost = devices * price
    written = load.requests_per_s * load.generated * HOUR / MILLION
    step, first = d.decode(batch, load.context).seconds_per_token, d.prefill(load.prompt).seconds
    everything = replace(d, parallel=replace(d.parallel, replicas=copies))
    return Choice(hardware, everything, batch, devices, step, first, cost, cost / written)


def plan(
    model: Model, slo: Slo, load: Load, *, prices: Mapping[str, float], shardings: Sequence[Any] = (1,),
    weights: Sequence[str | None] = (None,), cache: Sequence[str] = ("bf16",), utilisation: float = 1,
    most_devices: int | None = None, **options: Any,
) -> Plan:  # fmt: skip
    """The cheapest (accelerator, count, sharding, bits, batch) that meets the SLO under this load.

    Parameters
    ----------
    model, slo, load : what is served, what is promised, what is asked for
    prices : {accelerator: price of a device for an hour [$]}; these are the accelerators considered
    shardings : how one copy is spread: Parallel(tensor=…, …), or a number of devices that split every matrix
    weights, cache : formats to consider; None for weights as they are stored
    utilisation : share of the time that copies may be busy; below 1 leaves room for waves
    most_devices : number of devices that can be had; None for any
    options : of every Deployment: activations, reserve, compute, textbook or calibrated

    Returns
    -------
    Plan; among equally cheap choices the fastest

    Raises
    ------
    UnknownNameError
        for an option, an accelerator or a format that is not known
    CostModelError
        when nothing will do, with the reason against each configuration; for a price or a utilisation out of range, or
        choices that are no sequence

    Examples
    --------
    >>> from costmodel import load
    >>> asked = Load(requests_per_s=1, prompt=1000, generated=200)
    >>> found = plan(load("llama-3-8b"), Slo(latency=0.05), asked, prices={"h100-sxm": 3.0, "l40s": 1.0})
    >>> found.best.hardware, found.best.devices, found.runner_up.hardware
    ('l40s', 1, 'h100-sxm')
    """
    _check(slo, load, prices, options)
    spreads = [as_spread(ways) for ways in several("shardings", shardings)]
    formats = several("weights", weights), several("cache", cache)
    for width in (width for tried in formats for width in tried if width is not None):
        element_bytes(width)
    amount("utilisation", checked_utilisation(utilisation), 0, 1)
    if most_devices is not None:
        whole("most_devices", most_devices, 1)
    found: list[Choice] = []
    rejected: list[tuple[str, str]] = []
    for hardware, price in prices.items():
        for d in _options(model, hardware, spreads, *formats, options):
            try:
                answer = _best_batch(d, hardware, slo, load, price, utilisation)
            except CostModelError as refused:  # this model cannot be split so, or the figures for it are not on record
                answer = str(refused)
            if isinstance(answer, Choice) and most_devices is not None and answer.devices > most_devices:
                answer = f"needs {answer.devices} devices, {most_devices} can be had"
            if isinstance(answer, Choice):
                found.append(answer)
            else:
                rejected.append((f"{hardware}, {option_words(d)}", answer))
    if not found:
        reasons = "; ".join(f"{what}: {why}" for what, why in rejected) or "no accelerator was given a price"
        raise CostModelError(f"nothing meets the SLO: {reasons}")
    found.sort(key=lambda c: c.order)
    return Plan(found, rejected)


def _check(slo: Slo, load: Load, prices: Mapping[str, float], options: Iterable[str]) -> None:
    for name, value, kind, words in (
        ("slo", slo, Slo, "a costmodel.Slo, such as Slo(latency=0.05)"),
        ("load", load, Load, "a Load, such as Load(requests_per_s=1, prompt=1000, generated=200)"),
        ("prices", prices, Mapping, "{accelerator: $ per device and hour}"),
    ):
        if not isinstance(value, kind):
            raise CostModelError(f"{name} must be {words}, got {value!r}")
    for name in options:
        if name not in OPTIONS:
            raise unknown_name("option", name, OPTIONS)
    for hardware, price in prices.items():
        accelerator(hardware)  # of a known name
        amount(f"the price of {hardware}", price, 0, LARGEST)


def _options(
    model: Model,
    hardware: str,
    shardings: Sequence[Parallel],
    weights: Sequence[str | None],
    cache: Sequence[str],
    options: Mapping[str, Any],
) -> Iterator[Deployment]:
    for spread in shardings:
        for w in weights:
            for c in cache:
                yield Deployment(model, accelerator(hardware), weights=w, cache=c, parallel=spread, **options)


def _best_batch(d: Deployment, hardware: str, slo: Slo, load: Load, price: float, utilisation: float) -> Choice | str:
    """The best batch, or why there is none.

    Latency and memory never shrink as the batch grows. A batch is shared by `ways` groups or stages, and the fullest
    sets the pace, so that within a block of `ways` batches a step takes equally long and the fullest is the best use of
    it; from block to block the work per request shrinks. So the last two blocks need the fewest copies, and the first
    block that needs as few is the fastest.
    """
    if is_open(d.memory_bytes(1, load.context) - d.usable_bytes):
        raise CostModelError("a plan needs numbers throughout, and what memory holds is a formula here")
    most = d.largest_batch(load.context)
    most = LARGEST_BATCH if most is None else min(most, LARGEST_BATCH)
    if most < 1:
        need = d.memory_bytes(1, load.context)
        return f"does not fit: one sequence needs {with_prefix(need, 'B')} of {with_prefix(d.usable_bytes, 'B')}"
    first = d.prefill(load.prompt).seconds
    if slo.ttft is not None and first > slo.ttft:
        return f"first token after {with_prefix(first, 's', 3)}, {with_prefix(slo.ttft, 's', 3)} promised"
    step = lambda batch: d.decode(batch, load.context).seconds_per_token  # noqa: E731
    if slo.latency is not None:
        if step(1) > slo.latency:
            alone = with_prefix(step(1), "s", 3)
            return f"one sequence alone takes {alone} per token, {with_prefix(slo.latency, 's', 3)} promised"
        most = _last(lambda batch: step(batch) <= slo.latency, most)
    made = lambda batch: choice(d, hardware, batch, load, price, utilisation)  # noqa: E731
    ways = d.parallel.data * d.parallel.pipeline
    blocks = ceil(most / ways)
    full = lambda block: made(min(block * ways, most)).devices  # noqa: E731
    fewest = min(full(blocks), full(max(1, blocks - 1)))
    block = 1 if full(1) <= fewest else 1 + _last(lambda n: full(n) > fewest, blocks)
    batches = range((block - 1) * ways + 1, min(block * ways, most) + 1)
    return next(one for one in map(made, batches) if one.devices <= fewest)


def _last(holds: Callable[[int], bool], most: int) -> int:
    """The largest n up to `most` for which it holds; it holds at 1 and never again once it fails."""
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
