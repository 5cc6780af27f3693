"""Request traces and evidence: small ones made here, then with other cells, other lines, or damaged as text."""

import json
from random import Random

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.evidence import check
from costmodel.evidence.layout import COLUMNS, NEEDED, SCALES, UNITS
from costmodel.evidence.layout import PHASES as PUBLISHED_PHASES
from costmodel.serving import block_hit_ratio
from costmodel.serving.readers import AZURE_COLUMNS, read_trace
from tests.fuzz.damage import JUNK, damaged_text, file_with
from tests.fuzz.harness import Target

NUMBERS = ("1", "2", "16", "100", "0.01", "1e-3", "1e12", "1e300", "5e-324", "2147483647", "2147483648", "0", "-1")
MOMENTS = (
    "2024-02-29 23:59:59.9999999", "2024-03-01 00:00:00", "0001-01-01 00:00:00+23:59", "9999-12-31 23:59:59",
    "2024-03-01T01:02:03.5+01:00", "2024-W09-5", "20240301", "2024-03-01 24:00:00", "2024-03-01 00:00:00.12345678",
)  # fmt: skip
JSON = (0, 1, -1, 2**31, 2**64, 10**40, 1.5, 1e308, float("nan"), float("inf"), None, True, "7", "", [], {}, [0], ["a"])


def _cells(rng: Random, rows: list[list[str]], values: tuple[str, ...]) -> str:
    """Some cells changed, dropped or doubled, some rows moved; one in three damaged as text."""
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        row = rng.choice(rows)
        at, what = rng.randrange(len(row)) if row else 0, rng.random()
        if not row or what < 0.05:
            row.append(rng.choice(values))
        elif what < 0.1:
            row.pop(at)
        elif what < 0.15:
            rng.shuffle(rows)
        else:
            row[at] = rng.choice((*values, *JUNK))
    text = rng.choice(("\n", "\n", "\r\n")).join(",".join(row) for row in rows) + rng.choice(("\n", ""))
    return text if rng.random() < 0.7 else damaged_text(rng, text, rng.randint(1, 3))


def made_azure(rng: Random) -> str:
    """A trace of a few requests, seconds apart."""
    start = rng.randrange(60)
    rows = [list(AZURE_COLUMNS)]
    for i in range(rng.randint(1, 5)):
        moment = f"2024-05-06 07:{start:02}:{i:02}.{rng.randrange(10**7):07}"
        rows.append([moment, str(rng.randint(1, 4000)), str(rng.randint(1, 900))])
    return _cells(rng, rows, (*NUMBERS, *MOMENTS))


def made_mooncake(rng: Random) -> str:
    """A trace of a few requests that share blocks."""
    lines, when = [], 0
    for _ in range(rng.randint(1, 5)):
        when += rng.randrange(900)
        prompt = rng.randint(1, 3000)
        ids = list(range(-(-prompt // 512)))
        lines.append({"timestamp": when, "input_length": prompt, "output_length": rng.randint(1, 99), "hash_ids": ids})
    for _ in range(rng.choice((0, 1, 1, 2))):
        line = rng.choice(lines)
        if line and rng.random() < 0.2:
            line.pop(rng.choice(list(line)))
        elif line:
            line[rng.choice(list(line))] = rng.choice(JSON)
    text = "\n".join(map(json.dumps, lines)) + "\n"
    return text if rng.random() < 0.6 else damaged_text(rng, text, rng.randint(1, 3))


def _read(given: str, name: str) -> str:
    try:
        trace = read_trace(file_with(given, name))
        assert len(trace) == len(trace.prompt) == len(trace.output) > 0
        assert trace.arrival[0] == 0
        assert (np.diff(trace.arrival) >= 0).all()
        assert np.isfinite(trace.arrival).all()
        assert trace.rate >= 0
        assert trace.blocks is None or 0 <= block_hit_ratio(trace) <= 1
    except CostModelError as refusal:
        assert name in str(refusal), refusal
        return "refused"
    return "read"


def tried_azure(given: str) -> str:
    """Read it by its ending."""
    return _read(given, "fuzzed.csv")


def tried_mooncake(given: str) -> str:
    """Read it by its ending."""
    return _read(given, "fuzzed.jsonl")


MODELS = ("llama-3-8b", "llama-2-70b", "acme-13b", "mixtral-8x7b", "0b", "1.5b-", "9999999999b", "llama")
CARDS = ("h100-sxm", "a100-sxm-80gb", "unknown", "m2-ultra", "rtx-4090", "h100", "tpu-v4")
KERNELS = ("gemm 1x4096x4096", "gemm 0x1x1", "gemm 1x2", "attention N=32 K=8 H=128", "attention N=32 K=0 H=1",
           "attention N=1 K=3 H=128", "gemm " + "9" * 40 + "x1x1")  # fmt: skip
SOFTWARE = ("vLLM", "gpt-fast", "TensorRT-LLM 1.0", "", "llama.cpp b99", "none")


def _evidence(rng: Random, name: str) -> list[str]:
    phase = rng.choice(list(UNITS))
    kernel = phase in ("gemm", "gemv", "attention")
    size = lambda: rng.choice(("1", "2", "16", "128", "1024"))  # noqa: E731
    row = {
        "id": name, "model": rng.choice(KERNELS if kernel else MODELS[:4]), "hardware": rng.choice(CARDS[:5]),
        "devices": rng.choice("1128"), "weight_bits": rng.choice(("16", "8", "4")),
        "cache_bits": rng.choice(("16", "8")),
        "batch": size(), "prompt": size(), "generated": size(), "phase": phase,
        "value": rng.choice(("0.01", "1e12", "50")),
        "unit": UNITS[phase], "software": rng.choice(SOFTWARE), "source": "fuzzed", "excluded": "", "note": "",
    }  # fmt: skip
    return [row[column] for column in COLUMNS]


def _published(rng: Random, name: str) -> list[str]:
    size = lambda: rng.choice(("1", "2", "16", "128", "0", ""))  # noqa: E731
    row = {
        "id": name, "model": rng.choice((*MODELS[:4], *KERNELS)), "hardware": rng.choice(CARDS[:5]), "n_devices": "1",
        "batch": size(), "input_len": size(), "output_len": size(), "phase": rng.choice(list(PUBLISHED_PHASES)),
        "metric": rng.choice(("tok_s", "ms_per_token_over_batch", "latency_0_tokens", "latency_16_tokens")),
        "value": rng.choice(NUMBERS), "unit": rng.choice(list(SCALES)), "weight_bits": "16", "kv_bits": "16",
        "source": "fuzzed", "software": rng.choice(SOFTWARE),
    }  # fmt: skip
    return [row[column] for column in (*NEEDED, "weight_bits", "kv_bits", "source", "software")]


def made_evidence(rng: Random) -> str:
    """A few rows in either layout."""
    names = [f"x-{i}" for i in range(rng.randint(1, 3))]
    if rng.random() < 0.7:
        rows = [list(COLUMNS), *(_evidence(rng, name) for name in names)]
    else:
        rows = [[*NEEDED, "weight_bits", "kv_bits", "source", "software"], *(_published(rng, name) for name in names)]
    return _cells(rng, rows, (*NUMBERS, *MODELS, *CARDS, *KERNELS, *UNITS, *SOFTWARE))


def tried_evidence(given: str) -> str:
    """Judge every row."""
    try:
        report = check(file_with(given, "fuzzed.csv"))
        for verdict in report.verdicts:
            numbers = (verdict.bound.measured, verdict.bound.ideal, verdict.forecast)
            assert all(number is None or 0 <= number < float("inf") for number in numbers), verdict
            assert verdict.bound.utilisation is None or verdict.bound.utilisation >= 0
            assert verdict.error is None or -1 <= verdict.error < float("inf")
        assert report.median_error is None or report.median_error >= 0
    except CostModelError as refusal:
        assert "fuzzed.csv" in str(refusal), refusal
        return "refused"
    return "judged"


AZURE = Target("azure", made_azure, tried_azure)
MOONCAKE = Target("mooncake", made_mooncake, tried_mooncake)
EVIDENCE = Target("evidence", made_evidence, tried_evidence)
