"""What fuzzing found, each kind of fault by name: refused now, or answered."""

import json
import struct
from dataclasses import replace
from decimal import Decimal
from math import inf, nan
from pathlib import Path

import pytest

from costmodel import ConfigError, CostModelError, Deployment, accelerator, load, stated_model
from costmodel.cli import main
from costmodel.common.errors import unknown_name
from costmodel.common.gguf_file import read_gguf
from costmodel.evidence import check
from costmodel.evidence.layout import COLUMNS
from costmodel.hardware import Accelerator
from costmodel.parallel import Parallel
from costmodel.serving import poisson_arrivals, read_trace
from tests.fuzz.checkpoints import CONFIG, DATA, gguf_bytes

MODEL, H100 = load("llama-3-8b"), accelerator("h100-sxm")
ROW = "x-1,llama-3-8b,h100-sxm,1,16,16,1,100,100,decode,0.007,s,vLLM,a test,,"
PUBLISHED = "id,model,hardware,n_devices,weight_bits,kv_bits,batch,input_len,output_len,phase,metric,value,unit,source"
PUBLISHED_ROW = "x-1,llama-3-8b,h100-sxm,1,16,16,2,100,100,decode,latency_16_tokens,50,ms,a test"


@pytest.mark.parametrize("line", ["[" * 100_000, '{"timestamp": ' + "[" * 100_000])
def test_a_trace_nested_too_deeply(tmp_path: Path, line: str) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text(line)
    with pytest.raises(CostModelError, match=r"deep\.jsonl:1: not a JSON object"):
        read_trace(path)


def test_a_trace_with_a_field_longer_than_csv_takes(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "9" * 200_000)
    with pytest.raises(CostModelError, match=r"long\.csv: cannot be read as CSV: field larger"):
        read_trace(path)


@pytest.mark.parametrize("name", ["x" * 5000, "x" * 5000 + ".json", "a\0.json", "a\0.safetensors", "a\0.gguf", "a\0"])
def test_paths_that_no_system_has(name: str) -> None:
    for reads in (load, check, lambda path: read_trace(f"{path}.csv")):
        with pytest.raises(CostModelError):
            reads(name)


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        (",1,16,16,", ",1e300,16,16,", "devices must be a whole number of at least 1 and below"),
        ("16,16,1,", "16,16,1e30,", "batch must be a whole number of at least 1 and below"),
        ("0.007", "1e300", "value must be a number of at least 1e-12 and below 1e"),
        ("100,100,decode", "100,5e-324,decode", "generated must be 0 or a number of at least 1"),
        ("100,decode,0.007,s", ",throughput,50,token/s", "generated is empty"),
        ("100,decode,0.007,s", "0,throughput,50,token/s", "generated must be a number of at least 1"),
        ("llama-3-8b", "9" * 400 + "b", "unknown model '9999"),
        ("llama-3-8b", "0b", "unknown model '0b'"),
        ("llama-3-8b", "gemm 0x1x1", "sizes of 'gemm 0x1x1' must be a whole number from 1"),
        ("llama-3-8b", "gemm 1x1x" + "9" * 5000, "must be a whole number from 1 and below"),
        ("llama-3-8b", "attention N=8 K=0 H=128", "sizes of 'attention N=8 K=0 H=128' must be a whole number from 1"),
    ],
)
def test_evidence_that_no_arithmetic_can_hold(tmp_path: Path, change: str, to: str, message: str) -> None:
    row = ROW.replace(change, to)
    if to.startswith(("gemm", "attention")):
        phase = to.split()[0]
        row = row.replace("decode,0.007,s", f"{phase},0.007," + ("s" if phase == "attention" else "FLOP/s"))
    assert row != ROW
    (tmp_path / "mine.csv").write_text(f"{','.join(COLUMNS)}\n{row}\n")
    with pytest.raises(CostModelError, match=message):
        check(tmp_path / "mine.csv")


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        ("_16_", "_0_", "tokens of the metric must be a whole number from 1"),
        ("_16_", f"_{'9' * 5000}_", "tokens of the metric must be a whole number from 1"),
        (",50,", ",0,", "value must be a number above 0"),
        (",50,ms", ",0,tok/s", "value must be a number above 0"),
    ],
)
def test_published_evidence_divided_by_nothing(tmp_path: Path, change: str, to: str, message: str) -> None:
    (tmp_path / "mine.csv").write_text(f"{PUBLISHED}\n{PUBLISHED_ROW.replace(change, to)}\n")
    with pytest.raises(CostModelError, match=message):
        check(tmp_path / "mine.csv")


def test_an_index_that_claims_more_bytes_than_parameters_can_take(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 2**62}}))
    with pytest.raises(ConfigError, match="bytes are too many for the"):
        load(path)


def test_gguf_numbers_that_overflow_are_refused_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the package gguf, of the extra 'lab', is not installed")
    blocks = struct.pack("<eB", float("inf"), 0) + bytes(31)  # an infinite scale times a zero
    head = gguf_bytes({}, {"x": ((1, 32), 8, 0)})
    at = len(head) - len(DATA)
    path = tmp_path / "inf.gguf"
    path.write_bytes(head[:at] + blocks + head[at:])
    with pytest.raises(ConfigError, match=r"tensor 'x' has values that are not finite"):
        read_gguf(path).array("x")


def test_names_too_long_to_compare() -> None:
    assert len(str(unknown_name("model", "llama" * 10_000, ["llama-3-8b"]))) < 200
    with pytest.raises(CostModelError, match="unknown accelerator 3"):
        accelerator(3)
    with pytest.raises(CostModelError, match="a model is named by a string or a path, got 3"):
        load(3)


@pytest.mark.parametrize("figure", ["capacity", "bandwidth", "interconnect", "peaks"])
@pytest.mark.parametrize("value", ["8", -1, nan, True, 1e300, (), Decimal(8)])
def test_accelerators_of_impossible_figures(figure: str, value: object) -> None:
    figures = {"capacity": 10**9, "bandwidth": 10**9, "peaks": {"bf16": 10**12}}
    for wrong in (value, {"bf16": value}) if figure == "peaks" and value != 1e300 else (value,):
        with pytest.raises(CostModelError, match="of mine must"):
            Accelerator("mine", **figures | {figure: wrong})


@pytest.mark.parametrize(
    "options",
    [
        {"reserve": "0.1"}, {"reserve": Decimal("NaN")}, {"reserve": True}, {"parallel": 8}, {"calibrated": 3},
        {"compute": []}, {"textbook": "yes"}, *({"weights": odd} for odd in (nan, inf, -1, b"1", [], True, 65, 1j)),
        {"cache": None}, {"activations": Decimal(1)},
    ],
)  # fmt: skip
def test_deployments_of_wrong_arguments(options: dict) -> None:
    with pytest.raises(CostModelError, match="must be"):
        Deployment(MODEL, H100, **options).decode(1, 1)


def test_deployments_of_no_model_or_accelerator() -> None:
    with pytest.raises(CostModelError, match="model must be a Model"):
        Deployment("llama-3-8b", H100)
    with pytest.raises(CostModelError, match="accelerator must be an Accelerator"):
        Deployment(MODEL, "h100-sxm")


@pytest.mark.parametrize("size", [-1, 1.5, nan, "8", None, True, b"1", [1], Decimal(2), 2**63 + 1])
def test_memory_of_impossible_sizes(size: object) -> None:
    d = Deployment(MODEL, H100)
    for asked in (d.memory_bytes, d.fits, d.wall):
        with pytest.raises(CostModelError, match="batch must be a whole number"):
            asked(size, 1024)
        with pytest.raises(CostModelError, match="context must be a whole number"):
            asked(1, size)
    with pytest.raises(CostModelError, match="context must be a whole number"):
        MODEL.cache_bytes(size)


@pytest.mark.parametrize("options", [{"all_reduce": nan}, {"hidden": 3}, {"pad": "no"}, {"seconds_per_message": "1"}])
def test_spreads_of_wrong_arguments(options: dict) -> None:
    with pytest.raises(CostModelError):
        Parallel(**options)


def test_stages_of_a_model_without_a_width() -> None:
    stated = stated_model(params=10**9, L=4, K=8, H=64, name="stated")
    with pytest.raises(CostModelError, match="stated does not state its width"):
        Deployment(stated, H100, parallel=Parallel(pipeline=2)).decode(2, 8)


@pytest.mark.parametrize("value", [nan, inf, "1", {}, True, Decimal(1)])
def test_targets_and_conditions_that_are_no_numbers(value: object) -> None:
    d = Deployment(MODEL, H100)
    for conditions in ({"latency": value}, {"latency": 0.02, "context": value}, {"ttft": 1.0, "price": value}):
        with pytest.raises(CostModelError, match="must be"):
            d.solve("batch", **conditions)
    for where in ("batch", "context", "prompt", "price", "utilisation"):
        with pytest.raises(CostModelError, match="must be"):
            d.elasticities(**{where: value})


def test_seeds_below_zero() -> None:
    with pytest.raises(CostModelError, match="seed must be a whole number, at least 0, got -1"):
        poisson_arrivals(1.0, 3, seed=-1)


def test_sweeps_too_large_to_print_are_refused_before_they_are_counted(capsys: pytest.CaptureFixture) -> None:
    assert main(["sweep", "llama-3-8b", "--on", "h100-sxm", "batch=1:100000000000"]) == 2
    assert "99,999,999,999 points are too many to print" in capsys.readouterr().err


def test_sweeps_over_an_axis_that_changes_nothing(capsys: pytest.CaptureFixture) -> None:
    assert main(["sweep", "llama-3-8b", "--on", "h100-sxm", "price=1,2", "--metrics", "latency", "--csv"]) == 0
    head, *rows = capsys.readouterr().out.split()
    assert (head, len(rows)) == ("price,latency", 2)
    assert rows[0].split(",")[1] == rows[1].split(",")[1]


def test_a_capacity_beyond_any_batch_is_no_limit() -> None:
    """The answer was 1.9e24 sequences, a batch that every other question refuses."""
    vast = Deployment(load("mixtral-8x7b"), replace(H100, capacity=10**30), parallel=Parallel(tensor=8, data=2))
    assert vast.largest_batch(64) is None
    with pytest.raises(CostModelError, match=r"^batch must be a whole number from 0 to 9,223,372,.*, got 19073"):
        vast.fits(1907348632812499999988476, 64)


def test_a_group_of_experts_reads_a_prompt_of_any_length() -> None:
    """The share of experts left alone was an exact fraction to the power of the tokens: it did not end."""
    spread = Parallel(data=8, expert=8)
    d = Deployment(load("mixtral-8x7b"), H100, parallel=spread)
    assert d.prefill(10**9).seconds > d.prefill(10**6).seconds
