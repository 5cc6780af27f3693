"""No honest measurement beats the bound; dishonest ones, and a device with half its bandwidth, do."""

from dataclasses import replace

import pytest

from costmodel.common.errors import CostModelError
from costmodel.evidence import bound, measurements
from costmodel.evidence.ideal import highest_peak
from costmodel.evidence.names import device_named, model_named
from costmodel.evidence.table import MODEL_PHASES

ROWS = {row.id: row for row in measurements()}


def beaten(bandwidth: float = 1) -> list[str]:
    return [row.id for row in ROWS.values() if row.honest and bound(row, bandwidth=bandwidth).beaten]


def test_no_honest_row_beats_the_bound() -> None:
    assert len(ROWS) >= 685
    assert sum(row.honest for row in ROWS.values()) >= 665
    assert beaten() == []


def test_half_the_bandwidth_would_be_noticed() -> None:
    assert len(beaten(bandwidth=0.5)) > 50


def test_a_peak_with_32_bit_accumulation_alone_would_be_beaten() -> None:
    """TinyChat accumulates in fp16, llama.cpp multiplies in int8: the card's bf16 peak does not bound them."""
    card = device_named("rtx-4090")
    for name in ("tinychatpf-012", "llamacpp-006"):
        found = bound(ROWS[name])
        assert found.utilisation <= 1
        assert found.utilisation * highest_peak(card, 4) / card.peak("bf16") > 1
    assert highest_peak(device_named("rtx-4090"), 16) == 330.3e12
    assert highest_peak(device_named("rtx-4090"), 4) == 660.6e12
    assert highest_peak(device_named("a100-sxm-80gb"), 16) == 312e12
    assert highest_peak(device_named("m2-ultra")) == float("inf")


def test_negative_examples_are_kept_with_their_reason() -> None:
    excluded = [row for row in ROWS.values() if not row.honest]
    assert all(len(row.excluded) > 15 for row in excluded)
    reasons = {row.excluded for row in excluded if bound(row).beaten}
    assert {reason.split()[0] for reason in reasons} == {"speculative:", "counts", "the"}
    assert sum(bound(row).beaten for row in excluded) >= 13


@pytest.mark.parametrize(
    ("row", "binds", "utilisation"),
    [
        ("gptfast-001", "memory", 0.68),  # Llama-2-7B, A100, one user: 104.9 tokens/s of 154
        ("pope-003", "compute", 0.75),  # PaLM's prefill at batch 512: its authors report 76 % MFU
        ("mamf-002", "compute", 0.87),  # the best matmul found on an A100
        ("gemv-006", "memory", 0.90),  # one activation, streaming weights on an H200
        ("attn-003", "memory", 0.95),  # keys and values of a decode step on an H200
        ("tinychat-016", "memory", 0.77),  # an Orin, of which only the bandwidth is on record
        # 530B in 16 bits on 16 A100s: a prefill of 20 and 7 steps, each 1.06 TB at 32.6 TB/s: 8 x 32.5 ms of 565 ms
        ("ft-001", "memory", 0.46),
        # 70.6B, 1.05B of them a table, in fp4 on a B200, 128 in and out: 2 x 69.5e9 x 255 = 35 TFLOP at 9 PFLOP/s
        # take 3.9 ms of 127/(11,147 per second) = 11.4 ms; the caches that 127 steps read, 0.5 ms
        ("trtllm10-001", "compute", 0.34),
        # Llama-2-70B in 4 bits, A100, drafts checked in one pass: 34.4 GB at 2,039 GB/s are 16.9 ms of 20.7 ms
        ("gptfast-034", "memory", 0.82),
    ],
)
def test_bounds_by_hand(row: str, binds: str, utilisation: float) -> None:
    found = bound(ROWS[row])
    assert found.binds == binds
    assert found.utilisation == pytest.approx(utilisation, abs=0.01)


@pytest.mark.parametrize(
    ("phase", "change", "message"),
    [
        ("decode", {"weight_bits": None}, "weight_bits is not stated, and is needed here"),
        ("decode", {"batch": None}, "batch is not stated"),
        ("prefill", {"prompt": None}, "prompt is not stated"),
        ("request", {"batch": None}, "batch is not stated"),
        ("request", {"prompt": None}, "prompt is not stated"),
        ("throughput", {"generated": None}, "generated is not stated"),
        ("attention", {"cache_bits": None}, "cache_bits is not stated"),
        ("attention", {"batch": None}, "batch is not stated"),
        ("gemv", {"weight_bits": None}, "weight_bits is not stated"),
        ("gemv", {"model": "gemv 8x8"}, "must give three sizes"),
        ("decode", {"value": 0}, "value must be a number from 1e-12 to .*, got 0"),
        ("decode", {"devices": 2.5}, r"devices must be an integer of at least 1, got 2\.5"),
        ("decode", {"weight_bits": "int4"}, "weight_bits must be a number from 1 to .*, got 'int4'"),
        ("decode", {"prompt": -1}, "prompt must be a number from 0 to .*, got -1"),
        ("decode", {"generated": float("nan")}, "generated must be a number from 0 to .*, got nan"),
        ("decode", {"model": None}, "model must be a name, got None"),
        ("decode", {"phase": "zzz"}, "phase 'zzz' is not known; give one of decode"),
    ],
)
def test_what_a_row_lacks_is_named(phase: str, change: dict, message: str) -> None:
    row = next(row for row in measurements() if row.phase == phase)
    with pytest.raises(CostModelError, match=message):
        bound(replace(row, **change))


def test_a_share_of_the_bandwidth_is_a_number() -> None:
    with pytest.raises(CostModelError, match=r"bandwidth must be a number from 1e-15 to .*, got 'half'"):
        bound(measurements()[0], bandwidth="half")


def test_every_model_and_device_is_known() -> None:
    for row in ROWS.values():
        if row.phase in MODEL_PHASES:
            model = model_named(row.model)
            assert model.family != "stated" or row.model == "chinchilla-70b"
        if row.hardware != "unknown":
            assert device_named(row.hardware).name == row.hardware
