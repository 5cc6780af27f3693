"""`costmodel size`: does it fit, how fast, how many users."""

import argparse
from typing import Any

from costmodel.calibration import fitted
from costmodel.cli._arguments import (
    SPREADS,
    add_assume_family,
    add_deployment,
    add_json,
    add_parallel,
    format_name,
    notes_on,
    parallel,
    print_json,
    share,
)
from costmodel.cli._forecast import add_calibrated, forecast_for
from costmodel.hardware import accelerator
from costmodel.sizing import Deployment
from costmodel.tables import rate, with_prefix
from costmodel.zoo import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="a preset (see 'costmodel models') or the path of a config.json")
    parser.add_argument("--on", required=True, metavar="ACCELERATOR", help="see 'costmodel hardware'")
    add_deployment(parser)
    add_assume_family(parser)
    parser.add_argument(
        "--reserve", type=share, default=share("0"), metavar="SHARE", help="share of memory kept free (default 0)"
    )
    parser.add_argument(
        "--compute", default="bf16", metavar="DTYPE",
        help="what is multiplied in: fp8 where weights and activations both are (default bf16)",
    )  # fmt: skip
    parser.add_argument(
        "--textbook", action="store_true", help="the memory-bound closed form, embedding counted, norms left out"
    )
    add_parallel(parser)
    add_calibrated(parser)
    add_json(parser)


def method(deployment: Deployment) -> str:
    """How the times were found."""
    if deployment.calibrated:
        return forecast_for(deployment.calibrated)
    return "textbook" if deployment.textbook else "roofline"


def answer(deployment: Deployment, batch: int, context: int, prompt: int) -> dict[str, Any]:
    """Everything `size` says, under the keys that scripts rely on; exact integers stay integers."""
    step, spread = deployment.decode(batch, context), deployment.parallel
    several = {"devices": spread.devices, "communication_s": float(step.timing.communication_seconds)}
    return {
        "model": deployment.model.name,
        "accelerator": deployment.accelerator.name,
        "params": deployment.model.matrix_params if deployment.textbook else deployment.model.params,
        "weight_bytes": deployment.weight_bytes,
        "cache_bytes_per_sequence": deployment.cache_bytes(context),
        "memory_bytes": step.memory_bytes,
        "capacity_bytes": deployment.accelerator.capacity,
        "fits": deployment.fits(batch, context),
        "wall": deployment.wall(batch, context),
        "largest_batch": deployment.largest_batch(context),
        "longest_context": deployment.longest_context(batch),
        "ttft_s": deployment.prefill(prompt).seconds,
        "seconds_per_token": step.seconds_per_token,
        "tokens_per_s": step.tokens_per_s,
        "tokens_per_s_per_user": step.tokens_per_s_per_user,
        "bound": step.bound,
        "intensity": step.timing.intensity,
        "ridge": step.timing.ridge,
        "method": method(deployment),
        "forecast_error": fitted().stated_error if deployment.calibrated else None,
        **(several if spread.devices != 1 else {}),
    }


def run(options: argparse.Namespace) -> None:
    """Print the sizing."""
    deployment = Deployment(
        load(options.model, assume_family=options.assume_family),
        accelerator(options.on),
        weights=options.weights,
        cache=options.cache,
        reserve=options.reserve,
        parallel=parallel(options),
        textbook=options.textbook,
        calibrated=options.calibrated,
        compute=options.compute,
    )
    prompt = options.prompt or options.context
    found = answer(deployment, options.batch, options.context, prompt)
    if options.json:
        print_json(found)
    else:
        print(in_words(deployment, found, options.batch, options.context, prompt))


def _at_most(value: int | None) -> str:
    return "unbounded" if value is None else f"{value:,}"


def _spread(deployment: Deployment) -> str:
    spread = deployment.parallel
    if spread.devices == 1:
        return ""
    used = [f"{name} {getattr(spread, name)}" for name in SPREADS if getattr(spread, name) != 1]
    return f"{spread.devices} ({', '.join(used)}) x "


def in_words(deployment: Deployment, found: dict[str, Any], batch: int, context: int, prompt: int) -> str:
    """The sizing as lines for a person."""
    model, device = deployment.model, deployment.accelerator
    weights = format_name(deployment.weights or model.stored_dtype())
    verdict = {
        None: "fits",
        "weights": "does not fit: the weights alone are too large",
        "cache": "does not fit: the cache is too large",
    }
    reserved = f" less {float(deployment.reserve):.3g} of it in reserve" if deployment.reserve else ""
    how = {
        "textbook": "textbook closed form",
        "roofline": "the fastest that physics allows: one roofline over the whole pass",
    }.get(found["method"], f"{found['method']}, from published measurements")
    spread = deployment.parallel
    memory, in_all = ("memory/device", " in all") if spread.shards else ("memory", "")
    lines = [
        f"{model.name} on {_spread(deployment)}{device.name}: "
        f"weights {weights}, cache {deployment.cache}, arithmetic {deployment.arithmetic}",
        f"batch {batch:,}, context {context:,}, prompt {prompt:,} ({how})",
        "",
        f"{memory:<17}{with_prefix(found['memory_bytes'], 'B')} of {with_prefix(device.capacity, 'B')}{reserved}: "
        f"{verdict[found['wall']]}",
        f"  weights        {with_prefix(found['weight_bytes'], 'B')} ({found['params']:,} parameters{in_all})",
        f"  cache          {with_prefix(found['cache_bytes_per_sequence'], 'B')} per sequence",
        f"largest batch    {_at_most(found['largest_batch'])} at context {context:,}",
        f"longest context  {_at_most(found['longest_context'])} at batch {batch:,}, by memory",
        f"first token      {with_prefix(found['ttft_s'], 's')} after a prompt of {prompt:,}",
        f"decode           {with_prefix(found['seconds_per_token'], 's')} per token: "
        f"{rate(found['tokens_per_s'])} tokens/s, {rate(found['tokens_per_s_per_user'])} per user",
        f"bound            {found['bound']}: {found['intensity']:.3g} FLOP/byte, ridge {found['ridge']:.4g}",
    ]
    if found.get("communication_s"):
        lines.insert(-1, f"  communication  {with_prefix(found['communication_s'], 's')} of that")
    notes = notes_on(model)
    if model.positions and max(context, prompt) > model.positions:
        notes.append(f"the model was made for contexts up to {model.positions:,}")
    if deployment.calibrated:
        notes.append(f"a forecast: {found['forecast_error']}")
    elif deployment.arithmetic != deployment.compute:
        notes.append(f"{device.name} has no {deployment.compute} units: timed at its {deployment.arithmetic} peak")
    return "\n".join([*lines, *(f"note: {note}" for note in notes)])
