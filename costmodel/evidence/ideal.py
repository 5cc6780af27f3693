"""The fastest that physics allows for a published measurement, and what share of it was reached."""

import re
from dataclasses import dataclass, replace

from costmodel.common.checks import amount, present
from costmodel.common.errors import CostModelError
from costmodel.evidence.layout import whole_in
from costmodel.evidence.names import device_named, model_named
from costmodel.evidence.table import Measurement
from costmodel.exact import LARGEST, SMALLEST, quotient
from costmodel.hardware import Accelerator
from costmodel.ops import contract
from costmodel.roofline import Timing
from costmodel.sizing import Deployment

UNKNOWN = "unknown"  # hardware that the source does not name
PEAKS = ((16, ("bf16", "fp16")), (8, ("fp8", "int8")), (4, ("fp4",)))  # narrower weights may use every line above, too


@dataclass(frozen=True)
class Bound:
    """What a measurement could have been at best.

    Attributes
    ----------
    measured, ideal : time of the same work [s]; ideal is None where the hardware is unknown
    binds : "memory", "compute", or None where the hardware is unknown

    Examples
    --------
    >>> Bound(measured=2.0, ideal=1.0, binds="memory").utilisation, Bound(measured=1.0, ideal=2.0).beaten
    (0.5, True)

    References
    ----------
    Williams et al., Roofline, CACM 52(4), 2009.
    """

    measured: float
    ideal: float | None = None
    binds: str | None = None

    @property
    def utilisation(self) -> float | None:
        """ideal/measured: 1 is the bound itself, and an honest row cannot have more."""
        return None if self.ideal is None else self.ideal / self.measured

    @property
    def beaten(self) -> bool:
        """Whether the row claims more than physics allows."""
        return self.utilisation is not None and self.utilisation > 1


def highest_peak(device: Accelerator, weight_bits: float | None = 16) -> float:
    """The highest dense peak the software could have used [FLOP/s]; infinite for a device without one on record.

    16-bit arithmetic may accumulate in 16 bits where that is faster (consumer cards); weights of 8 bits may be
    multiplied in fp8 or int8, and those of 4 bits in fp4 as well. Wider weights are rounded to 16 bits at best.

    Parameters
    ----------
    device : one accelerator
    weight_bits : nominal, per weight [bit]; None counts as 16

    Returns
    -------
    the largest of the peaks on record that weights of so many bits can use [FLOP/s]

    Examples
    --------
    >>> highest_peak(device_named("rtx-4090"), 16) / 1e12, highest_peak(device_named("rtx-4090"), 4) / 1e12
    (330.3, 660.6)
    """
    bits = 16 if weight_bits is None else weight_bits
    usable = [name for width, names in PEAKS if width == 16 or bits <= width for name in names]
    peaks = [device.peaks[name] for name in usable if name in device.peaks]
    return float(max([*peaks, device.fp16_accumulate or 0])) if peaks else float("inf")


def ideal_device(row: Measurement) -> Accelerator:
    """All the row's devices as one, without communication, at the highest peak its software could have used."""
    device = device_named(row.hardware)
    return replace(device, peaks={"bf16": highest_peak(device, row.weight_bits)}).times(row.devices)


def deployed(row: Measurement, device: Accelerator) -> Deployment:
    """The row's model in its formats; activations may all stay on chip."""
    cache = 16 if row.cache_bits is None else row.cache_bits
    weights = present("weight_bits", row.weight_bits)
    return Deployment(
        model_named(row.model), device, weights=quotient(weights, 8), cache=quotient(cache, 8), activations=0
    )


def _whole_request(row: Measurement, plan: Deployment) -> tuple[float, str]:
    """Seconds of one prefill and of the steps after it, and what binds the longer part."""
    batch = present("batch", row.batch)
    first = plan.prefill(present("prompt", row.prompt), batch)
    step = plan.decode(batch, row.context).timing
    steps = max(0, present("generated", row.generated) - 1) * step.seconds
    return first.seconds + steps, (step if steps > first.seconds else first).bound


def _throughput(row: Measurement, plan: Deployment) -> Timing:
    """The work of one request among as many as memory holds, prefills hidden under decoding or the reverse.

    flops = prefill + (M − 1) steps of one sequence; bytes = (M − 1)·(weights/B + cache of one sequence).
    """
    batch = row.batch or max(1, plan.largest_batch(row.context) or 1)
    step, steps = plan.decode(batch, row.context).timing, max(1, present("generated", row.generated) - 1)
    flops = steps * step.flops / batch + (plan.prefill(row.prompt).flops if row.prompt else 0)
    return Timing(float(flops), float(steps * step.bytes / batch), step.peak, step.bandwidth)


def _kernel(row: Measurement, device: Accelerator) -> Timing:
    sizes = [whole_in(digits, f"sizes of {row.model[:40]!r}") for digits in re.findall(r"\d+", row.model)]
    if len(sizes) != 3:
        raise CostModelError(f"row {row.id}: model {row.model!r} must give three sizes, such as 'gemm 1x4096x4096'")
    name = "cache_bits" if row.phase == "attention" else "weight_bits"
    bits = present(name, getattr(row, name))
    if row.phase == "attention":
        n, k, h = sizes
        axes = {"B": present("batch", row.batch), "K": k, "G": n // k, "H": h, "S": present("prompt", row.prompt)}
        op = contract(
            "B K G H, B K H S -> B K G S", sizes=axes, roles=("activation", "cache", "activation"), on_chip=[2]
        )
        flops, moved = 2 * op.flops, 2 * op.reads[1].elements * bits / 8  # scores and values: keys and values are read
    else:
        m, n, k = sizes
        op = contract("B D, D F -> B F", sizes={"B": m, "D": k, "F": n})
        flops, moved = op.flops, op.reads[1].elements * bits / 8
    return Timing(flops, moved, device.peak(), device.bandwidth)


def bound(row: Measurement, *, bandwidth: float = 1) -> Bound:
    """The bound of one row, in seconds of the work it did.

    decode, speculative: one step at the average context. prefill: the whole prompt. request: a prefill and the steps
    after it. throughput: flops and bytes of one request, each fully hidden under the other. Kernels: their operands.

    Parameters
    ----------
    row : a measurement
    bandwidth : share of the recorded bandwidth to allow; below 1, honest rows beat the bound

    Returns
    -------
    Bound; where the row's hardware is "unknown" it has the measured time alone

    Raises
    ------
    CostModelError
        for a model or an accelerator of no known name, a kernel whose name does not give three sizes, a size that the
        phase needs and the row does not state, or a share of the bandwidth that is not above 0

    Examples
    --------
    >>> from costmodel.evidence.table import measurements
    >>> found = bound(measurements()[0])
    >>> found.binds, round(found.utilisation, 3)
    ('memory', 0.683)

    References
    ----------
    Williams et al., Roofline, CACM 52(4), 2009.
    """
    amount("bandwidth", bandwidth, SMALLEST, LARGEST)
    if row.hardware == UNKNOWN:
        return Bound(row.value)
    device = ideal_device(row)
    device = replace(device, bandwidth=device.bandwidth * bandwidth)
    if row.phase in ("gemm", "gemv", "attention"):
        work = _kernel(row, device)
        if row.phase == "gemm" and "attention" in row.model:  # a published rate of a fused kernel: the peak alone
            work = replace(work, bytes=0)
        measured = {"gemm": work.flops / row.value, "gemv": work.bytes / row.value}.get(row.phase, row.value)
        return Bound(measured, float(work.seconds), work.bound)
    plan = deployed(row, device)
    if row.phase == "request":
        seconds, binds = _whole_request(row, plan)
        return Bound(row.value, float(seconds), binds)
    if row.phase == "throughput":
        work = _throughput(row, plan)
        return Bound(max(1, present("generated", row.generated) - 1) / row.value, float(work.seconds), work.bound)
    batch = present("batch", row.batch)
    if row.phase == "prefill":
        work = plan.prefill(present("prompt", row.prompt), batch)
    else:
        work = plan.decode(batch, row.context).timing
    return Bound(row.value, float(work.seconds), work.bound)
