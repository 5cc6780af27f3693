"""Greedy tokens of a GGUF model according to transformers and PyTorch: the oracle for the lab's decoder.

Needs torch, transformers, accelerate and gguf, in an environment of their own:

    python tests/oracles/golden_tokens.py path/to/SmolLM2-135M-Instruct.Q4_1.gguf

rewrites golden_tokens.json beside this file. A prompt whose two best logits come nearer than SMALLEST_GAP is refused:
such a tie may fall either way with the order of a sum.
"""

import argparse
import hashlib
import json
from importlib.metadata import version
from pathlib import Path

import torch
import transformers

NEW_TOKENS = 64
SMALLEST_GAP = 1e-3
QUESTIONS = (
    "Explain why the sky is blue.",
    "Write a short story about a lighthouse keeper.",
    "How does a computer store numbers?",
)


def chat(question: str) -> str:
    """ChatML, the form that the model was trained on."""
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


@torch.inference_mode()
def continue_greedily(model: torch.nn.Module, ids: list[int]) -> tuple[list[int], float]:
    """The next NEW_TOKENS ids, and the smallest gap between the two best logits on the way."""
    new, gap = [], float("inf")
    for _ in range(NEW_TOKENS):  # no cache: one thing less that could be wrong
        logits = model(torch.tensor([ids + new]), use_cache=False).logits[0, -1]
        best, second = logits.topk(2).values.tolist()
        gap = min(gap, best - second)
        new.append(int(logits.argmax()))
    return new, gap


def main() -> None:
    """Write golden_tokens.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the GGUF file")
    path = parser.parse_args().file
    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()
    runs = []
    for question in QUESTIONS:
        ids = tokenizer.encode(chat(question))
        tokens, gap = continue_greedily(model, ids)
        print(f"{question} smallest gap {gap:.4f}: {tokenizer.decode(tokens)!r}")
        if gap < SMALLEST_GAP:
            raise SystemExit(f"the gap {gap:.2e} is below {SMALLEST_GAP:g}; choose another prompt than {question!r}")
        runs.append({"prompt": chat(question), "prompt_ids": ids, "tokens": tokens, "smallest_gap": round(gap, 6)})
    record = {
        "model": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "params": sum(parameter.numel() for parameter in model.parameters()),
        "versions": {package: version(package) for package in ("torch", "transformers", "gguf")},
        "smallest_gap": min(run["smallest_gap"] for run in runs),
        "runs": runs,
    }
    target = Path(__file__).with_suffix(".json")
    target.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
