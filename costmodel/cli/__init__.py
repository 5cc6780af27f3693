"""The command `costmodel`: words and numbers for a terminal, JSON for scripts."""

import argparse
import os
import sys
from collections.abc import Sequence

from costmodel.cli import explain, inspect, listing, size, tour
from costmodel.common.errors import CostModelError

COMMANDS = (size, inspect, listing.Models, listing.Hardware, explain, tour)


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    top = argparse.ArgumentParser(prog="costmodel", description="What transformer inference costs, as algebra.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        sub = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when answered, 2 when the input was refused (the reason goes to stderr)."""
    options = parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except CostModelError as error:
        print(f"costmodel {options.command}: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return 130
    return 0
