"""Two ways to time a ledger: one maximum over the whole pass, or one for every row."""

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain
from costmodel.hardware import Accelerator
from costmodel.ops import Ledger
from costmodel.roofline.bound import Timing


def _rates(
    accelerator: Accelerator, dtype: str, compute_efficiency: Number, bandwidth_efficiency: Number
) -> tuple[Number, Number]:
    for name, value in (("compute_efficiency", compute_efficiency), ("bandwidth_efficiency", bandwidth_efficiency)):
        if is_plain(value) and not 0 < value <= 1:
            raise CostModelError(f"{name} must be above 0 and at most 1, got {value}")
    return accelerator.peak(dtype) * compute_efficiency, accelerator.bandwidth * bandwidth_efficiency


def timing(
    ledger: Ledger,
    accelerator: Accelerator,
    dtype: str = "bf16",
    *,
    compute_efficiency: Number = 1,
    bandwidth_efficiency: Number = 1,
) -> Timing:
    """max(Σ flops/peak, Σ bytes/bandwidth): a ledger under one maximum over the whole pass (perfect overlap).

    Parameters
    ----------
    ledger : rows with FLOPs and bytes
    accelerator : peaks and bandwidth
    dtype : which peak
    compute_efficiency, bandwidth_efficiency : measured shares of the two rates, 1 for the bound itself

    Returns
    -------
    Timing, with seconds [s], bound and intensity [FLOP/byte]

    Raises
    ------
    CostModelError
        for an efficiency outside (0, 1], or a dtype whose peak is not on record

    Examples
    --------
    >>> from costmodel.operation import Op, Tensor
    >>> from costmodel.ops import Row
    >>> card = Accelerator("card", capacity=0, bandwidth=1, peaks={"bf16": 4})
    >>> rows = Ledger([Row("think", Op(24)), Row("fetch", Op(0, (Tensor("D", 5, "weight"),)))])  # 24 FLOPs; 10 bytes
    >>> timing(rows, card).seconds, timing(rows, card).bound, timing(rows, card, compute_efficiency=0.5).bound
    (10.0, 'memory', 'compute')

    References
    ----------
    Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009.
    """
    return Timing(ledger.flops, ledger.bytes, *_rates(accelerator, dtype, compute_efficiency, bandwidth_efficiency))


def overlapped_seconds(ledger: Ledger, accelerator: Accelerator, dtype: str = "bf16", **efficiency: Number) -> Number:
    """max(Σ flops/peak, Σ bytes/bandwidth) [s]: everything overlaps with everything.

    Parameters
    ----------
    ledger : rows with FLOPs and bytes
    accelerator : peaks and bandwidth
    dtype : which peak
    efficiency : compute_efficiency, bandwidth_efficiency as in `timing`, shares of the two rates

    Returns
    -------
    duration [s]

    Raises
    ------
    CostModelError
        for an efficiency outside (0, 1], or a dtype whose peak is not on record

    Examples
    --------
    >>> from costmodel.operation import Op, Tensor
    >>> from costmodel.ops import Row
    >>> card = Accelerator("card", capacity=0, bandwidth=1, peaks={"bf16": 1})
    >>> rows = Ledger([Row("think", Op(8)), Row("fetch", Op(0, (Tensor("D", 3, "weight"),)))])  # 8 FLOPs; 6 bytes
    >>> overlapped_seconds(rows, card), serial_seconds(rows, card)
    (8.0, 14.0)
    """
    return timing(ledger, accelerator, dtype, **efficiency).seconds


def serial_seconds(
    ledger: Ledger,
    accelerator: Accelerator,
    dtype: str = "bf16",
    *,
    compute_efficiency: Number = 1,
    bandwidth_efficiency: Number = 1,
) -> Number:
    """Σ max(flops/peak, bytes/bandwidth) over the rows [s]: no step overlaps with another.

    Parameters
    ----------
    ledger : rows with FLOPs and bytes
    accelerator : peaks and bandwidth
    dtype : which peak
    compute_efficiency, bandwidth_efficiency : measured shares of the two rates, 1 for the bound itself

    Returns
    -------
    duration [s], never below `overlapped_seconds`

    Raises
    ------
    CostModelError
        for an efficiency outside (0, 1], or a dtype whose peak is not on record

    Examples
    --------
    >>> from costmodel.operation import Op, Tensor
    >>> from costmodel.ops import Row
    >>> card = Accelerator("card", capacity=0, bandwidth=1, peaks={"bf16": 1})
    >>> rows = Ledger([Row("think", Op(8)), Row("fetch", Op(0, (Tensor("D", 3, "weight"),)))])  # 8 s, then 6 s
    >>> serial_seconds(rows, card)
    14.0
    """
    rates = _rates(accelerator, dtype, compute_efficiency, bandwidth_efficiency)
    return sum(row.count * Timing(row.op.flops, row.op.bytes, *rates).seconds for row in ledger.rows)
