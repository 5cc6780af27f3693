"""`costmodel serve`: real traffic on a deployment: how long users wait, and how many it serves."""

import argparse
from pathlib import Path

from costmodel.cli._arguments import (
    add_assume_family,
    add_json,
    add_weights,
    count,
    filled,
    notes_on,
    only_with,
    positive,
    print_json,
    share,
    storage,
)
from costmodel.common.progress import watched
from costmodel.hardware import accelerator
from costmodel.serving import Policy, ServingResult, Slo, Trace, simulate
from costmodel.serving.arrivals import TRACES, synthetic_trace
from costmodel.serving.policy import POLICIES
from costmodel.serving.readers import read_trace
from costmodel.sizing import Deployment
from costmodel.tables import Table, rate, with_prefix
from costmodel.zoo import load

LIMITS = ("ttft", "tpot", "e2e")
SPANS = {"ttft_s": "to the first token", "tpot_s": "per token after it", "e2e_s": "to the last token"}


def slo(text: str) -> Slo:
    """Limits such as ttft=0.5,tpot=0.05 [s]."""
    limits: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name not in LIMITS or not equals or name in limits:
            raise argparse.ArgumentTypeError(f"must read like ttft=0.5,tpot=0.05,e2e=10 in seconds, got {text[:40]!r}")
        limits[name] = positive(value)
    return Slo(**limits)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="a preset (see 'costmodel models') or the path of a config.json")
    parser.add_argument("--on", required=True, metavar="ACCELERATOR", help="see 'costmodel hardware'")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--trace", type=Path, metavar="FILE", help="requests: Azure's .csv or Mooncake's .jsonl")
    source.add_argument("--rate", type=positive, metavar="R", help="made-up requests per second, Poisson")
    parser.add_argument(
        "--like",
        default="azure-conversation",
        metavar="TRACE",
        help=f"lengths of made-up requests: {', '.join(TRACES)}",
    )
    parser.add_argument("--requests", type=count, metavar="N", help="how many (default: all of FILE; 1000 with --rate)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of made-up requests (default 0)")
    parser.add_argument(
        "--devices", type=count, default=1, metavar="N", help="accelerators per replica, ideally joined"
    )
    parser.add_argument("--replicas", type=count, default=1, metavar="N", help="copies of the deployment (default 1)")
    parser.add_argument(
        "--policy", choices=POLICIES, default="continuous", help="how passes are filled (default continuous)"
    )
    parser.add_argument("--slots", type=count, default=256, metavar="N", help="sequences at once (default 256)")
    parser.add_argument("--chunk", type=count, default=512, metavar="N", help="tokens of a chunked pass (default 512)")
    parser.add_argument("--preempt", choices=("recompute", "swap"), help="begin without room for the whole answer")
    parser.add_argument("--slo", type=slo, default=Slo(), metavar="LIMITS", help="for goodput: ttft=0.5,tpot=0.05 [s]")
    add_weights(parser)
    parser.add_argument(
        "--cache", type=storage, default="bf16", metavar="FORMAT", help="format of the cache (default bf16)"
    )
    parser.add_argument("--reserve", type=share, default=share("0"), metavar="SHARE", help="share of memory kept free")
    parser.add_argument("--compiled", action="store_true", help="the compiled core (numba, extra 'fast')")
    add_assume_family(parser)
    add_json(parser)
    only_with(parser, "rate", "like", "seed")


def requests(options: argparse.Namespace) -> Trace:
    """The trace that was asked for."""
    if options.trace is None:
        return synthetic_trace(options.like, options.requests or 1000, rate=options.rate, seed=options.seed)
    return read_trace(options.trace).part(slice(options.requests))


def run(options: argparse.Namespace) -> None:
    """Serve, and print what came of it."""
    filled(options)
    model = load(options.model, assume_family=options.assume_family)
    hardware = accelerator(options.on)
    deployment = Deployment(
        model, hardware.times(options.devices) if options.devices > 1 else hardware,
        weights=options.weights, cache=options.cache, reserve=options.reserve,
    )  # fmt: skip
    policy = Policy(kind=options.policy, slots=options.slots, chunk=options.chunk, preemption=options.preempt)
    trace = requests(options)
    result = simulate(
        trace, deployment, policy, replicas=options.replicas, compiled=options.compiled,
        progress=watched("serving", "requests", len(trace)),
    )  # fmt: skip
    if options.json:
        print_json(result.summary(options.slo))
    else:
        print(in_words(deployment, policy, result, options.slo))
        for note in notes_on(model):
            print(f"note: {note}")


def in_words(deployment: Deployment, policy: Policy, result: ServingResult, limits: Slo) -> str:
    """The outcome as lines for a person."""
    found = result.summary(limits)
    kept = ", ".join(f"{name} ≤ {getattr(limits, name):g} s" for name in LIMITS if getattr(limits, name) is not None)
    replicas = "" if result.replicas == 1 else f"{result.replicas} x "
    rows = [
        [words, *("–" if v is None else with_prefix(v, "s", 3) for v in found[name].values())]
        for name, words in SPANS.items()
    ]
    where, count = f"{replicas}{deployment.accelerator.name}", len(result.trace)
    lines = [
        f"{deployment.model.name} on {where}, {policy.kind}: {count:,} requests at {rate(result.trace.rate)}/s",
        "",
        str(Table(["wait", "p50", "p90", "p99"], rows)),
        "",
        f"throughput   {rate(found['tokens_per_s'])} tokens/s over {found['makespan_s']:,.1f} s",
        f"goodput      {found['goodput']:.4g} requests/s" + (f" within {kept}" if kept else " (no limits given)"),
        f"utilisation  {found['utilisation']:.1%} of the time in passes",
        f"caches       {result.cache_occupancy:.1%} of their memory holds tokens on average; "
        f"{with_prefix(found['peak_cache_bytes'], 'B')} given out at most",
        f"work         {result.steps:,} passes, {result.steps / max(1, result.events):.1f} per event",
    ]
    if found["prefix_hit_ratio"] is not None:
        lines.append(f"prefixes     {found['prefix_hit_ratio']:.1%} of the prompts' blocks were there already")
    if result.preempted:
        lines.append(f"preempted    {result.preempted:,} times")
    if result.rejected:
        index, reason = min(result.rejected.items())
        lines.append(f"rejected     {len(result.rejected):,} requests; the first, {index}: {reason}")
    return "\n".join(lines)
