"""Traces: the published read to the last row, the malformed refused with file and line, the made-up alike."""

import json
from pathlib import Path

import numpy as np
import pytest

from costmodel.common.errors import CostModelError
from costmodel.serving import Trace, block_hit_ratio, burst_arrivals, poisson_arrivals, read_trace, synthetic_trace
from costmodel.serving.arrivals import TRACES

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
AZURE = HEADER + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9995900,396,109\n"
MOONCAKE = [
    {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]},
    {"timestamp": 27, "input_length": 1025, "output_length": 9, "hash_ids": [0, 1, 2]},
]

# R-trace rows: requests, mean prompt, mean answer, share of blocks seen before
PUBLISHED = {
    "azure_code.csv": (8819, 2047.85, 27.88, None),
    "azure_conv.csv": (19366, 1154.70, 211.13, None),
    "mooncake_conversation.jsonl": (12031, 12035.1, 342.6, 0.3664),
    "mooncake_synthetic.jsonl": (3993, 15325.5, 149.1, 0.6396),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_traces(published: Path, name: str) -> None:
    path = published / "traces" / name
    if not path.is_file():
        pytest.skip(f"no {name} beside the published configurations")
    requests, prompt, output, hits = PUBLISHED[name]
    trace = read_trace(path)
    assert len(trace) == requests
    assert trace.prompt.mean() == pytest.approx(prompt, abs=0.05)
    assert trace.output.mean() == pytest.approx(output, abs=0.05)
    if hits is not None:
        assert block_hit_ratio(trace) == pytest.approx(hits, abs=5e-5)


def test_a_csv_is_read(tmp_path: Path) -> None:
    path = tmp_path / "azure.csv"
    path.write_text(AZURE)
    trace = read_trace(path)
    assert trace.arrival.tolist() == [0, pytest.approx(4.319, abs=1e-9)]
    assert (trace.prompt.tolist(), trace.output.tolist(), trace.blocks) == ([374, 396], [44, 109], None)
    path.write_text("GeneratedTokens, Extra, TIMESTAMP, ContextTokens\n44, x, 2023-11-16 23:59:59.5, 374\n"
                    "1, y, 2023-11-17 00:00:00, 2\n")  # fmt: skip
    trace = read_trace(str(path))
    assert (trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist()) == ([0, 0.5], [374, 2], [44, 1])


def test_a_jsonl_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mooncake.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in MOONCAKE))
    trace = read_trace(path)
    assert (trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist()) == ([0, 0.027], [600, 1025], [5, 9])
    assert (trace.blocks, trace.block_tokens) == ([[0, 1], [0, 1, 2]], 512)
    assert block_hit_ratio(trace) == 2 / 5


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the file is empty"),
        ("\n  \n", 1, "the file is empty"),
        (HEADER, 1, "no request follows"),
        ("TIMESTAMP,ContextTokens\n2023-11-16 18:15:46.68,374\n", 1, "no column GeneratedTokens"),
        (AZURE + "2023-11-16 18:15:51.1,-3,5\n", 4, "ContextTokens must be a whole number from 1, got '-3'"),
        (AZURE + "2023-11-16 18:15:51.1,3,0\n", 4, "GeneratedTokens must be a whole number from 1, got '0'"),
        (AZURE + "2023-11-16 18:15:51.1,3.5,1\n", 4, "ContextTokens must be a whole number"),
        (AZURE + "2023-11-16 18:15:46.7,3,1\n", 4, "time goes backwards, by 4.29959 s"),
        (AZURE + "2023-11-16 18:15:5", 4, "1 fields where the header has 3: is the line whole?"),
        (AZURE + "2023-11-16 18:15:51.1,37", 4, "2 fields where the header has 3"),
        (AZURE + "16/11/2023,3,1\n", 4, "TIMESTAMP must read like"),
        (AZURE + "2023-11-16 18:15:51.1e5,3,1\n", 4, "TIMESTAMP must read like"),
        (AZURE + "2023-11-16 18:15:51+00:00,3,1\n", 4, "TIMESTAMP must keep to one time zone"),
        (HEADER + "\n" + AZURE.partition("\n")[2], 2, "0 fields where the header has 3"),
    ],
)
def test_a_malformed_csv_is_refused_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(CostModelError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}:{line}: {message}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"timestamp": -1}, "timestamp must be a whole number from 0, got '-1'"),
        ({"timestamp": 20}, "time goes backwards, by 0.007 s"),
        ({"input_length": -600}, "input_length must be a whole number from 1, got '-600'"),
        ({"output_length": True}, "output_length must be a whole number from 1, got 'True'"),
        ({"hash_ids": "0"}, "hash_ids must be a list"),
        ({"hash_ids": [0]}, "1 hash_ids for a prompt of 600 tokens in blocks of 512"),
        ({"output_length": None}, "output_length must be a whole number"),
    ],
)
def test_a_malformed_jsonl_is_refused_with_its_line(tmp_path: Path, change: dict, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    rows = [*MOONCAKE, MOONCAKE[0] | {"timestamp": 30} | change]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    with pytest.raises(CostModelError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}:3: {message}")


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ('{"timestamp": 30, "input_len', "not a JSON object: is the line whole?"),
        ("[1]", "must be a JSON object"),
        ("", "not a JSON object"),
        ('{"timestamp": 30, "input_length": 5, "output_length": 5}', "no key hash_ids"),
    ],
)
def test_half_a_line_of_jsonl_is_refused(tmp_path: Path, last: str, message: str) -> None:
    path = tmp_path / "half.jsonl"
    path.write_text("\n".join([*(json.dumps(row) for row in MOONCAKE), last, json.dumps(MOONCAKE[1])]))
    with pytest.raises(CostModelError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}:3: {message}")


def test_files_that_are_no_traces(tmp_path: Path) -> None:
    with pytest.raises(CostModelError, match=r"none\.csv: cannot be read: No such file"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(CostModelError, match=r"a trace is a \.csv like Azure's or a \.jsonl"):
        read_trace("requests.parquet")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CostModelError, match="it is not UTF-8 text"):
        read_trace(tmp_path / "binary.csv")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([], [], []), "at least one request"),
        (([1.0, 0.5], [1, 1], [1, 1]), "never decreasing"),
        (([0.0, np.nan], [1, 1], [1, 1]), "finite"),
        (([0.0], [0], [1]), "prompt of request 0 must be at least 1, got 0"),
        (([0.0], [1], [-4]), "output of request 0 must be at least 1, got -4"),
        (([0.0], [1.5], [1]), "prompt must be 1 whole numbers"),
        (([0.0], [1, 2], [1]), "prompt must be 1 whole numbers"),
        (([0.0], [2**31], [1]), r"prompt must be below 2\^31"),
    ],
)
def test_a_trace_refuses_what_cannot_be(columns: tuple, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        Trace(*columns)


@pytest.mark.parametrize("like", TRACES)
def test_made_up_requests_are_like_the_published_ones(like: str) -> None:
    """Seeded; of 20,000 requests the rate and both means come within 4 % of the published, the hits within 0.02."""
    trace = synthetic_trace(like, 20_000, seed=7)
    rows = {"azure-conversation": "azure_conv.csv", "azure-code": "azure_code.csv"}
    _, prompt, output, hits = PUBLISHED[rows.get(like, "mooncake_conversation.jsonl")]
    assert trace.rate == pytest.approx(TRACES[like].rate, rel=0.04)
    assert trace.prompt.mean() == pytest.approx(prompt, rel=0.04)
    assert trace.output.mean() == pytest.approx(output, rel=0.04)
    if hits is None:
        assert trace.blocks is None
    else:
        assert block_hit_ratio(trace) == pytest.approx(hits, abs=0.02)
        assert all(len(ids) == -(-n // 512) for ids, n in zip(trace.blocks, trace.prompt, strict=True))


def test_arrivals_are_seeded_and_keep_their_rate() -> None:
    """10,000 exponential gaps: mean 1/rate within 4 %, deviation within 6 % (four standard errors each)."""
    gaps = np.diff(poisson_arrivals(5.0, 10_001, seed=3))
    assert gaps.mean() == pytest.approx(0.2, rel=0.04)
    assert gaps.std() == pytest.approx(0.2, rel=0.06)
    assert (poisson_arrivals(5.0, 10, seed=3) == poisson_arrivals(5.0, 10, seed=3)).all()
    assert (poisson_arrivals(5.0, 10, seed=3) != poisson_arrivals(5.0, 10, seed=4))[1:].all()
    bursts = burst_arrivals(5.0, 10_000, burst=10, seed=3)
    assert (np.unique(bursts, return_counts=True)[1] == 10).all()
    assert len(bursts) / bursts[-1] == pytest.approx(5.0, rel=0.15)
    for rate in (0, -1, float("nan"), float("inf"), True):
        with pytest.raises(CostModelError, match="a rate must be above 0"):
            poisson_arrivals(rate, 5)
    with pytest.raises(CostModelError, match="unknown trace 'azure'"):
        synthetic_trace("azure")


def test_blocks_belong_to_requests() -> None:
    with pytest.raises(CostModelError, match="blocks must be given for each of 2 requests, got 1"):
        Trace([0.0, 1.0], [1, 1], [1, 1], blocks=[[0]])
    with pytest.raises(CostModelError, match="does not say which blocks"):
        block_hit_ratio(Trace([0.0], [1], [1]))
