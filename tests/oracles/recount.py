"""Counts of published configurations according to transformers, beside those of costmodel.

Needs torch and transformers (the extra `oracles`), in an environment of their own:

    python tests/oracles/recount.py path/to/configs [path/to/config.json …]

rewrites recount.csv beside this file, one row for each config.json. The model is instantiated on the meta device, which
holds shapes and no weights, without its quantization_config. A parameter that two modules share (a tied head) counts
once; buffers that a checkpoint stores beside its parameters are a column of their own.

`active` leaves out the experts that a token is not sent to. `cache` is what the cache holds after one pass over 1,024
tokens: keys, values (or their latents) and states. `held_1024` is the plain sum of its elements; in
`transformers_cache_1024`, and in it alone, two habits of transformers' code are taken back, and the note says so: a
window of W keeps W − 1 tokens between passes because the next brings its own, and Falcon's new decoder stores its
grouped heads once for each query head. A configuration that either side refuses is a row that says so, and its text.
"""

import argparse
import contextlib
import csv
import json
import warnings
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as MULTIMODAL

import costmodel

TOKENS = 1024
COUNTS = ("params", "text_params", "active_params", "tied_head", "cache_1024")
COLUMNS = (
    "name", "model_type", "verdict", *(f"{who}_{what}" for what in COUNTS for who in ("transformers", "costmodel")),
    "held_1024", "buffers", "torch", "transformers", "note",
)  # fmt: skip
LEFT_OUT = ("quantization_config", "auto_map")  # stored formats and custom code: neither changes what is counted
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_layer")
CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "top_k_experts")


def build(values: dict) -> transformers.PreTrainedModel:
    """The model of a configuration, without weights."""
    kept = {name: value for name, value in values.items() if name not in LEFT_OUT}
    if kept.get("model_type") not in transformers.CONFIG_MAPPING:
        raise ValueError(f"model_type {kept.get('model_type')!r} is not one of transformers'")
    config = transformers.CONFIG_MAPPING[kept["model_type"]].from_dict(kept)
    auto = transformers.AutoModelForImageTextToText if config.model_type in MULTIMODAL else None
    with torch.device("meta"):
        model = (auto or transformers.AutoModelForCausalLM).from_config(config)
    for name in ("batched_mm", "grouped_mm"):  # without weights the eager loop over the chosen experts cannot run
        with contextlib.suppress(AttributeError, ValueError, KeyError):
            model.set_experts_implementation(name)
            break
    return model.eval()


def text_of(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """The parameters of the text model and its head, each once; vision towers and their projectors stay out."""
    inner = getattr(getattr(model, "model", None), "language_model", None)
    if inner is None:
        return list(model.parameters())
    return list(torch.nn.ModuleList([inner, model.get_output_embeddings()]).parameters())


def active(model: torch.nn.Module) -> int:
    """Text parameters that one token uses: of E experts, those it is sent to."""
    config = model.config.get_text_config()
    one = lambda names: next((n for name in names if isinstance(n := getattr(config, name, None), int) and n), None)  # noqa: E731
    routed = {id(p) for name, p in model.named_parameters() if ".experts." in name}
    inside = sum(p.numel() for p in text_of(model) if id(p) in routed)
    total = sum(p.numel() for p in text_of(model))
    return total if not inside else total - inside + inside * one(CHOSEN) // one(EXPERTS)


def cached(model: transformers.PreTrainedModel) -> tuple[int, int, str]:
    """Elements in the cache after a pass over TOKENS tokens: what they stand for, what is held, and why they differ."""
    ids = torch.zeros((1, TOKENS), dtype=torch.long, device="meta")
    with torch.inference_mode():
        out = model(input_ids=ids, use_cache=True, **({"logits_to_keep": 1} if _keeps(model) else {}))
    cache = getattr(out, "past_key_values", None)
    cache = getattr(out, "cache_params", None) if cache is None else cache
    meant, held, habits = 0, 0, Counter()
    for layer in cache.layers:
        for name in ("keys", "values", "conv_states", "recurrent_states"):
            found = getattr(layer, name, None)
            found = (
                found.values() if isinstance(found, dict) else found if isinstance(found, (list, tuple)) else [found]
            )
            for tensor in (t for t in found if isinstance(t, torch.Tensor)):
                held += tensor.numel()
                elements, habit = _undone(model.config, layer, tensor)
                meant += elements
                habits[habit] += 1
    return meant, held, "; ".join(f"{n} tensors hold {habit}" for habit, n in habits.items() if habit)


def _undone(config: transformers.PreTrainedConfig, layer: object, tensor: torch.Tensor) -> tuple[int, str]:
    """The elements that a tensor of keys or values stands for, and what it holds instead."""
    elements, habits, window = tensor.numel(), [], min(TOKENS, getattr(layer, "sliding_window", 0))
    if window > 1 and tensor.ndim == 4 and tensor.shape[2] == window - 1:
        elements = elements // (window - 1) * window
        habits.append(f"{window - 1} tokens for a window of {window}")
    if config.model_type == "falcon" and config.new_decoder_architecture and tensor.shape[1] != config.num_kv_heads:
        elements = elements // tensor.shape[1] * config.num_kv_heads
        habits.append(f"{tensor.shape[1]} heads for {config.num_kv_heads}")
    return elements, ", ".join(habits)


def _keeps(model: torch.nn.Module) -> bool:
    """Whether the pass can be asked for the last position's logits only."""
    return "logits_to_keep" in model.forward.__code__.co_varnames


def theirs(values: dict) -> tuple[dict[str, object], str]:
    """What transformers has, by column, and how its cache differs."""
    model = build(values)
    head, table = model.get_output_embeddings(), model.get_input_embeddings()
    stored = set(model.state_dict()) - {name for name, _ in model.named_parameters(remove_duplicate=False)}
    found = {
        "params": sum(p.numel() for p in model.parameters()),
        "text_params": sum(p.numel() for p in text_of(model)),
        "active_params": active(model),
        "tied_head": "yes" if head is not None and head.weight is table.weight else "no",
    }
    about = {"buffers": sum(model.state_dict()[name].numel() for name in stored)}
    try:
        found["cache_1024"], about["held_1024"], holds = cached(model)
    except Exception as error:
        found["cache_1024"], holds = "", f"no pass without weights: {str(error).splitlines()[0][:120]}"
    return {f"transformers_{name}": value for name, value in found.items()} | about, holds


def ours(path: Path) -> dict[str, object]:
    """What costmodel has, by column."""
    model = costmodel.load(path)
    found = {name: getattr(model, name, "") for name in ("params", "text_params", "active_params")}
    found["tied_head"] = "yes" if model.tied_head else "no"
    found["cache_1024"] = model.cache_elements(TOKENS)
    return {f"costmodel_{name}": value for name, value in found.items()}


def row(path: Path) -> dict[str, object]:
    """The row of one file."""
    line, notes, holds = {"name": path.stem if path.stem != "config" else path.parent.name}, [], ""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        line["model_type"] = values.get("model_type")
        counts, holds = theirs(values)
        line |= counts
    except Exception as error:  # whatever it is, the row says so
        notes.append(f"transformers refuses: {type(error).__name__}: {str(error).strip().splitlines()[0][:200]}")
    try:
        line |= ours(path)
    except Exception as error:
        kind = "" if isinstance(error, costmodel.CostModelError) else f"{type(error).__name__}: "
        notes.append(f"costmodel refuses: {kind}{str(error).replace(str(path), path.name)}")
    pairs = {what: (line.get(f"transformers_{what}", ""), line.get(f"costmodel_{what}", "")) for what in COUNTS}
    differ = [what for what, (a, b) in pairs.items() if a != b and "" not in (a, b)]
    for what in differ:
        if what != "tied_head":
            notes.append(f"{what}: costmodel {pairs[what][1] - pairs[what][0]:+,}")
    if holds:
        notes.append(f"transformers' cache: {holds}")
    refused = any(" refuses: " in note for note in notes)
    equal = "equal" if pairs["cache_1024"][0] != "" else "equal, cache not run"
    line["verdict"] = "refused" if refused else equal if not differ else "differs in " + " ".join(differ)
    return line | {"torch": version("torch"), "transformers": version("transformers"), "note": "; ".join(notes)}


def main() -> None:
    """Write recount.csv."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+", help="files, or folders of *.json")
    parser.add_argument("--to", type=Path, default=Path(__file__).with_suffix(".csv"), help="where the table goes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    files = [f for path in arguments.paths for f in (sorted(path.rglob("*.json")) if path.is_dir() else [path])]
    rows = []
    for path in files:
        rows.append(row(path))
        print(f"{rows[-1]['name']}: {rows[-1]['verdict']}; {rows[-1]['note']}", flush=True)
    with arguments.to.open("w", encoding="utf-8", newline="") as out:
        table = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    print(*(f"{n} {verdict}" for verdict, n in Counter(r["verdict"] for r in rows).most_common()), sep="\n")


if __name__ == "__main__":
    main()
