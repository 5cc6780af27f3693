"""`costmodel host`: this machine as an accelerator record, and the real small model against its bound here."""

import argparse
from typing import Any

from costmodel.cli._arguments import add_json, count, print_json
from costmodel.common.errors import CostModelError, NotHereError
from costmodel.host import Host, ideal_seconds, measure_host
from costmodel.tables import Table, with_prefix
from costmodel.zoo import load

MODEL = "smollm2-135m"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--rounds", type=count, default=5, metavar="N", help="runs of each kind (default 5)")
    parser.add_argument("--prompt", type=count, default=256, metavar="N", help="tokens of the prompt (default 256)")
    parser.add_argument("--context", type=count, default=256, metavar="N", help="tokens attended to (default 256)")
    add_json(parser)


def small_model(host: Host, prompt: int, context: int, rounds: int) -> list[dict[str, Any]]:
    """Measured seconds of SmolLM2-135M beside the bounds of one core's and of all cores' bandwidth."""
    from costmodel.lab.smollm import load_smollm2  # the other tower, only where it is asked for
    from costmodel.lab.timing import measured_seconds

    decoder, _ = load_smollm2()
    found = measured_seconds(decoder, prompt=prompt, context=context, rounds=rounds)
    ideal = ideal_seconds(load(MODEL), host.together, prompt=prompt, context=context)
    one = ideal_seconds(load(MODEL), host.one_core, prompt=prompt, context=context)
    return [
        {
            "what": name,
            "tokens": tokens,
            "measured_s": found[name],
            "ideal_s": ideal[name],
            "ideal_one_core_s": one[name],
        }
        for name, tokens in (("prefill", prompt), ("decode", context))
    ]


def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    if options.context < 2:
        raise CostModelError(f"context must be at least 2 to decode after a prompt, got {options.context}")
    host = measure_host(rounds=options.rounds)
    record = host.together
    try:
        rows, missing = small_model(host, options.prompt, options.context, options.rounds), None
    except NotHereError as error:
        rows, missing = [], str(error)
    if options.json:
        rates = {"bandwidth": record.bandwidth, "bandwidth_one_core": host.one_core.bandwidth}
        print_json(
            {"cores": host.cores, "capacity": record.capacity, **rates, "peaks": dict(record.peaks), "model": rows}
        )
        return
    lines = [
        ["memory", with_prefix(record.capacity, "B")],
        ["reads, all cores", with_prefix(record.bandwidth, "B/s")],
        ["reads, one core", with_prefix(host.one_core.bandwidth, "B/s")],
        *([f"multiplies {dtype}", with_prefix(peak, "FLOP/s")] for dtype, peak in record.peaks.items()),
        ["ridge, fp32", f"{record.ridge('fp32'):.3g} FLOP/byte"],
    ]
    print(Table([record.title, "measured here"], lines))
    if missing:
        print(f"\nnote: {missing}")
        return
    shown = [
        [r["what"], r["tokens"], *(with_prefix(r[k], "s") for k in ("measured_s", "ideal_s", "ideal_one_core_s")),
         f"{r['ideal_s'] / r['measured_s']:.0%}"] for r in rows
    ]  # fmt: skip
    heads = [f"{MODEL}, fp32", "tokens", "measured", "bound, all cores", "bound, one core reading", "reached"]
    print(f"\n{Table(heads, shown)}")
