"""A measurement's forecast: the terms of the passes it was made of, under the fitted constants."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from costmodel.calibration import Setting, Term, engine, fitted, interruption_terms, pass_terms, total_seconds
from costmodel.common.checks import present
from costmodel.evidence.names import device_named, model_named
from costmodel.evidence.table import Measurement

QUEUED = ("under load", "queueing")  # a first token that waited for others says nothing about one prefill
MEMORY_USED = 0.9  # share of the memory that servers fill; requests beyond it wait


@dataclass(frozen=True)
class Passes:
    """One kind of pass and how often it happened."""

    times: float
    terms: tuple[Term, ...]


def at_once(row: Measurement, setting: Setting) -> float:
    """Sequences decoded together: the batch, or as many as memory holds where a server lets the others wait."""
    batch = present("batch", row.batch)
    if batch == 1 or setting.engine.batching == "static":
        return batch
    model, device = model_named(row.model), setting.accelerator
    free = MEMORY_USED * device.capacity - model.params * setting.weight_bits / 8
    return min(batch, max(1, int(free / (model.cache_elements(row.context) * setting.cache_bits / 8))))


@lru_cache(maxsize=4096)
def passes(row: Measurement) -> tuple[Passes, ...]:
    """What the measured time was spent on: steps of decoding, a prefill, or one prefill and the steps after it.

    Parameters
    ----------
    row : a measurement whose model, device and sizes are known

    Returns
    -------
    tuple of Passes, each with how often it happened and the terms [s] that one of them is made of

    Raises
    ------
    CostModelError
        when the row leaves out a size that its phase needs

    Examples
    --------
    >>> from costmodel.evidence import measurements
    >>> row = next(row for row in measurements() if row.phase == "decode" and forecastable(row))
    >>> [run.times for run in passes(row)]
    [1]
    """
    model, device = model_named(row.model), device_named(row.hardware).times(row.devices)
    setting = Setting(device, present("weight_bits", row.weight_bits), row.cache_bits or 16, engine(row.software))
    found = []
    if row.phase != "decode":
        batch, prompt = present("batch", row.batch), present("prompt", row.prompt)
        ledger = model.prefill(batch, prompt)
        prefill = pass_terms(model, ledger, setting, sequences=batch, tokens=batch * prompt)
        found.append(Passes(1, tuple(prefill)))
    if row.phase != "prefill":
        together = at_once(row, setting) if row.phase == "decode" else present("batch", row.batch)
        terms = pass_terms(model, model.decode(together, row.context), setting, sequences=together, tokens=together)
        served = row.phase == "decode" and setting.engine.batching == "continuous"
        if served and together > 1 and row.prompt and row.generated:
            lengths = {"prompt": row.prompt, "generated": row.generated}
            terms += interruption_terms(model, model.prefill(1, row.prompt), setting, batch=together, **lengths)
        steps = 1 if row.phase == "decode" else max(0, present("generated", row.generated) - 1)
        found.append(Passes(steps, tuple(terms)))
    return tuple(found)


def forecastable(row: Measurement) -> bool:
    """Whether the row says what was run: honest, on known hardware, with a batch, and not measured in a queue."""
    if not row.honest or row.hardware == "unknown" or row.batch is None or any(word in row.note for word in QUEUED):
        return False
    if row.phase == "prefill":
        return bool(device_named(row.hardware).peaks)
    return row.phase in ("decode", "request") or (row.phase == "throughput" and bool(row.prompt))


def measured_seconds(row: Measurement) -> float:
    """The time the passes took together: of a throughput, that of the whole static batch [s]."""
    if row.phase != "throughput":
        return row.value
    return present("batch", row.batch) * present("generated", row.generated) / row.value


def forecast(row: Measurement, constants: Mapping[str, float] | None = None) -> float:
    """Seconds that the calibrated model expects [s].

    Parameters
    ----------
    row : a decode, prefill, request or static throughput measurement
    constants : those that come with the package, unless others are given

    Returns
    -------
    the time of all its passes: a step, a prefill, a whole request, or a whole static batch [s]

    Raises
    ------
    CostModelError
        for a row without batch, bits per weight or the lengths that its phase needs, or with names that are not known

    Examples
    --------
    >>> from costmodel.evidence.table import measurements
    >>> row = measurements()[0]
    >>> abs(forecast(row) / row.value - 1) < 0.2
    True
    """
    constants = fitted().constants if constants is None else constants
    return float(sum(each.times * total_seconds(each.terms, constants) for each in passes(row)))
