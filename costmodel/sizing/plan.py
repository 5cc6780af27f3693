"""Which deployment should I choose? The cheapest that keeps its promises, the runner-up, and why not the others.

A request reads a prompt and writes an answer: one copy is busy for prefill + generated·step/batch seconds with it. The
load, divided by the share of time that may be busy, says how many copies are needed; copies times devices, what it
costs. The context is taken at its longest, prompt + answer, in time and in memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from costmodel.common.errors import CostModelError
from costmodel.exact import whole
from costmodel.hardware import accelerator
from costmodel.model import Model
from costmodel.parallel import Parallel
from costmodel.sizing.deployment import Deployment
from costmodel.sizing.money import HOUR, MILLION, paid_devices
from costmodel.sizing.words import format_words, spread_words
from costmodel.tables import Table, with_prefix

LARGEST_BATCH = 4096  # where memory sets no limit
ROUNDING = 1e-9  # relative, of the copies needed


@dataclass(frozen=True)
class Slo:
    """What users are promised: seconds per output token, and seconds to the first token (None: no promise)."""

    latency: float | None = None
    ttft: float | None = None


@dataclass(frozen=True)
class Load:
    """What users ask for: requests per second, tokens read and tokens written by each."""

    requests_per_s: float
    prompt: int
    generated: int

    def __post_init__(self) -> None:
        whole(self.prompt, "prompt")
        whole(self.generated, "generated")
        if not self.requests_per_s > 0:
            raise CostModelError(f"requests_per_s must be above 0, got {self.requests_per_s}")

    @property
    def context(self) -> int:
        """prompt + generated, the longest a sequence gets."""
        return self.prompt + self.generated


@dataclass(frozen=True)
class Choice:
    """One way to serve the load: a deployment at a batch, in so many copies.

    Attributes
    ----------
    hardware, deployment, batch : what runs; the copies are in `deployment.parallel.replicas`
    devices : of all copies
    latency, ttft : seconds per output token, to the first token [s]
    dollars_per_hour, dollars_per_million : of everything; of a million output tokens [$]
    """

    hardware: str
    deployment: Deployment
    batch: int
    devices: int
    latency: float
    ttft: float
    dollars_per_hour: float
    dollars_per_million: float

    @property
    def words(self) -> str:
        """The choice in one line."""
        return f"{self.devices} x {self.hardware}, {option_words(self.deployment)}, batch {self.batch}"

    @property
    def order(self) -> tuple[float, float, int]:
        """Cheaper first, then faster, then the smaller batch."""
        return self.dollars_per_hour, self.latency, self.batch


def option_words(d: Deployment) -> str:
    """What a choice fixes beside the accelerator and the copies."""
    return f"{spread_words(replace(d.parallel, replicas=1))}, {format_words(d)}"


@dataclass(frozen=True, repr=False)
class Plan:
    """The cheapest choice, the next best configuration, and the reason against each other one."""

    choices: Sequence[Choice]  # that keep the promises, the best first
    refused: Sequence[tuple[str, str]]

    @property
    def best(self) -> Choice:
        """The cheapest; the fastest of those equally cheap."""
        return self.choices[0]

    @property
    def runner_up(self) -> Choice | None:
        """The next configuration in that order, if there is one."""
        return self.choices[1] if len(self.choices) > 1 else None

    @property
    def rejected(self) -> list[tuple[str, str]]:
        """(choice, reason) for every other configuration."""
        return [
            *(
                (
                    c.words,
                    f"dearer: {_price(c)}"
                    if c.dollars_per_hour > self.best.dollars_per_hour
                    else f"as dear, but slower: {_price(c)}",
                )
                for c in self.choices[2:]
            ),
            *self.refused,
        ]

    def table(self) -> Table:
        """One row for each configuration: what it is, and what speaks for or against it."""
        rows = [[self.best.words, f"the cheapest: {_price(self.best)}"]]
        if self.runner_up:
            rows.append([self.runner_up.words, f"runner-up: {_price(self.runner_up)}"])
        return Table(["choice", "verdict"], [*rows, *self.rejected])

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _price(c: Choice) -> str:
    speed = f"{with_prefix(c.latency, 's', 3)} per token, first after {with_prefix(c.ttft, 's', 3)}"
    return f"${c.dollars_per_hour:.2f} an hour, ${c.dollars_per_million:.3g} per million out; {speed}"


def busy_seconds(d: Deployment, load: Load, batch: int) -> float:
    """prefill + generated·step/batch: how long one request keeps one copy busy [s]."""
    return d.prefill(load.prompt, 1).seconds + load.generated * d.decode(batch, load.context).seconds_per_token / batch


def choice(d: Deployment, hardware: str, batch: int, load: Load, price: float, utilisation: float) -> Choice:
    """The choice at this batch: as many copies as the load needs."""
    needed = load.requests_per_s * busy_seconds(d, load, batch) / utilisation
    copies = max(1, ceil(needed * (1 - ROUNDING)))
    devices = copies * paid_devices(d)
    cost = devices * price
    written = load.requests_per_s * load.generated * HOUR / MILLION
    step, first = d.decode(batch, load.context).seconds_per_token, d.prefill(load.prompt, 1).seconds
    everything = replace(d, parallel=replace(d.parallel, replicas=copies))
    return Choice(hardware, everything, batch, devices, step, first, cost, cost / written)


def sharded(d: Deployment, ways: object) -> Deployment:
    """One copy spread over several devices; a number is the devices that split every matrix."""
    return replace(d, parallel=ways if isinstance(ways, Parallel) else Parallel(tensor=ways))


def plan(
    model: Model, slo: Slo, load: Load, *, prices: Mapping[str, float], shardings: Sequence[object] = (1,),
    weights: Sequence[str | None] = (None,), cache: Sequence[str] = ("bf16",), utilisation: float = 1,
    most_devices: int | None = None, **options: object,
) -> Plan:  # fmt: skip
    """The cheapest (accelerator, count, sharding, bits, batch) that meets the SLO under this load.

    Parameters
    ----------
    model, slo, load : what is served, what is promised, what is asked for
    prices : {accelerator: $ per device and hour}; these are the accelerators considered
    shardings : how one copy is spread: Parallel(tensor=…, …), or a number of devices that split every matrix
    weights, cache : formats to consider
    utilisation : share of the time that copies may be busy; below 1 leaves room for waves
    most_devices : how many can be had
    options : of every Deployment, such as reserve

    Returns
    -------
    Plan; among equally cheap choices the fastest

    Raises
    ------
    CostModelError
        when nothing will do, with the reason against each configuration
    """
    if not 0 < utilisation <= 1:
        raise CostModelError(f"utilisation must be above 0 and at most 1, got {utilisation}")
    found: list[Choice] = []
    rejected: list[tuple[str, str]] = []
    for hardware, price in prices.items():
        for d in _options(model, hardware, shardings, weights, cache, options):
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


def _options(
    model: Model, hardware: str, shardings: Sequence, weights: Sequence, cache: Sequence, options: Mapping
) -> Iterator[Deployment]:
    for sharding in shardings:
        for w in weights:
            for c in cache:
                yield sharded(Deployment(model, accelerator(hardware), weights=w, cache=c, **options), sharding)


def _best_batch(d: Deployment, hardware: str, slo: Slo, load: Load, price: float, utilisation: float) -> Choice | str:
    """The best batch, or why there is none.

    Latency and memory grow with the batch, the work per request shrinks: the largest batch that is allowed needs the
    fewest copies, and the smallest batch that needs as few is the fastest.
    """
    most = d.largest_batch(load.context)
    most = LARGEST_BATCH if most is None else min(most, LARGEST_BATCH)
    if most < 1:
        need = d.memory_bytes(1, load.context)
        return f"does not fit: one sequence needs {with_prefix(need, 'B')} of {with_prefix(d.usable_bytes, 'B')}"
    first = d.prefill(load.prompt, 1).seconds
    if slo.ttft is not None and first > slo.ttft:
        return f"first token after {with_prefix(first, 's', 3)}, {with_prefix(slo.ttft, 's', 3)} promised"
    step = lambda batch: d.decode(batch, load.context).seconds_per_token  # noqa: E731
    if slo.latency is not None:
        if step(1) > slo.latency:
            alone = with_prefix(step(1), "s", 3)
            return f"one sequence alone takes {alone} per token, {with_prefix(slo.latency, 's', 3)} promised"
        most = _last(lambda batch: step(batch) <= slo.latency, most)
    made = lambda batch: choice(d, hardware, batch, load, price, utilisation)  # noqa: E731
    fewest = made(most).devices
    if made(1).devices == fewest:
        return made(1)
    return made(1 + _last(lambda batch: made(batch).devices > fewest, most))


def _last(holds: Callable[[int], bool], most: int) -> int:
    """The largest n up to `most` for which it holds; it holds at 1 and never again once it fails."""
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
