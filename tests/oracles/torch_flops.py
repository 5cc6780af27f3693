"""FLOPs of forward passes as torch counts them, beside those of costmodel for the very same configuration.

Needs torch and transformers (the extra `oracles`), in an environment of their own:

    python tests/oracles/torch_flops.py

rewrites torch_flops.csv beside this file. Each family is instantiated tiny, with random weights, in fp32 on a CPU, and
runs a prefill of PROMPT tokens and then one decoding step on the cache that this left. Both sides read the sizes in the
table and nothing else, so that what an absent field means is compared too. What is counted:

* Matrix multiplications, 2·m·k·n each, by torch.utils.flop_counter; no elementwise work. Logits of every position.
* Attention by its eager form: scores and weighted sum over all T·S pairs, masked ones included, hence `causal=False`.
  Under a window of W the decoding step sees W keys; the prefill computes all pairs and masks.
* Mixtures of experts by the eager loop: each token is multiplied in the experts it is sent to and in no other. (The
  grouped kernels do the same work, but torch's counter does not know them.)
* Latent attention in its expanded form, which is what transformers runs in decoding too: `absorbed=False`.
* Left out of `torch` and kept in `apart`, because costmodel calls them elementwise: the angles of rotary positions, an
  outer product that is written as a multiplication with an inner size of 1, and short convolutions over time.
"""

import argparse
import csv
import warnings
from importlib.metadata import version
from pathlib import Path

import torch
import transformers
from tiny_sizes import BATCH, PROMPT, SIZES, expanded, given
from torch.utils.flop_counter import FlopCounterMode

import costmodel
from costmodel.passes import ForwardPass

COLUMNS = (
    "family", "sizes", "pass", "batch", "tokens", "context", "torch", "costmodel", "equal", "apart", "torch_version",
    "transformers_version", "note",
)  # fmt: skip

NOTES = {
    "qwen3_5_moe_text": "the recurrence over the memory: torch prefills in chunks of 64 and decodes elementwise; "
    "costmodel counts three products with the memory a token",
}


def counted(model: torch.nn.Module, **inputs: object) -> tuple[int, int, object]:
    """FLOPs of one pass in matrix multiplications, FLOPs set apart, and the cache that it leaves."""
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        out = model(**inputs, use_cache=True)
    by_module = counter.get_flop_counts()
    total = by_module.pop("Global")
    angles = [sum(ops.values()) for name, ops in by_module.items() if name.endswith(".rotary_emb")]
    apart = sum(angles) + sum(n for op, n in total.items() if "convolution" in str(op))
    cache = {n: c for n in ("past_key_values", "cache_params") if (c := getattr(out, n, None)) is not None}
    return sum(total.values()) - apart, apart, cache


def rows(name: str, sizes: dict[str, object]) -> list[dict[str, object]]:
    """The rows of one family: its prefill and its decoding step."""
    family = name.split()[0]
    stated = given(sizes)
    torch.manual_seed(0)
    config = transformers.CONFIG_MAPPING[family](**stated)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    if "num_experts_per_tok" in stated:
        model.set_experts_implementation("eager")
    ours = expanded(costmodel.model_from_config({"model_type": family, **stated}, name))
    ids = torch.randint(1, 128, (BATCH, PROMPT + 1))
    found, inputs = [], {"input_ids": ids[:, :PROMPT]}
    for step, tokens, context in (("prefill", PROMPT, PROMPT), ("decode", 1, PROMPT + 1)):
        flops, apart, cache = counted(model.eval(), **inputs)
        inputs = {"input_ids": ids[:, PROMPT:], **cache}
        mine = ours.forward(ForwardPass(BATCH, tokens, context, causal=False, head="all")).flops
        note = "" if mine == flops else f"costmodel {mine - flops:+,}: {NOTES.get(name, 'not explained')}"
        line = {"family": name, "sizes": " ".join(f"{k}={v}" for k, v in stated.items()), "pass": step, "batch": BATCH}
        line |= {"tokens": tokens, "context": context, "torch": flops, "costmodel": mine, "apart": apart, "note": note}
        found.append(line | {"equal": "yes" if mine == flops else "no"})
    return found


def main() -> None:
    """Write torch_flops.csv."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=Path(__file__).with_suffix(".csv"), help="where the table goes")
    target = parser.parse_args().to
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    versions = {"torch_version": version("torch"), "transformers_version": version("transformers")}
    table = []
    for name, sizes in SIZES.items():
        try:
            found = rows(name, sizes)
        except costmodel.CostModelError as error:
            found = [{"family": name, "equal": "refused", "note": f"costmodel refuses: {error}"}]
        for line in found:
            shown = (line.get(column, "") for column in ("family", "pass", "torch", "costmodel", "equal", "note"))
            print(*shown, sep="  ", flush=True)
        table += [line | versions for line in found]
    with target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    exact = {line["family"] for line in table} - {line["family"] for line in table if line["equal"] != "yes"}
    print(f"{len(exact)} of {len(SIZES)} families equal in every pass: {', '.join(sorted(exact))}")


if __name__ == "__main__":
    main()
