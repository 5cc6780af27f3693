"""How a replica decides what its next pass holds, and what its users were promised."""

from dataclasses import dataclass

from costmodel.common.errors import CostModelError, unknown_name
from costmodel.exact import whole

POLICIES = ("static", "continuous", "chunked", "disaggregated")
PREEMPTIONS = (None, "recompute", "swap")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How a replica batches its requests.

    static: a batch is prefilled together and its slots are held until the longest answer is done. continuous: whoever
    waits is prefilled in a pass of its own as soon as there is room, and joins (Orca; prefill first, as in vLLM).
    chunked: prompts are cut into pieces that ride along with the decoding sequences (Sarathi-Serve). disaggregated:
    prompts on one accelerator, answers on another (DistServe, Splitwise).

    Attributes
    ----------
    kind : one of the four
    slots : sequences at once, at most [sequence]
    prefill_tokens : prompt tokens in one pass of prefill, at most, beyond the first prompt [token]
    chunk : tokens of one pass when prompts are cut, the decoding sequences' included [token]
    preemption : None reserves room for the whole answer before it begins. Otherwise sequences begin as soon as their
        prompt and one more token of everyone fit; when memory runs out the last in line gives way, its cache thrown
        away ("recompute") or moved out over the link and back ("swap")
    block : tokens of a block of cache [token]; memory is given out in whole blocks
    link : what moves caches off the device and between devices [byte/s]; PCIe 5.0 x16 unless given
    prefix_blocks : where a trace knows its blocks, how many of past prompts are kept for reuse, at most; they lie
        outside the cache budget and reading them back is taken as free. 0 keeps none, None forgets none

    Raises
    ------
    UnknownNameError
        for another kind
    CostModelError
        for another preemption, static batching with any, a count that is not whole and above 0, or a link that is not

    Examples
    --------
    >>> Policy(kind="chunked", chunk=256).slots
    256

    References
    ----------
    Yu et al., Orca, OSDI 2022; Kwon et al., PagedAttention, 2309.06180, section 4; Agrawal et al., Sarathi-Serve,
    2403.02310; Zhong et al., DistServe, 2401.09670; Patel et al., Splitwise, ISCA 2024.
    """

    kind: str = "continuous"
    slots: int = 256
    prefill_tokens: int = 8192
    chunk: int = 512
    preemption: str | None = None
    block: int = 16
    link: float = 64e9
    prefix_blocks: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in POLICIES:
            raise unknown_name("policy", self.kind, POLICIES)
        if self.preemption not in PREEMPTIONS:
            raise CostModelError(f"preemption must be None, 'recompute' or 'swap', got {self.preemption!r}")
        if self.kind == "static" and self.preemption:
            raise CostModelError("static batching reserves its memory and never preempts; leave preemption out")
        for name in ("slots", "prefill_tokens", "chunk", "block"):
            whole(getattr(self, name), name, limit=2**31)
        if self.prefix_blocks is not None:
            whole(self.prefix_blocks, "prefix_blocks", at_least=0, limit=2**31)
        if not 0 < self.link < float("inf"):
            raise CostModelError(f"link must be above 0 byte/s, got {self.link}")


@dataclass(frozen=True, kw_only=True)
class Slo:
    """Service-level objective: limits that a request must keep to count as goodput; None for no limit.

    Attributes
    ----------
    ttft : time to first token, from arrival [s]
    tpot : time per output token after the first [s]
    e2e : time to the last token, from arrival [s]

    Raises
    ------
    CostModelError
        for a limit that is not above 0

    Examples
    --------
    >>> Slo(ttft=0.5, tpot=0.05)
    Slo(ttft=0.5, tpot=0.05, e2e=None)

    References
    ----------
    Zhong et al., DistServe, 2401.09670 (goodput).
    """

    ttft: float | None = None
    tpot: float | None = None
    e2e: float | None = None

    def __post_init__(self) -> None:
        for name in ("ttft", "tpot", "e2e"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise CostModelError(f"the limit on {name} must be above 0 s, got {value}")
