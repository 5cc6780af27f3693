"""Command lines from the real parsers' own options, with usual, odd and missing values: answered, or refused on stderr.

`host` measures the machine and `tour` takes nothing, so neither is asked, nor `explore`, which writes a file;
`serve` serves a few dozen requests at most, without the compiled core.
"""

import argparse
import contextlib
import io
import json
from functools import cache
from random import Random

from costmodel.cli import COMMANDS, main, parser
from costmodel.common.formats import FORMATS
from costmodel.quantities import QUANTITIES
from costmodel.sizing.levers import LEVERS, METRICS
from tests.fuzz.damage import JUNK
from tests.fuzz.harness import Target

ASKED = [name for name in COMMANDS if name not in ("host", "tour", "explore")]
CHEAP = ("explain", "size", "inspect", "solve", "sweep")  # asked more often than the slow ones
MODELS = ("llama-3-8b", "8b", "gpt2", "mixtral-8x7b", "mamba-2.8b-hf", "llama-9", "nothing.json", "x" * 5000, "a\x00b")
DEVICES = ("h100-sxm", "h100", "a100-sxm-80gb", "rtx-4090", "m4-max", "h1000")
NUMBERS = ("1", "2", "8", "16", "100", "1024", "8192", "0.5", "0.02", "1e-30", "1e30", "0", "-1", "10000000000000000")
AXES = ("batch=1,8", "batch=1:9:2", "context=1024", "weights=bf16,int4", "batch=", "tensor=2", "batch=1:0:0", "x=1",
        "batch=1:100000000000", "price=1,2", "context=1e308,nan", "kv_heads=1,3", "accelerator=h100-sxm")  # fmt: skip
PRICES = ("h100-sxm=3", "a100-sxm-80gb=1.5", "l4=0", "h100=nan", "h100-sxm=inf", "h100-sxm", "=", "rtx-4090=-1")
USUAL = {
    "model": MODELS, "on": DEVICES, "hardware": ("h100", "a100", "none"), "unknown": (*LEVERS, "bits"), "axes": AXES,
    "quantity": tuple(QUANTITIES), "weights": tuple(FORMATS), "cache": tuple(FORMATS), "metric": tuple(METRICS),
    "metrics": ("latency", "latency,ttft", "all", ""), "like": ("azure-conversation", "none"), "config": MODELS[:3],
    "assume_family": ("llama", "evil"), "calibrated": ("vllm", "nobody"),
    "slo": ("ttft=0.5", "ttft=0.5,tpot=0.1", "x=1"),
    "requests": ("1", "5", "30"), "trace": ("nothing.csv", "a\x00.csv", "."), "check": ("nothing.csv", ".", "a\x00"),
    "rate": ("1", "5", "0", "nan"), "latency": ("0.02", "0.005", "nan", "inf", "-1", "1e-300"),
}  # fmt: skip
ALWAYS = {"model": "llama-3-8b", "on": "h100-sxm", "rate": "2", "requests": "8", "prompt": "100", "generated": "10"}


@cache
def _options(command: str) -> tuple[argparse.Action, ...]:
    """The command's own arguments."""
    top = parser(command)
    commands = next(action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    return tuple(commands.choices[command]._actions)


def _value(rng: Random, action: argparse.Action) -> str:
    if rng.random() < 0.06:
        return rng.choice(JUNK)
    if action.choices and rng.random() < 0.9:
        return rng.choice(list(action.choices))
    return rng.choice(USUAL.get(action.dest, NUMBERS))


def made(rng: Random) -> list[str]:
    """A command with some of its options; what is required is rarely left out, and the first of them usually sound."""
    command = rng.choice((*ASKED, *CHEAP)) if rng.random() < 0.98 else rng.choice(("", "sise", "-h", "--x"))
    if command not in COMMANDS:
        return [command] * rng.randint(0, 2)
    words = []
    for action in _options(command):
        given = rng.random()
        if command == "serve" and action.dest == "requests":
            given = 0.0  # bounded
        if command == "serve" and action.dest in ("rate", "trace"):
            given = float(rng.random() < (0.8 if action.dest == "trace" else 0.1))  # usually made-up requests
        if action.dest in ("help", "compiled") or given > (
            0.97 if action.required or not action.option_strings else 0.25
        ):
            continue
        several = rng.randint(1, 3) if action.nargs == "+" else 0 if action.nargs == 0 else 1
        usual = ALWAYS.get(action.dest) if rng.random() < 0.5 else None
        values = [usual or _value(rng, action) for _ in range(several)]
        if command == "plan" and action.dest == "on":
            values = [rng.choice(PRICES) for _ in values]
        if command == "serve" and action.dest == "requests":
            values = [rng.choice(USUAL["requests"])]
        words += ([rng.choice(action.option_strings)] if action.option_strings else []) + values
    if rng.random() < 0.05:
        words.insert(rng.randint(0, len(words)), rng.choice((*JUNK, "--json", "--batch", "--nothing")))
    return [command, *words]


def tried(given: list[str]) -> str:
    """Run it in this process; 0 and an answer, or 2 and a message on stderr alone."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(given)
        except SystemExit as end:  # argparse's own refusal, or its help
            code = end.code
    assert code in (0, 2), f"exit code {code}"
    if code == 2:
        assert err.getvalue().strip(), "refused without a word"
        assert "Traceback" not in err.getvalue()
        assert not out.getvalue(), f"refused, but printed {out.getvalue()[:200]!r}"
        return "refused"
    assert out.getvalue().strip(), "answered without a word"
    if "--json" in given:
        json.loads(out.getvalue())
    return "answered"


COMMAND = Target("command", made, tried)
