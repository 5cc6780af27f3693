"""No honest measurement beats the bound; dishonest ones, and a device with half its bandwidth, do."""

import pytest

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
    ],
)
def test_bounds_by_hand(row: str, binds: str, utilisation: float) -> None:
    found = bound(ROWS[row])
    assert found.binds == binds
    assert found.utilisation == pytest.approx(utilisation, abs=0.01)


def test_every_model_and_device_is_known() -> None:
    for row in ROWS.values():
        if row.phase in MODEL_PHASES:
            model = model_named(row.model)
            assert model.family != "stated" or row.model == "chinchilla-70b"
        if row.hardware != "unknown":
            assert device_named(row.hardware).name == row.hardware
