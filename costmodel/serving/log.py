"""What happened on a replica, in whole ticks: every result follows from it."""

from dataclasses import dataclass, field


@dataclass
class Log:
    """What happened on a replica; times in ticks."""

    first: list[int | None]  # when each request's first token was out
    last: list[int | None]  # when its last token was out
    rejected: dict[int, str] = field(default_factory=dict)  # request -> the reason
    steps: int = 0  # passes over the model
    events: int = 0  # times the replica had to think
    busy: int = 0  # ticks in passes
    held: int = 0  # Σ ticks x bytes held, in the costs' unit
    peak: int = 0  # bytes allocated at most
    preempted: int = 0
    hits: int = 0  # blocks of prompts that were reused
    asked: int = 0  # blocks of prompts
