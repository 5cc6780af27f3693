import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sympy import sympify

from costmodel import CostModelError, Deployment, Parallel, accelerator, accelerators, load, preset_config, presets
from costmodel.calibration import fitted
from costmodel.cli import main
from costmodel.cli.explain import own_formula
from costmodel.quantities import QUANTITIES, At
from costmodel.serving import Slo, simulate, synthetic_trace
from costmodel.symbols import B, M, P, S, b_a, b_kv, b_w, capacity, memory_bandwidth, peak

SIZE = ("size", "llama-3-8b", "--on", "h100-sxm")
SIZE_KEYS = [
    "model", "accelerator", "params", "weight_bytes", "cache_bytes_per_sequence", "memory_bytes", "capacity_bytes",
    "fits", "wall", "largest_batch", "longest_context", "ttft_s", "seconds_per_token", "tokens_per_s",
    "tokens_per_s_per_user", "bound", "intensity", "ridge", "method", "forecast_error",
]  # fmt: skip
INSPECT_KEYS = [
    "family", "params", "text_params", "active_params", "weight_bytes", "cache_elements", "cache_bytes", "tied_head",
]  # fmt: skip


class Command:
    """Runs the command in this process and reads what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        try:
            assert main(arguments) == code
        except SystemExit as stop:
            assert stop.code == code, self.capsys.readouterr()
        out, err = self.capsys.readouterr()
        assert (err == "") == (code == 0)
        assert (out == "") or code == 0
        return err if code else out

    def json(self, *arguments: str) -> dict:
        return json.loads(self(*arguments, "--json"), parse_constant=pytest.fail)


@pytest.fixture
def command(capsys: pytest.CaptureFixture) -> Command:
    return Command(capsys)


def test_size_answers_under_fixed_keys(command: Command) -> None:
    found = command.json(*SIZE, "--batch", "16", "--context", "8192")
    assert list(found) == SIZE_KEYS
    deployment = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    step = deployment.decode(16, 8192)
    assert (found["model"], found["accelerator"]) == ("llama-3-8b", "h100-sxm")
    assert (found["params"], found["weight_bytes"], found["capacity_bytes"]) == (8030261248, 16060522496, 80 * 10**9)
    assert found["cache_bytes_per_sequence"] == 8192 * 131_072
    assert found["memory_bytes"] == 16060522496 + 16 * 8192 * 131_072
    assert (found["fits"], found["wall"], found["largest_batch"]) == (
        True,
        None,
        (80 * 10**9 - 16060522496) // (8192 * 131_072),
    )
    assert found["longest_context"] == (80 * 10**9 - 16060522496) // (16 * 131_072)
    assert found["seconds_per_token"] == step.seconds_per_token
    assert (
        found["tokens_per_s"] == pytest.approx(16 * found["tokens_per_s_per_user"]) == 16 / found["seconds_per_token"]
    )
    assert found["ttft_s"] == deployment.prefill(8192).seconds
    assert (found["bound"], found["ridge"]) == ("memory", 989 / 3.35)
    assert all(isinstance(found[k], int) for k in SIZE_KEYS if k.endswith("bytes") or k == "params")


def test_size_over_several_devices(command: Command) -> None:
    found = command.json("size", "llama-3-70b", "--on", "h100-sxm", "--tensor", "8", "--batch", "32")
    assert list(found) == [*SIZE_KEYS, "devices", "communication_s"]
    assert (found["devices"], found["fits"], found["params"]) == (8, True, 70553706496)
    d = Deployment(load("llama-3-70b"), accelerator("h100-sxm"), parallel=Parallel(tensor=8))
    assert found["communication_s"] == float(d.decode(32, 1024).timing.communication_seconds) > 0
    assert "  communication  " in command("size", "llama-3-70b", "--on", "h100-sxm", "--tensor", "8", "--batch", "32")
    assert "multiple of" in command("size", "llama-3-8b", "--on", "h100-sxm", "--tensor", "3", code=2)


def test_size_defaults_answer_one_user_at_1024(command: Command) -> None:
    found = command.json(*SIZE)
    assert found == command.json(
        *SIZE,
        "--batch",
        "1",
        "--context",
        "1024",
        "--prompt",
        "1024",
        "--weights",
        "bf16",
        "--cache",
        "bf16",
        "--reserve",
        "0",
    )
    read = load("llama-3-8b").decode(1, 1024).bytes
    assert found["seconds_per_token"] == pytest.approx(read / 3.35e12)
    assert found["seconds_per_token"] == pytest.approx(
        (16060522496 - 2 * 128256 * 4096 + 1024 * 131_072) / 3.35e12, rel=1e-3
    )


def test_textbook_gives_the_published_rows(command: Command) -> None:
    for batch, memory, latency, throughput in (
        (1, 26869760000, 0.00802082388059702, 124.675471608232),
        (64, 79717990400, 0.0237964150447761, 2689.48074235449),
        (256, 240779264000, 0.0718744071641791, 3561.76850843767),
    ):
        found = command.json("size", "llama-2-13b", "--on", "h100-sxm", "--batch", str(batch), "--textbook")
        assert found["memory_bytes"] == memory
        assert found["seconds_per_token"] == pytest.approx(latency, rel=1e-13)
        assert found["tokens_per_s"] == pytest.approx(throughput, rel=1e-13)
        assert found["fits"] == (batch < 256)
    assert found["wall"] == "cache"


def test_size_formats_reserve_and_prompt(command: Command) -> None:
    found = command.json(
        "size",
        "Llama-3-8B",
        "--on",
        "H200",
        "--weights",
        "int4",
        "--cache",
        "fp8",
        "--reserve",
        "0.1",
        "--prompt",
        "4096",
    )
    assert (found["weight_bytes"], found["cache_bytes_per_sequence"]) == (8030261248 // 2, 1024 * 65_536)
    assert found["largest_batch"] == (141 * 9 * 10**8 - 8030261248 // 2) // (1024 * 65_536)
    assert (
        found["ttft_s"]
        == Deployment(load("llama-3-8b"), accelerator("h200-sxm"), weights="int4", cache="fp8").prefill(4096).seconds
    )


def test_unbounded_context_is_null(command: Command) -> None:
    assert command.json("size", "mistral-7b-v0.1", "--on", "h100-sxm")["longest_context"] is None
    assert "unbounded" in command("size", "mistral-7b-v0.1", "--on", "h100-sxm")


def test_weights_that_do_not_fit_are_the_wall(command: Command) -> None:
    found = command.json("size", "llama-3-70b", "--on", "h100-sxm")
    assert (found["fits"], found["wall"], found["largest_batch"], found["longest_context"]) == (False, "weights", 0, 0)
    assert "does not fit: the weights alone" in command("size", "llama-3-70b", "--on", "h100-sxm")


def test_a_config_is_sized_like_its_preset(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "qwen.json"
    path.write_text(command("models", "--config", "qwen2.5-7b"))
    assert json.loads(path.read_text()) == preset_config("qwen2.5-7b")
    file, name = (command.json("size", m, "--on", "h100-sxm") for m in (str(path), "qwen2.5-7b"))
    assert file.pop("model") == str(path)
    assert name.pop("model") == "qwen2.5-7b"
    assert file == name


def test_words_say_what_was_assumed(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({k: v for k, v in preset_config("llama-3-8b").items() if k != "torch_dtype"}))
    assert "note: no dtype is stated: bf16 is assumed" in command("size", str(path), "--on", "h100-sxm")
    assert "note: t4 has no bf16 units: timed at its fp16 peak" in command("size", "llama-3-8b", "--on", "t4")
    assert "made for contexts up to 8,192" in command(*SIZE, "--context", "9000")


def test_unknown_quantization_needs_a_format(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(preset_config("llama-2-7b") | {"quantization_config": {"quant_method": "magic2bit"}}))
    for call in (("inspect", str(path)), ("size", str(path), "--on", "h100-sxm")):
        error = command(*call, code=2)
        assert str(path) in error
        assert "'magic2bit': bytes per weight cannot be known" in error
        assert command.json(*call, "--weights", "int4")["weight_bytes"] == 6738415616 // 2


def test_inspect_counts_under_fixed_keys(command: Command) -> None:
    found = command.json("inspect", "qwen3-0.6b")
    assert list(found) == INSPECT_KEYS
    assert found == {
        "family": "qwen3",
        "params": 596049920,
        "text_params": 596049920,
        "active_params": 596049920,
        "weight_bytes": 1192099840,
        "cache_elements": 58720256,
        "cache_bytes": 117440512,
        "tied_head": True,
    }
    assert command.json("inspect", "qwen3-0.6b", "--context", "32768")["cache_elements"] == 1879048192
    assert "596,049,920" in command("inspect", "qwen3-0.6b")
    assert "unembedding" in command("inspect", "qwen3-0.6b", "--ledger")


def test_lists(command: Command) -> None:
    models, hardware = command("models"), command("hardware")
    assert all(name in models for name in presets())
    assert all(name in hardware for name in accelerators())
    assert [m["name"] for m in command.json("models")] == list(presets())
    assert command.json("hardware")[0]["peaks"]
    assert all(record.source in command("hardware", "--sources") for record in (accelerator("h100-sxm"),))


@pytest.mark.parametrize("name", QUANTITIES)
def test_explain_every_quantity(command: Command, name: str) -> None:
    text = command("explain", name, "--model", "llama-3-8b")
    assert text.startswith(name)
    assert "llama-3-8b on h100-sxm" in text
    assert "symbol" in command("explain", name)
    assert "*" not in command("explain", name, "--latex").splitlines()[2]


def test_explain_shows_formula_symbols_and_value(command: Command) -> None:
    assert "2*H*K*L*S*b_kv" in (general := command("explain", "cache-bytes"))
    assert "key/value heads" in general
    text = command("explain", "cache-bytes", "--model", "llama-3-8b", "--context", "32000")
    assert "  65536*S*b_kv\n" in text
    assert "4,194,304,000 byte" in text


FIRST = {load(name).family: name for name in reversed(presets())}  # of every family on record


@pytest.mark.parametrize("model", FIRST.values())
def test_the_formula_that_explain_prints_gives_the_value_beside_it(model: str) -> None:
    device, at = accelerator("h200-sxm"), At(8, 2048, 1000, 100)
    d = Deployment(load(model), device)
    places = {B: at.batch, S: at.context, P: at.prompt, M: at.generated, b_w: d.widths.weight, b_kv: 2, b_a: 2,
              peak: device.peak(), memory_bandwidth: device.bandwidth, capacity: device.capacity}  # fmt: skip
    compared = 0
    for asked in QUANTITIES.values():
        if asked.name == "naive-flops" or (isinstance(formula := own_formula(asked, d.model, None), str)):
            continue  # a sum over the steps, or refused
        try:
            value = asked.of(d, at)
        except CostModelError:
            continue  # a layer that the model has not
        found = sympify(formula).subs(places)
        assert float(found) == pytest.approx(float(value), rel=1e-12), asked.name
        compared += 1
    assert compared >= 18


def test_tour_computes_the_headlines(command: Command) -> None:
    text = command("tour")
    for headline in (
        "295",
        "4.776 ms",
        "209 tokens/s",
        "0.335%",
        "16 ms",
        "26.87 GB",
        "2,689 tokens/s",
        "3,562",
        "131,072",
        "4.194 GB",
        "15 such",
        "248",
        "23",
        "33.41 GB",
        "6,417",
        "65.63 GB",
        "13,068",
    ):
        assert headline in text


SERVE = ("serve", "llama-3-8b", "--on", "h100-sxm")
PLAN = ("plan", "llama-3-8b", "--rate", "5", "--prompt", "1000", "--generated", "300")


def test_serve_answers_under_fixed_keys(command: Command) -> None:
    asked = (*SERVE, "--rate", "5", "--requests", "50", "--slo")
    found = command.json(*asked, "ttft=0.5,tpot=0.05")
    assert list(found) == [
        "requests", "makespan_s", "ttft_s", "tpot_s", "e2e_s", "tokens_per_s", "goodput", "utilisation",
        "peak_cache_bytes", "prefix_hit_ratio", "rejected",
    ]  # fmt: skip
    assert all(list(found[name]) == ["p50", "p90", "p99"] for name in ("ttft_s", "tpot_s", "e2e_s"))
    result = simulate(synthetic_trace(requests=50, rate=5.0), Deployment(load("llama-3-8b"), accelerator("h100-sxm")))
    assert found == result.summary(Slo(ttft=0.5, tpot=0.05))
    assert found == command.json(
        *SERVE, "--rate", "5", "--requests", "50", "--slo", "tpot=0.05,ttft=0.5", "--seed", "0"
    )


def test_serve_reads_traces_and_takes_policies(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "mooncake.jsonl"
    row = {"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [0, 1]}
    path.write_text("\n".join(json.dumps(row) for _ in range(3)))
    for policy in ("static", "continuous", "chunked", "disaggregated"):
        found = command.json(*SERVE, "--trace", str(path), "--policy", policy)
        assert (found["requests"], found["prefix_hit_ratio"], found["rejected"]) == (3, pytest.approx(2 / 3), [])
    assert command.json(*SERVE, "--trace", str(path), "--replicas", "3")["prefix_hit_ratio"] == 0
    text = command(*SERVE, "--trace", str(path), "--preempt", "swap", "--slo", "e2e=9")
    assert "3 requests" in text
    assert "within e2e ≤ 9 s" in text
    assert "66.7% of the prompts' blocks" in text
    long = tmp_path / "long.jsonl"
    blocks = {n: {"input_length": 512 * n, "hash_ids": list(range(n))} for n in (2, 4000)}
    long.write_text("\n".join(json.dumps(row | prompt) for prompt in blocks.values()))
    assert "rejected     1 requests; the first, 1: its cache of" in command(*SERVE, "--trace", str(long))
    path.write_text(path.read_text()[:-9])
    assert f"{path}:3: not a JSON object: is the line whole?" in command(*SERVE, "--trace", str(path), code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SERVE], "one of the arguments --trace --rate is required"),
        ([*SERVE, "--rate", "0"], "--rate: must be a number above 0, got '0'"),
        ([*SERVE, "--rate", "5", "--slo", "ttft"], "--slo: must read like ttft=0.5"),
        ([*SERVE, "--rate", "5", "--slo", "speed=3"], "--slo: must read like ttft=0.5"),
        ([*SERVE, "--rate", "5", "--policy", "orca"], "invalid choice: 'orca'"),
        ([*SERVE, "--rate", "5", "--like", "azure"], "unknown trace 'azure'"),
        ([*SERVE, "--trace", "/nowhere/trace.csv"], "/nowhere/trace.csv: cannot be read"),
        (["serve", "llama-3-70b", "--on", "h100-sxm", "--rate", "5"], "llama-3-70b does not fit on h100-sxm"),
        (["size", "llama-3-9b", "--on", "h100-sxm"], "unknown model 'llama-3-9b'; did you mean llama-3-8b"),
        (["size", "llama-3-8b", "--on", "h100-smx"], "unknown accelerator 'h100-smx'; did you mean h100-sxm"),
        (["size", "llama-3-8b", "--on", "h100"], "accelerator 'h100' is ambiguous"),
        (["size", "llama-3-8b"], "--on"),
        ([*SIZE, "--batch", "0"], "--batch: must be a whole number from 1"),
        ([*SIZE, "--batch", "-4"], "--batch"),
        ([*SIZE, "--context", "1e3"], "--context: must be a whole number from 1"),
        ([*SIZE, "--prompt", "nan"], "--prompt: must be a whole number from 1"),
        ([*SIZE, "--reserve", "1"], "--reserve: must be a share at least 0 and below 1, got '1'"),
        ([*SIZE, "--reserve", "nan"], "--reserve: must be a share"),
        ([*SIZE, "--reserve", "a tenth"], "--reserve: must be a share at least 0 and below 1, got 'a tenth'"),
        ([*SERVE, "--rate", "often"], "--rate: must be a number above 0, got 'often'"),
        (["what-if", *SIZE[1:], "--utilisation", "half"], "--utilisation: must be a share"),
        (["explore", "--out", "/"], "cannot write /: Is a directory"),
        ([*SIZE, "--reserve", "1e-999999999"], "--reserve: must be a share"),
        ([*SIZE, "--weights", "int5"], "unknown number format 'int5'; did you mean int"),
        ([*SIZE, "--cache", ""], "unknown number format ''"),
        (["size", "/nowhere/config.json", "--on", "h100-sxm"], "/nowhere/config.json: cannot be read"),
        (["inspect", "/"], "/ is a directory"),
        (["inspect", "llama-3-8b", "--context", "9" * 5000], "--context: must be a whole number from 1"),
        (["models", "--config", "8b"], "8b is a rounded model"),
        (["models", "--config", "gpt-9"], "unknown model 'gpt-9'"),
        (["explain", "beauty"], "unknown quantity 'beauty'"),
        (["explain", "latency", "--model", "zzz"], "unknown model 'zzz'"),
        (["explain", "latency", "--on", "nope"], "--on means nothing without --model"),
        (["explain", "latency", "--batch", "1"], "--batch means nothing without --model"),
        ([*SERVE, "--trace", "x.csv", "--like", "azure-code"], "--like means nothing without --rate"),
        ([*SERVE, "--trace", "x.csv", "--seed", "0"], "--seed means nothing without --rate"),
        (["explore", "--prompt", "3", "--out", "x"], "unrecognized arguments: --prompt 3"),
        (["sweep", *SIZE[1:], "batch=1", "--csv", "--json"], "--json: not allowed with argument --csv"),
        (["solve", "batch", *SIZE[1:], "--latency", "inf"], "--latency: must be a number above 0, got 'inf'"),
        (["solve", "batch", *SIZE[1:], "--latency", "1", "--price", "-3"], "--price: must be a number of at least 0"),
        (
            ["solve", "batch", *SIZE[1:], "--latency", "1", "--utilisation", "0"],
            "--utilisation: must be a share above 0",
        ),
        (["what-if", *SIZE[1:], "--utilisation", "0"], "--utilisation: must be a share above 0 and at most 1, got '0'"),
        (["what-if", *SIZE[1:], "--metric", "dollars_per_million"], "dollars need a price of one device for one hour"),
        ([*SIZE, "--calibrated", "nope"], "unknown family of software 'nope'; known: average, bitsandbytes,"),
        ([*SIZE, "--calibrated", ""], "unknown family of software ''"),
        ([*PLAN, "--on", "h100-sxm=inf", "--json"], "the price must be a number of at least 0, got 'inf'"),
        ([*PLAN, "--on", "h100-sxm=1", "h100-sxm=2"], "the accelerator h100-sxm is given twice"),
        ([*PLAN, "--on", "h200=1", "h200-sxm=5"], "the accelerator h200-sxm is given twice"),
        ([*PLAN, "--on", "h200=1", "--weights", "int4", "INT4"], "--weights int4 is given twice"),
        (["sweep", *SIZE[1:], "batch=1e400", "--json"], "batch must be finite numbers above 0"),
        (["sweep", *SIZE[1:], "context=1,nan"], "context must be finite numbers above 0"),
        (["sweep", *SIZE[1:], "batch=1", "batch=2"], "the axis batch is given twice"),
        (["sweep", *SIZE[1:], "bits=4", "weight_bits=8"], "the axis weight_bits is given twice"),
        (
            ["sweep", *SIZE[1:], "weights=int4", "--weights", "int8"],
            "weights is given twice: as an axis, and by --weights",
        ),
        (["sweep", *SIZE[1:], "replicas=1,2", "--replicas", "3"], "replicas is given twice: as an axis, and by"),
        (["sweep", *SIZE[1:], "batch=1", "--metrics", "latency,latency"], "the metric latency is given twice"),
        ([*SIZE, "--tensor", "3"], "query heads (32) must be a multiple of the 3 devices that share it"),
        (["host", "--context", "1"], "context must be at least 2 to decode after a prompt, got 1"),
        (["fly"], "invalid choice: 'fly'"),
        ([], "required: COMMAND"),
    ],
)
def test_bad_input_exits_2_and_says_why(command: Command, arguments: list[str], message: str) -> None:
    assert message in command(*arguments, code=2)


def test_python_m_is_the_same_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "costmodel", "inspect", "8b", "--json"], capture_output=True, check=True, text=True
    )
    assert json.loads(ran.stdout)["params"] == 8 * 10**9
    assert ran.stderr == ""


def test_a_closed_pipe_is_no_error() -> None:
    ran = subprocess.run(
        f"{sys.executable} -m costmodel hardware --sources | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.count("\n") == 1
    assert ran.stderr == ""


def test_an_unknown_family_can_be_assumed_with_a_warning(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    llama = preset_config("llama-3-8b") | {"model_type": "novel", "architectures": ["NovelForCausalLM"]}
    path.write_text(json.dumps(llama))
    assert "unsupported model_type 'novel'" in command("inspect", str(path), code=2)
    assert command.json("inspect", str(path), "--assume-family", "llama")["params"] == 8030261248
    assert "note: model_type 'novel' is read as llama, as asked" in command(
        "inspect", str(path), "--assume-family", "llama"
    )
    assert "cannot assume family 'zzz'" in command("inspect", str(path), "--assume-family", "zzz", code=2)
    path.write_text(json.dumps(llama | {"architectures": ["LlamaForCausalLM"]}))
    assert "model_type 'novel' is not known: taken as llama" in command("inspect", str(path))


def test_inspect_tells_towers_experts_and_quantization_apart(command: Command) -> None:
    gemma, qwen = command.json("inspect", "gemma-3-27b-it"), command.json("inspect", "qwen3-30b-a3b")
    assert gemma["params"] - gemma["text_params"] == 423_060_336
    assert qwen["active_params"] == 3_353_032_704 < qwen["params"] == 30_532_122_624
    assert command.json("inspect", "gpt-oss-20b")["weight_bytes"] == 13_761_264_768


def test_solve_gives_the_root_and_what_can_be_had(command: Command) -> None:
    found = command.json("solve", "batch", *SIZE[1:], "--latency", "0.02", "--context", "8192")
    assert (found["usable"], found["fits"], found["method"]) == (48, True, "closed form")
    assert found["value"] == pytest.approx(48.1769, rel=1e-5)
    assert "usable 48" in command("solve", "batch", *SIZE[1:], "--latency", "0.02", "--context", "8192")
    refused = command("solve", "batch", *SIZE[1:], "--latency", "0.002", code=2)
    assert refused == "costmodel solve: error: no batch reaches 2 ms: reading the weights alone takes 4.48 ms\n"
    cost = command.json(
        "solve", "utilisation", *SIZE[1:], "--dollars-per-million", "1", "--price", "3", "--batch", "32"
    )
    assert 0 < cost["value"] < 1


def test_what_if_ranks_the_levers(command: Command) -> None:
    found = command.json("what-if", *SIZE[1:], "--batch", "32", "--context", "8192")
    d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    assert found["elasticities"] == dict(d.elasticities(batch=32, context=8192).levers)
    assert (found["bound"], found["other_branch"]) == ("memory", None)
    assert "bandwidth" in command("what-if", *SIZE[1:], "--metric", "dollars_per_million", "--price", "3")


def test_sweep_prints_one_row_for_each_point(command: Command) -> None:
    axes = ("batch=1,8", "context=1024:8193:7168", "weights=bf16,int4")
    found = command.json("sweep", *SIZE[1:], *axes)
    assert len(found["points"]) == 8
    small = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), weights="int4").decode(8, 8192)
    point = {"batch": 8, "context": 8192, "weights": "int4"}
    row = next(p for p in found["points"] if p.items() >= point.items())
    assert row["latency"] == small.seconds_per_token
    assert command("sweep", *SIZE[1:], *axes, "--csv").splitlines()[0] == (
        "batch,context,weights,latency,throughput,memory"
    )
    assert "latency [s]" in command("sweep", *SIZE[1:], "batch=1,8")
    for bad in ("batch", "batch=x", "batch=1:2:3:4", "parallel=0", "speed=1,2", "batch=1:20001"):
        assert "costmodel sweep: error: " in command("sweep", *SIZE[1:], bad, code=2)


def test_plan_names_the_best_and_the_reasons(command: Command) -> None:
    asked = ("--rate", "5", "--prompt", "1000", "--generated", "300", "--latency", "0.02", "--weights", "bf16", "int4")
    found = command.json("plan", "llama-3-8b", "--on", "h100-sxm=3", "l40s=1", *asked)
    assert (found["best"]["hardware"], found["best"]["weights"], found["best"]["dollars_per_hour"]) == (
        "l40s",
        "int4",
        1,
    )
    assert found["runner_up"]["hardware"] == "h100-sxm"
    assert len(found["rejected"]) == 2
    assert "the cheapest: $1.00 an hour" in command("plan", "llama-3-8b", "--on", "h100-sxm=3", "l40s=1", *asked)
    for bad in ("l40s", "l40s=free", "l40s=-1"):
        assert "costmodel plan: error: " in command("plan", "llama-3-8b", "--on", bad, *asked, code=2)


def test_a_calibrated_answer_names_its_software_and_error(command: Command) -> None:
    assert "(forecast for average software, from published measurements)" in (said := command(*SIZE, "--calibrated"))
    assert "a forecast: " in said
    assert "a forecast: " not in command(*SIZE)
    assert "(forecast for vllm, from published measurements)" in command(*SIZE, "--calibrated", "vLLM 0.12.0")
    found = command.json(*SIZE, "--calibrated", "vllm")
    assert (found["method"], found["forecast_error"]) == ("forecast for vllm", fitted().stated_error)
    assert command.json(*SIZE, "--calibrated", "average")["method"] == "forecast for average software"
    assert (command.json(*SIZE)["method"], command.json(*SIZE)["forecast_error"]) == ("roofline", None)
    assert command.json(*SIZE, "--textbook")["method"] == "textbook"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said_in_a_line() -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "costmodel", "hardware"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ran.returncode, ran.stderr) == (2, "costmodel hardware: error: No space left on device\n")


def test_a_terminal_of_few_letters_shows_the_rest_as_question_marks() -> None:
    asked = [sys.executable, "-m", "costmodel", *SERVE, "--rate", "5", "--requests", "5", "--slo", "ttft=1"]
    poor = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    ran = subprocess.run(asked, capture_output=True, env=poor, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"within ttft ? 1 s" in ran.stdout


def test_the_cache_column_of_the_models_is_what_explain_says(command: Command) -> None:
    line = next(line for line in command("models").splitlines() if line.startswith("gemma-3-1b-it"))
    assert line.split()[3] == "26,624"
    assert "26,624 byte" in command("explain", "cache-bytes-per-token", "--model", "gemma-3-1b-it")
    assert "cache B/token, windows open" in command("models")


def test_nothing_is_said_of_the_head_of_a_model_known_by_its_size(command: Command) -> None:
    assert "head " not in command("inspect", "8b")
    assert command.json("inspect", "8b")["tied_head"] is None
    assert "head               its own matrix" in command("inspect", "llama-3-8b")


def test_bits_are_an_axis_under_their_full_name(command: Command) -> None:
    assert [p["weight_bits"] for p in command.json("sweep", *SIZE[1:], "bits=4,8")["points"]] == [4, 8]


def test_the_footer_of_the_evidence_counts_and_says_what_was_fitted(command: Command) -> None:
    text = command("evidence", "--model", "palm", "--hardware", "tpu")
    assert "4 rows, 4 honest, 0 of these beat the bound" in text
    assert re.search(r"decode forecasts, on these rows \(most of them fitted to\): off by \d+% at the median", text)


def test_an_interrupted_command_ends_as_a_shell_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("costmodel.cli.hardware.run", interrupted)
    assert main(["hardware"]) == 130


def test_a_share_of_one_is_all_of_the_time(command: Command) -> None:
    asked = ("what-if", *SIZE[1:], "--price", "2")
    assert command(*asked, "--utilisation", "1.0") == command(*asked)


def test_size_says_what_is_multiplied_in(command: Command) -> None:
    fp8 = ("size", "llama-3-8b", "--on", "h100-sxm", "--weights", "fp8")
    assert "arithmetic bf16" in command(*fp8)
    bound = command(*fp8, "--compute", "fp8")
    forecast = command(*fp8, "--calibrated")
    for text in (bound, forecast):
        assert "weights fp8, cache bf16, arithmetic fp8" in text
        assert "ridge 590.7" in text
    first = [json.loads(command(*fp8, *more, "--json"))["ttft_s"] for more in (("--compute", "fp8"), ("--calibrated",))]
    assert first[0] < first[1]  # the bound of the same arithmetic is never beaten
    assert main([*fp8, "--compute", "fp7"]) == 2
    assert main([*fp8, "--compute", "fp8", "--calibrated"]) == 2


def test_every_question_can_be_asked_of_a_forecast(command: Command) -> None:
    on = ("llama-3-8b", "--on", "h100-sxm")
    forecast = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), calibrated="vllm")
    found = forecast.solve("batch", latency=0.02)
    assert f"usable {found.usable} " in command("solve", "batch", *on, "--latency", "0.02", "--calibrated", "vllm")
    asked = json.loads(command("what-if", *on, "--batch", "32", "--calibrated", "vllm", "--json"))
    assert asked["value"] == forecast.decode(32, 1024).seconds_per_token
    swept = json.loads(command("sweep", *on, "batch=1,32", "--calibrated", "vllm", "--json"))
    assert [point["latency"] for point in swept["points"]] == pytest.approx(
        [forecast.decode(batch, 1024).seconds_per_token for batch in (1, 32)], rel=1e-14
    )
    assert swept["attributes"]["method"] == "calibrated"
    load_ = ("--rate", "20", "--prompt", "1000", "--generated", "300")
    planned = json.loads(
        command("plan", "llama-3-8b", "--on", "h100-sxm=2.5", *load_, "--calibrated", "vllm", "--json")
    )
    best = planned["best"]
    assert best["seconds_per_token"] == forecast.decode(best["batch"], 1300).seconds_per_token
    for text in (
        command("solve", "batch", *on, "--latency", "0.02", "--calibrated"),
        command("what-if", *on, "--calibrated"),
        command("sweep", *on, "batch=1,2", "--calibrated"),
        command("plan", "llama-3-8b", "--on", "h100-sxm=2.5", *load_, "--calibrated"),
    ):
        assert text.splitlines()[-1].startswith("note: a forecast for average software: half of such forecasts")
    with pytest.raises(SystemExit):
        main(["solve", "batch", *on, "--latency", "0.02", "--calibrated", "foo"])


def test_a_device_may_be_free_and_no_less(command: Command, capsys: pytest.CaptureFixture) -> None:
    asked = ("plan", "llama-3-8b", "--rate", "1", "--prompt", "1000", "--generated", "300")
    assert json.loads(command(*asked, "--on", "h100-sxm=0", "--json"))["best"]["dollars_per_hour"] == 0
    assert main([*asked, "--on", "h100-sxm=-1"]) == 2
    assert "must be a number of at least 0, got '-1'" in capsys.readouterr().err
