"""Measure a CUDA device with PyTorch and append rows of evidence: `python tests/oracles/measure_cuda.py rows.csv`.

Rows: the best matrix multiplication per dtype (FLOP/s), streaming weights past one activation (byte/s), and, with
--model, decode steps of a Hugging Face model that is already on this machine (seconds per step). They are checked with
`costmodel evidence --check rows.csv`. Without a CUDA device it says so and writes nothing.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from costmodel.common.errors import UnknownNameError
from costmodel.evidence.layout import COLUMNS
from costmodel.evidence.names import device_named

SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 13312), (8192, 28672, 8192))
STREAMED = (16384, 51200)  # 1.7 GB in 16 bits: more than any cache holds
BATCHES, CONTEXT = (1, 8, 64), 1024


def refuse(message: str) -> None:
    """Say why nothing can be measured, and stop with code 2."""
    print(f"measure_cuda: {message}", file=sys.stderr)
    raise SystemExit(2)


def seconds(run: Callable[[], object], rounds: int = 20) -> float:
    """The median of several runs by CUDA events, after three to warm up [s]."""
    import torch

    for _ in range(3):
        run()
    found = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end) / 1e3)
    return sorted(found)[rounds // 2]


def kernels() -> Iterator[dict[str, object]]:
    """The best product of square-ish matrices, and one activation times a large matrix, in bf16."""
    import torch

    def product(m: int, n: int, k: int) -> Callable[[], object]:
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
        return lambda: a @ b

    rates = {shape: 2 * shape[0] * shape[1] * shape[2] / seconds(product(*shape)) for shape in SHAPES}
    (m, n, k), rate = max(rates.items(), key=lambda item: item[1])
    yield {"model": f"gemm {m}x{n}x{k}", "phase": "gemm", "value": rate, "unit": "FLOP/s", "weight_bits": 16}
    n, k = STREAMED
    rate = 2 * n * k / seconds(product(1, n, k))
    yield {"model": f"gemm 1x{n}x{k}", "phase": "gemv", "value": rate, "unit": "byte/s", "weight_bits": 16, "batch": 1}


def decoding(name: str) -> Iterator[dict[str, object]]:
    """Steps of a model in bf16 through transformers, eagerly, whose cache holds CONTEXT tokens."""
    import torch
    from transformers import AutoModelForCausalLM, DynamicCache

    model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.bfloat16, local_files_only=True).to("cuda").eval()
    for batch in BATCHES:
        cache = DynamicCache(config=model.config)
        with torch.inference_mode():
            model(
                torch.ones(batch, CONTEXT - 1, dtype=torch.long, device="cuda"), past_key_values=cache, use_cache=True
            )
            token = torch.ones(batch, 1, dtype=torch.long, device="cuda")

            def step(token: object = token, cache: object = cache) -> None:
                model(token, past_key_values=cache, use_cache=True)
                cache.crop(-1)

            took = seconds(step)
        lengths = {"batch": batch, "prompt": CONTEXT, "generated": 0, "weight_bits": 16, "cache_bits": 16}
        yield {"model": Path(name).name.lower(), "phase": "decode", "value": took, "unit": "s", **lengths}


def main() -> None:
    """Measure, and append."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="CSV file to append to, or to begin")
    parser.add_argument("--hardware", help="name of the accelerator on record (default: what the driver calls it)")
    parser.add_argument("--model", help="path or cached name of a Hugging Face model to decode with")
    options = parser.parse_args()
    if find_spec("torch") is None:
        refuse("PyTorch is not installed here; nothing was measured")
    import torch

    if not torch.cuda.is_available():
        refuse("this machine has no CUDA device that PyTorch can use; nothing was measured")
    title = torch.cuda.get_device_name()
    try:
        hardware = device_named(options.hardware or title.removeprefix("NVIDIA ")).name
    except UnknownNameError as error:
        refuse(f"{error}; give --hardware")
    rows = [*kernels(), *(decoding(options.model) if options.model else ())]
    begun = options.out.exists()
    with options.out.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        if not begun:
            writer.writeheader()
        for row in rows:
            about = {"id": f"{hardware}-{row['phase']}-{row['model']}-{row.get('batch', '')}".replace(" ", "-")}
            software = f"PyTorch {torch.__version__}" if row["phase"] != "decode" else "Hugging Face transformers"
            writer.writerow({"hardware": hardware, "devices": 1, "software": software, "source": f"measured on {title}",
                             **about, **row})  # fmt: skip
    print(f"{len(rows)} rows appended to {options.out}; check them: costmodel evidence --check {options.out}")


if __name__ == "__main__":
    main()
