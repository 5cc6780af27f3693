from dataclasses import replace
from datetime import date

import pytest

from costmodel import accelerator, accelerators
from costmodel.common.errors import CostModelError, UnknownNameError
from costmodel.hardware import SYMBOLIC_ACCELERATOR
from costmodel.symbols import memory_bandwidth, peak


def test_records_are_whole() -> None:
    records = accelerators()
    assert len(records) >= 26
    for name, record in records.items():
        assert name == name.lower()
        assert record.title
        assert record.source
        assert record.note
        assert isinstance(record.date, date)
        assert record.peaks
        figures = [record.capacity, record.bandwidth, *record.peaks.values()]
        assert all(isinstance(figure, int) and figure > 0 for figure in figures), name
        assert 1e9 <= record.capacity <= 1e12
        assert 1e11 <= record.bandwidth <= 1e13
        assert 1e13 <= record.peak() <= 1e16


def test_peaks_are_dense() -> None:
    assert accelerator("h100-sxm").peak("bf16") == 989 * 10**12
    for record in accelerators().values():
        if "fp8" in record.peaks and "bf16" in record.peaks:
            assert record.peak("fp8") <= 2.05 * record.peak("bf16"), f"{record.name}: fp8 looks sparse"


def test_ridge_points() -> None:
    assert f"{accelerator('h100-sxm').ridge():.2f}" == "295.22"
    assert f"{accelerator('h100-class').ridge():.2f}" == "298.51"
    assert SYMBOLIC_ACCELERATOR.ridge() == peak / memory_bandwidth


def test_marketed_capacity_and_what_the_driver_reports_are_two_fields() -> None:
    h100 = accelerator("h100-sxm")
    assert (h100.capacity, h100.driver_bytes) == (80 * 10**9, 81_559 * 2**20)


def test_names_in_other_case_and_by_prefix() -> None:
    assert accelerator("H100-SXM") == accelerator("h100-sxm")
    assert accelerator("h200").name == "h200-sxm"
    assert accelerator("mi250x").name == "mi250x"


def test_ambiguous_and_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match=r"'h100' is ambiguous: it begins h100-class, h100-nvl"):
        accelerator("h100")
    with pytest.raises(UnknownNameError, match=r"unknown accelerator 'h100-sxn'; did you mean h100-sxm"):
        accelerator("h100-sxn")
    with pytest.raises(UnknownNameError, match="unknown accelerator ''"):
        accelerator("")


def test_several_devices_add_up() -> None:
    eight = accelerator("tpu-v5e").times(8)
    assert (eight.bandwidth, eight.devices) == (8 * 820 * 10**9, 8)
    assert eight.ridge() == accelerator("tpu-v5e").ridge()
    for bad in (0, 1.5, True):
        with pytest.raises(CostModelError, match=f"devices must be a whole number, at least 1, got {bad}"):
            eight.times(bad)
    card = accelerator("rtx-4090")
    two = card.times(2)
    assert (two.fp16_accumulate, two.times(2).devices) == (2 * card.fp16_accumulate, 4)
    assert replace(card, driver_bytes=25 * 10**9).times(2).driver_bytes == 50 * 10**9
    assert (two.interconnect, two.tdp, eight.fp16_accumulate) == (card.interconnect, card.tdp, None)


def test_fp16_stands_in_for_bf16_and_nothing_else_does() -> None:
    assert accelerator("t4").peak_dtype("bf16") == "fp16"
    with pytest.raises(CostModelError, match=r"t4 has no fp8 peak on record; it has fp16"):
        accelerator("t4").peak("fp8")


def test_what_a_reader_changes_is_the_readers_own() -> None:
    accelerators()["h100-sxm"].peaks["bf16"] = 1
    accelerator("h100-sxm").peaks["bf16"] = 1
    accelerators().pop("h100-sxm")
    assert accelerator("h100-sxm").peak() == accelerators()["h100-sxm"].peak() == 989 * 10**12
