"""Columns of the evidence table, and how a list in the layout that published results come in is turned into them."""

import re
from collections.abc import Mapping, Sequence

from costmodel.common.errors import CostModelError

COLUMNS = (
    "id", "model", "hardware", "devices", "weight_bits", "cache_bits", "batch", "prompt", "generated", "phase", "value",
    "unit", "software", "source", "excluded", "note",
)  # fmt: skip
UNITS = {
    "decode": "s", "speculative": "s", "prefill": "s", "request": "s", "attention": "s",
    "throughput": "token/s", "gemm": "FLOP/s", "gemv": "byte/s",
}  # fmt: skip

NEEDED = (
    "id",
    "model",
    "hardware",
    "n_devices",
    "batch",
    "input_len",
    "output_len",
    "phase",
    "metric",
    "value",
    "unit",
)
PHASES = {
    "decode": "decode", "decode-speculative": "speculative", "prefill": "prefill", "e2e": "request",
    "throughput": "throughput", "kernel-gemm": "gemm", "kernel-gemv": "gemv", "kernel-attention": "attention",
}  # fmt: skip
SCALES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "TFLOPS": 1e12, "GB/s": 1e9, "tok/s": 1.0, "tok/s/GPU": 1.0}

MOST = 2**31  # no count in a table of measurements is as large


def is_published(header: Sequence[str]) -> bool:
    """Whether these are the columns of a published list: a metric with a value and a unit."""
    return set(NEEDED) <= set(header)


def whole_in(digits: str, what: str) -> int:
    """The number that digits from a name spell, from 1 and below 2^31."""
    value = int(digits) if len(digits) < 20 else 0
    if not 1 <= value < MOST:
        raise CostModelError(f"{what} must be a whole number from 1 and below 2^31, got {digits[:40]!r}")
    return value


def _float(fields: Mapping[str, str], name: str) -> float:
    try:
        value = float(fields[name])
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise CostModelError(f"{name} must be a number above 0, got {fields[name][:40]!r}")
    return value


def from_published(fields: Mapping[str, str]) -> dict[str, str]:
    """The same row in this table's columns and units.

    A rate of one user's decoding becomes seconds per step: batch/rate. A time divided over the batch is multiplied by
    it. A rate per device is multiplied by the devices, a prefill rate becomes the seconds of the prompt.
    """
    if fields["phase"] not in PHASES:
        raise CostModelError(f"phase {fields['phase']!r} is not known; give one of {', '.join(PHASES)}")
    if fields["unit"] not in SCALES:
        raise CostModelError(f"unit {fields['unit']!r} is not known; give one of {', '.join(SCALES)}")
    phase, metric, unit = PHASES[fields["phase"]], fields["metric"], fields["unit"]
    value = _float(fields, "value") * SCALES[unit]
    rate = unit.startswith("tok/s")
    if unit == "tok/s/GPU":
        value *= _float(fields, "n_devices")
    if phase in ("decode", "speculative"):
        if metric == "ms_per_token_over_batch":
            value *= _float(fields, "batch")
        elif tokens := re.fullmatch(r"latency_(\d+)_tokens", metric):
            value /= whole_in(tokens[1], "tokens of the metric")
        elif rate:
            value = _float(fields, "batch") / value
    elif phase == "prefill" and rate:
        value = _float(fields, "batch") * _float(fields, "input_len") / value
    model = fields["model"].lower()
    if phase in ("gemm", "gemv", "attention"):
        numbers = re.findall(r"\d+", model)
        names = ("m", "n", "k") if phase != "attention" else ("N", "K", "H")
        if len(numbers) != len(names):
            raise CostModelError(f"model {fields['model']!r} of a {phase} row must give {', '.join(names)}")
        shape = "x".join(numbers) if phase != "attention" else " ".join(map("=".join, zip(names, numbers, strict=True)))
        model = f"{'attention' if phase == 'attention' else 'gemm'} {shape}"
    row = {
        "model": model, "phase": phase, "value": repr(value), "unit": UNITS[phase], "devices": fields["n_devices"],
        "cache_bits": fields.get("kv_bits", ""), "prompt": fields["input_len"], "note": fields.get("notes", ""),
        "generated": "" if phase == "prefill" else fields["output_len"],
        "excluded": fields.get("exclude_from_bound", ""),
    }  # fmt: skip
    return {name: row[name] if name in row else fields.get(name, "") for name in COLUMNS}
