"""How a model is spread over devices, checked once."""

from dataclasses import KW_ONLY, dataclass

from sympy import Expr, ceiling

from costmodel.common.checks import is_real
from costmodel.common.errors import CostModelError
from costmodel.exact import LARGEST, Number, is_plain, quotient, ratio, whole
from costmodel.hardware import Accelerator
from costmodel.ops import Ledger
from costmodel.parallel.collectives import all_reduce


@dataclass(frozen=True)
class Parallel:
    """How a model is spread over devices.

    devices = tensor·data·pipeline·replicas; the experts are spread over `expert` of the tensor·data devices of a stage.

    Parameters
    ----------
    tensor : number of devices that split every matrix (heads, hidden widths, vocabulary)
    data : number of groups of them that each run attention for their own share of the batch (data-parallel attention)
    expert : number of devices that hold different experts; each expert is split over the tensor·data/expert left
    pipeline : number of stages of consecutive layers; a batch travels in as many parts as there are stages
    replicas : number of independent copies, each with a batch of its own
    all_reduce : "ring" or "tree"
    seconds_per_message : time a send takes however short it is [s]; 0 is the bound
    hidden : whether communication overlaps with arithmetic and memory (the most optimistic reading)
    pad : round up what does not split evenly, instead of refusing it; key/value heads (and groups of a state) must
        divide `tensor` or be divided by it all the same, since every query head stays with its own

    Raises
    ------
    CostModelError
        for a number of devices that is neither a symbol nor a whole number of at least 1, `expert` that does not divide
        tensor·data, another all_reduce, a negative time

    Examples
    --------
    >>> Parallel(tensor=8, replicas=2).devices
    16
    >>> Parallel(data=8, expert=8).stage_devices  # 8 groups for attention, an eighth of the experts on each
    8

    References
    ----------
    Shoeybi et al., Megatron-LM, 1909.08053, section 3; Pope et al., 2211.05102, section 3.
    """

    _: KW_ONLY
    tensor: Number = 1
    data: Number = 1
    expert: Number = 1
    pipeline: Number = 1
    replicas: Number = 1
    all_reduce: str = "ring"
    seconds_per_message: Number = 0
    hidden: bool = False
    pad: bool = False

    def __post_init__(self) -> None:
        for name in ("tensor", "data", "expert", "pipeline", "replicas"):
            whole(getattr(self, name), name, limit=2**31)
        all_reduce(self.all_reduce)
        wait = self.seconds_per_message
        if not isinstance(wait, Expr) and not (is_real(wait) and 0 <= wait <= LARGEST):
            raise CostModelError(f"seconds_per_message must be at least 0, got {wait!r}")
        for name in ("hidden", "pad"):
            if not isinstance(getattr(self, name), bool):
                raise CostModelError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if is_plain(self.stage_devices, self.expert) and self.stage_devices % self.expert:
            raise CostModelError(
                f"expert must divide the tensor·data = {self.stage_devices} devices of a stage, got {self.expert}"
            )

    @property
    def stage_devices(self) -> Number:
        """tensor·data, the devices that hold one stage."""
        return self.tensor * self.data

    @property
    def devices(self) -> Number:
        """tensor·data·pipeline·replicas."""
        return self.stage_devices * self.pipeline * self.replicas

    @property
    def shards(self) -> bool:
        """Whether one copy of the model spans several devices."""
        return (self.tensor, self.data, self.pipeline) != (1, 1, 1)

    def share(self, batch: Number, ways: Number) -> Number:
        """Sequences of a batch that the fullest of so many devices has: ⌈batch/ways⌉."""
        if is_plain(batch, ways):
            return -(-batch // ways)
        return batch if ways == 1 else ceiling(batch / ways)

    def split(self, size: Number, ways: Number, what: str) -> Number:
        """size/ways; rounded up where padding is allowed.

        Raises
        ------
        CostModelError
            when it does not come out even
        """
        if not is_plain(size, ways) or size % ways == 0:
            return quotient(size, ways)
        if self.pad:
            return -(-size // ways)
        raise CostModelError(f"{what} ({size}) must be a multiple of the {ways} devices that share it, unless padded")

    def communication_seconds(self, ledger: Ledger, accelerator: Accelerator) -> Number:
        """sent/interconnect + messages·seconds per message [s].

        Raises
        ------
        CostModelError
            when something is sent and the accelerator's interconnect is not on record
        """
        if ledger.sent == 0:
            return 0
        if accelerator.interconnect is None:
            raise CostModelError(
                f"{accelerator.name} has no interconnect on record, so devices that share a model cannot be timed"
            )
        return ratio(ledger.sent, accelerator.interconnect) + ledger.messages * self.seconds_per_message


ONE_DEVICE = Parallel()
