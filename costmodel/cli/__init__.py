"""The command `costmodel`: words and numbers for a terminal, JSON for scripts."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper

from costmodel.common.errors import CostModelError

COMMANDS = {
    "size": "size a model on an accelerator: memory, latency, throughput, and which wall is near",
    "serve": "serve a trace of requests: waiting times, throughput, goodput, memory",
    "inspect": "count a model exactly: parameters, weight bytes, cache elements",
    "models": "list the models known by name, or write one out as a config.json",
    "hardware": "list the accelerators on record: dense peaks, bandwidth, capacity, source",
    "explain": "show a quantity's formula, its symbols with meaning and unit, and its value for a model",
    "solve": "which batch, bandwidth, bits, … meets a target; or what forbids it",
    "what-if": "what to change first: every lever's effect on latency, throughput, memory or dollars",
    "sweep": "latency, throughput, memory, … over axes of batch, context, formats, hardware",
    "plan": "the cheapest deployment that keeps its promises, the runner-up, and why not the others",
    "evidence": "published measurements against the bound and the calibrated forecast; checks a CSV of yours, too",
    "host": "measure this machine: bandwidth, matrix multiplication, a real small model against its bound",
    "explore": "write the interactive page: sliders over the same formulas, one offline HTML file",
    "tour": "a short walk through the headline numbers, each computed as it prints",
}


def parser(asked: str | None) -> argparse.ArgumentParser:
    """The command line's grammar; only the command that is asked for is imported."""
    top = argparse.ArgumentParser(prog="costmodel", description="What transformer inference costs, as algebra.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, about in COMMANDS.items():
        sub = commands.add_parser(name, help=about, description=about)
        if name == asked:
            command = import_module(f"costmodel.cli.{name.replace('-', '_')}")
            command.add_arguments(sub)
            sub.set_defaults(run=command.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when answered, 2 when it could not be (the reason goes to stderr)."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ≤ or µ shows a ? in their place
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options = parser(arguments[0] if arguments else None).parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except CostModelError as error:
        print(f"costmodel {options.command}: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe has seen enough
        _leave_stdout()
    except OSError as error:  # a full disk
        print(f"costmodel {options.command}: error: {error.strerror or error}", file=sys.stderr)
        _leave_stdout()
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _leave_stdout() -> None:
    """What is still to be written goes nowhere, so that leaving Python does not try again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
