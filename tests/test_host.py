"""This machine as a record: small measurements, only ever compared as inequalities."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from costmodel import Deployment, load
from costmodel.cli import main
from costmodel.common.errors import CostModelError, NotHereError
from costmodel.host import Host, _fastest, ideal_seconds, measure_host, memory_bytes, multiply_peak, read_bandwidth
from costmodel.lab.decoder import TinyDecoder

SMALL = {"rounds": 2, "size": 2**24, "side": 256}


@pytest.fixture(scope="module")
def host() -> Host:
    return measure_host(**SMALL)


def test_a_record_like_any_other(host: Host) -> None:
    record = host.together
    assert host.cores >= 1
    assert host.one_core.bandwidth > 1e8
    assert all(peak > 1e7 for peak in record.peaks.values())
    assert record.capacity > 1e9
    plan = Deployment(load("smollm2-135m"), record, weights="fp32", cache="fp32", compute="fp32")
    assert plan.fits(1, 1024)
    assert plan.decode(1, 1024).seconds_per_token > 0


def test_ideal_times_scale_with_the_record(host: Host) -> None:
    model = load("smollm2-135m")
    once = ideal_seconds(model, host.together, prompt=64, context=64)
    twice = ideal_seconds(model, host.together.times(2), prompt=64, context=64)
    assert once == pytest.approx({name: 2 * value for name, value in twice.items()})


def test_what_is_read_and_multiplied_over_the_time_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    monkeypatch.setattr("costmodel.host._fastest", lambda run, rounds: runs.append((run(), rounds)) or 0.5)
    assert read_bandwidth(1, size=2**22) == read_bandwidth(3, rounds=2, size=2**22) == 2**23
    assert multiply_peak("fp32", side=16) == 4 * 16**3
    (one, rounds), (three, _), (product, _) = runs
    assert (one, rounds, sum(three)) == ([2**20], 5, 2**20)  # every fp32 of the array, a 1, once
    np.testing.assert_array_equal(product, np.full((16, 16), 16 * 0.5 * 0.5, np.float32))


def test_the_fastest_of_several_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, runs = iter([10.0, 13.0, 20.0, 21.5, 30.0, 34.0]), []
    monkeypatch.setattr("costmodel.host.perf_counter", lambda: next(clock))
    assert _fastest(lambda: runs.append(1), 3) == 1.5
    assert len(runs) == 3


@pytest.mark.parametrize(("together", "kept"), [(7e9, 7e9), (3e9, 5e9)])
def test_all_cores_read_no_slower_than_one_of_them(
    monkeypatch: pytest.MonkeyPatch, together: float, kept: float
) -> None:
    monkeypatch.setattr("costmodel.host.usable_cores", lambda: 4)
    monkeypatch.setattr("costmodel.host.multiply_peak", lambda dtype, **_: {"fp32": 2e12, "fp64": 1e12}[dtype])
    monkeypatch.setattr("costmodel.host.read_bandwidth", lambda cores, **_: {1: 5e9, 4: together}[cores])
    found = measure_host(capacity=10**9)
    assert (found.cores, found.one_core.bandwidth, found.together.bandwidth) == (4, 5e9, kept)
    assert found.together.peaks == found.one_core.peaks == {"fp32": 2e12, "fp64": 1e12}


def test_sizes_are_refused() -> None:
    with pytest.raises(CostModelError, match="rounds must be a whole number of at least 1, got 0"):
        measure_host(rounds=0)
    with pytest.raises(CostModelError, match=r"side must be a whole number of at least 16, got 2\.5"):
        measure_host(side=2.5)
    assert measure_host(**SMALL, capacity=10**9).together.capacity == 10**9


def test_the_command(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, host: Host) -> None:
    monkeypatch.setattr("costmodel.cli.host.measure_host", lambda rounds: host)
    monkeypatch.setattr("costmodel.lab.smollm.load_smollm2", lambda: (TinyDecoder(), None))  # page 16 runs the real one
    assert main(["host", "--rounds", "1", "--prompt", "8", "--context", "8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bandwidth"] == host.together.bandwidth
    assert all(row["measured_s"] > 0 and row["ideal_s"] > 0 for row in found["model"])
    monkeypatch.setattr("costmodel.cli.host.small_model", lambda *_: found["model"])
    assert main(["host", "--rounds", "1"]) == 0
    assert "reads, all cores" in capsys.readouterr().out


def test_only_a_model_that_was_not_fetched_is_passed_over(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, host: Host
) -> None:
    def refuses(error: CostModelError) -> object:
        def load() -> None:
            raise error

        return load

    monkeypatch.setattr("costmodel.cli.host.measure_host", lambda rounds: host)
    monkeypatch.setattr("costmodel.lab.smollm.load_smollm2", refuses(NotHereError("fetch it")))
    assert main(["host", "--rounds", "1"]) == 0
    assert "note: fetch it" in capsys.readouterr().out
    monkeypatch.setattr("costmodel.lab.smollm.load_smollm2", refuses(CostModelError("gguf is not here")))
    assert main(["host", "--rounds", "1"]) == 2


def test_without_a_cuda_device_the_oracle_says_so(tmp_path: Path) -> None:
    script = Path(__file__).parent / "oracles" / "measure_cuda.py"
    hidden = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(Path(__file__).parent.parent), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "rows.csv")],
        capture_output=True,
        text=True,
        env=hidden,
        check=False,
    )
    assert ran.returncode == 2
    assert "nothing was measured" in ran.stderr
    assert not (tmp_path / "rows.csv").exists()


def test_a_system_that_does_not_state_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf_names", {})
    with pytest.raises(CostModelError, match="does not state its memory; give capacity in bytes"):
        memory_bytes()
