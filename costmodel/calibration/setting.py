"""Where and how a model runs: device, formats and software, as far as the fitted constants depend on them."""

from dataclasses import dataclass

from costmodel.calibration.engine import Engine
from costmodel.common.checks import amount
from costmodel.common.errors import CostModelError
from costmodel.exact import Number
from costmodel.hardware import Accelerator

FAST_LINK = 100e9  # byte/s per device: NVLink and its like are above, PCIe below
# How a name begins; a "-" ends a word, so that a10 is not the a100. Graphics: GDDR6 server cards, whose check bits are
# on as shipped and travel with the data. Consumer: GDDR without that loss, workstation cards included. Server: HBM.
CLASSES = {
    "consumer": ("rtx", "rx-"), "graphics": ("a10-", "a10g-", "l4-", "l40-", "l40s-", "t4-"),
    "apple": ("m1-", "m2-", "m3-", "m4-", "m5-"), "edge": ("jetson",), "tpu": ("tpu",),
}  # fmt: skip


def device_class(accelerator: Accelerator) -> str:
    """ "consumer", "graphics", "apple", "edge", "tpu" or, for all others, "server".

    Examples
    --------
    >>> from costmodel.hardware import accelerator
    >>> [device_class(accelerator(name)) for name in ("rtx-4090", "a10", "a100-sxm-80gb")]
    ['consumer', 'graphics', 'server']
    """
    name = accelerator.name.split(" x ")[-1] + "-"
    return next((kind for kind, begins in CLASSES.items() if name.startswith(begins)), "server")


@dataclass(frozen=True)
class Setting:
    """Where and how a model runs: what the constants depend on.

    Attributes
    ----------
    accelerator : one device or the aggregate of several
    weight_bits, cache_bits : nominal, per weight and per cached element [bit]
    engine : the software

    Raises
    ------
    CostModelError
        for bits that are no number of at least 0, or what is no Accelerator or no Engine

    Examples
    --------
    >>> from costmodel.hardware import accelerator
    >>> here = Setting(accelerator("h100-sxm").times(2), weight_bits=4, cache_bits=16, engine=Engine("vllm"))
    >>> here.precision, here.stored_bits, here.shards
    ('4', 4.5, 2)
    """

    accelerator: Accelerator
    weight_bits: float
    cache_bits: float
    engine: Engine

    def __post_init__(self) -> None:
        for name, kind, words in (
            ("accelerator", Accelerator, "an Accelerator, such as accelerator('h100-sxm')"),
            ("engine", Engine, "an Engine, such as engine('vllm')"),
        ):
            if not isinstance(getattr(self, name), kind):
                raise CostModelError(f"{name} must be {words}, got {getattr(self, name)!r}")
        for name in ("weight_bits", "cache_bits"):
            amount(name, getattr(self, name), 0)

    @property
    def precision(self) -> str:
        """Which constants apply: "16", "8", "fp4" where the device multiplies it, else "4" (widened on the way)."""
        if self.weight_bits > 8:
            return "16"
        if self.weight_bits > 5:
            return "8"
        return "fp4" if "fp4" in self.accelerator.peaks and device_class(self.accelerator) == "server" else "4"

    @property
    def stored_bits(self) -> float:
        """Bits a weight takes with its scales: about half a bit more where there are 4 or fewer."""
        return self.weight_bits + 0.5 if self.weight_bits <= 4 else self.weight_bits

    @property
    def arithmetic(self) -> str | None:
        """The dtype that such weights are multiplied in; None where the device has no peak on record for any."""
        names = {"8": ("fp8", "int8"), "fp4": ("fp4",)}.get(self.precision, ())
        return next((name for name in (*names, "bf16", "fp16") if name in self.accelerator.peaks), None)

    @property
    def peak(self) -> Number | None:
        """Dense peak of all devices in that arithmetic [FLOP/s]; None if not on record.

        4-bit weights are widened to 16 bits, whose products kernels add up in 16 bits where that is faster.
        """
        if self.precision == "4" and self.accelerator.fp16_accumulate:
            return self.accelerator.fp16_accumulate
        return self.accelerator.peaks.get(self.arithmetic or "")

    @property
    def fast(self) -> bool:
        """Whether devices talk over NVLink or its like."""
        link = self.accelerator.interconnect
        return device_class(self.accelerator) in ("server", "tpu") if link is None else link >= FAST_LINK

    @property
    def shards(self) -> int:
        """Devices that work on one layer at a time."""
        return 1 if self.engine.split == "layers" else self.accelerator.devices
