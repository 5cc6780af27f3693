"""What is promised, what is asked for, one way to serve it, and a plan that weighs the ways against each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from costmodel.common.checks import amount, whole
from costmodel.exact import LARGEST, SMALLEST
from costmodel.sizing.deployment import Deployment
from costmodel.sizing.words import format_words, spread_words
from costmodel.tables import Table, with_prefix


@dataclass(frozen=True)
class Slo:
    """What users are promised: seconds per output token, and seconds to the first token.

    Attributes
    ----------
    latency, ttft : the most that an output token, and the first one, may take [s]; None for no promise

    Raises
    ------
    CostModelError
        for a limit that is no number above 0

    Examples
    --------
    >>> Slo(latency=1 / 20)  # twenty tokens a second to each user
    Slo(latency=0.05, ttft=None)
    """

    latency: float | None = None
    ttft: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("latency", self.latency), ("ttft", self.ttft)):
            if value is not None:
                amount(name, value, SMALLEST)


@dataclass(frozen=True)
class Load:
    """What users ask for: requests per second, tokens read and tokens written by each.

    Attributes
    ----------
    requests_per_s : of all users together [request/s]
    prompt, generated : tokens that each request reads, and that its answer has [token]

    Raises
    ------
    CostModelError
        for a rate that is not above 0, or tokens that are no whole number of at least 1

    Examples
    --------
    >>> Load(requests_per_s=2, prompt=1000, generated=200).context
    1200
    """

    requests_per_s: float
    prompt: int
    generated: int

    def __post_init__(self) -> None:
        whole("prompt", self.prompt, 1)
        whole("generated", self.generated, 1)
        amount("requests_per_s", self.requests_per_s, SMALLEST, LARGEST)

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
    devices : number of them, in all copies
    latency, ttft : time per output token, to the first token [s]
    dollars_per_hour, dollars_per_million : cost of everything; of a million output tokens [$]
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
