"""Reading evidence: either layout, errors that name file, line and cell, and the command that prints it."""

import json
from pathlib import Path

import pytest

from costmodel.cli import main
from costmodel.common.errors import CostModelError
from costmodel.evidence import against_the_bound, check, measurements, read
from costmodel.evidence.layout import COLUMNS
from costmodel.evidence.names import device_named, model_named

ROW = "x-1,llama-3-8b,h100-sxm,1,16,16,1,100,100,decode,0.007,s,vLLM,a test,,"
PUBLISHED = (
    "id,model,hardware,n_devices,weight_bits,kv_bits,batch,input_len,output_len,phase,metric,value,unit,software,"
    "source,notes"
)


def written(folder: Path, *rows: str, header: str = ",".join(COLUMNS)) -> Path:
    path = folder / "mine.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_a_file_of_the_same_columns(tmp_path: Path) -> None:
    report = check(written(tmp_path, ROW))
    (verdict,) = report.verdicts
    assert verdict.bound.binds == "memory"
    assert verdict.bound.utilisation == pytest.approx(0.64, abs=0.01)
    assert report.impossible == ()
    assert report.median_error < 0.5


def test_a_row_that_is_too_fast_is_called_impossible(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = written(tmp_path, ROW.replace("0.007", "0.004"))
    assert [v.row.id for v in check(path).impossible] == ["x-1"]
    assert main(["evidence", "--check", str(path)]) == 2
    assert "faster than physics allows: x-1" in capsys.readouterr().err
    excused = written(tmp_path, ROW.replace("0.007", "0.004").replace(",a test,,", ",a test,speculative,"))
    assert check(excused).impossible == ()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW.replace("0.007", "fast"), r"mine\.csv, line 2: value must be a number of at least 1e-12, got 'fast'"),
        (ROW.replace("0.007", "-1"), "line 2: value must be a number"),
        (ROW.replace("0.007", "nan"), "line 2: value must be a number"),
        (ROW.replace(",s,", ",ms,"), "line 2: unit of decode must be s, got 'ms'"),
        (ROW.replace("decode", "decoding"), "line 2: phase 'decoding' is not known; give one of decode, prefill"),
        (ROW.replace("sxm,1,", "sxm,1.5,"), "line 2: devices must be a whole number of at least 1, got '1.5'"),
        (ROW.replace("16,16,1,", ",16,1,"), "line 2: weight_bits is empty"),
        (ROW + ",", "line 2: 17 cells for 16 columns"),
        (ROW.replace("x-1", ""), "line 2: id is empty"),
        (ROW.replace("llama-3-8b", "llama-99"), r"row 'x-1': unknown model 'llama-99'; did you mean"),
        (ROW.replace("h100-sxm", "h1000"), r"row 'x-1': unknown accelerator 'h1000'"),
    ],
)
def test_refusals_name_file_line_and_cell(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        check(written(tmp_path, row))


def test_refusals_of_files(tmp_path: Path) -> None:
    with pytest.raises(CostModelError, match="no column 'devices'"):
        read(written(tmp_path, ROW, header="id,model,hardware"))
    with pytest.raises(CostModelError, match="id 'x-1' occurs twice"):
        read(written(tmp_path, ROW, ROW))
    with pytest.raises(CostModelError, match="cannot be read"):
        read(tmp_path / "nothing.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CostModelError, match="cannot be read as CSV"):
        read(tmp_path / "bytes.csv")


@pytest.mark.parametrize(
    ("phase", "metric", "value", "unit", "batch", "seconds"),
    [
        ("decode", "tpot", "7", "ms", 4, 0.007),
        ("decode", "tokens_per_s", "200", "tok/s", 4, 0.02),
        ("decode", "ms_per_token_over_batch", "2", "ms", 4, 0.008),
        ("decode", "latency_64_tokens", "1.28", "s", 4, 0.02),
        ("prefill", "ttft", "50", "ms", 1, 0.05),
        ("prefill", "pp512", "1000", "tok/s", 1, 0.1),
        ("throughput", "output_tokens_per_s_per_gpu", "300", "tok/s/GPU", 4, 600),
    ],
)
def test_published_units(
    tmp_path: Path, phase: str, metric: str, value: str, unit: str, batch: int, seconds: float
) -> None:
    row = f"y-1,Llama-3-8B,H100-SXM-80GB,2,16,16,{batch},100,50,{phase},{metric},{value},{unit},vLLM,a test,"
    (found,) = read(written(tmp_path, row, header=PUBLISHED))
    assert found.value == pytest.approx(seconds)
    assert (found.devices, found.prompt) == (2, 100)
    assert device_named(found.hardware).name == "h100-sxm"
    assert model_named(found.model).name == "llama-3-8b"


def test_names() -> None:
    assert model_named("Mistral-7B").name == "mistral-7b-v0.1"
    assert device_named("A6000").name == "rtx-a6000"
    assert device_named("M4-Max").peaks
    assert model_named("acme-30b-chat").params == 30 * 10**9


def test_the_command(capsys: pytest.CaptureFixture) -> None:
    assert main(["evidence", "--model", "palm", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in found] == ["pope-001", "pope-002", "pope-003", "pope-004"]
    assert all(0 < row["utilisation"] < 1 for row in found)
    assert {"ideal_s", "measured_s", "binds", "forecast_s", "source"} <= set(found[0])
    assert main(["evidence"]) == 0
    text = capsys.readouterr().out
    assert "688 rows, 669 honest, 0 of these beat the bound" in text
    assert "a source set aside" in text
    assert main(["evidence", "--hardware", "abacus"]) == 2
    assert "no row for hardware 'abacus'" in capsys.readouterr().err


def test_every_row_states_its_source() -> None:
    assert all(row.source and row.software for row in measurements())
    assert len(against_the_bound(hardware="tpu").verdicts) == 8


@pytest.mark.parametrize(
    ("phase", "model", "unit", "named"),
    [
        ("kernel-gemm", "GEMM M=1 N=4096 K=8192", "TFLOPS", "gemm 1x4096x8192"),
        ("kernel-gemv", "4096 x 8192 x 1", "GB/s", "gemm 4096x8192x1"),
        ("kernel-attention", "attention 32 heads, 8 kv, width 128", "ms", "attention N=32 K=8 H=128"),
    ],
)
def test_published_kernels(tmp_path: Path, phase: str, model: str, unit: str, named: str) -> None:
    row = f'k-1,"{model}",H100-SXM-80GB,1,16,16,1,1,1,{phase},rate,500,{unit},cuBLAS,a test,'
    (found,) = read(written(tmp_path, row, header=PUBLISHED))
    assert found.model == named
    assert found.value == pytest.approx({"TFLOPS": 500e12, "GB/s": 500e9, "ms": 0.5}[unit])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("decode", "dreaming"), "phase 'dreaming' is not known; give one of decode"),
        (("ms", "fortnights"), "unit 'fortnights' is not known; give one of s, ms"),
        ((",7,", ",seven,"), "value must be a number above 0, got 'seven'"),
        ((",decode,", ",kernel-gemm,"), "model 'Llama-3-8B' of a gemm row must give m, n, k"),
    ],
)
def test_refusals_of_published_lists(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    row = "y-1,Llama-3-8B,H100-SXM-80GB,2,16,16,4,100,50,decode,tpot,7,ms,vLLM,a test,"
    with pytest.raises(CostModelError, match=message):
        read(written(tmp_path, row.replace(*change), header=PUBLISHED))


def test_empty_lines_are_no_rows(tmp_path: Path) -> None:
    assert len(read(written(tmp_path, ROW, "," * (len(COLUMNS) - 1)))) == 1


def test_a_table_without_rows_is_said_to_have_none() -> None:
    with pytest.raises(CostModelError, match=r"^the table has no rows$"):
        against_the_bound([])
