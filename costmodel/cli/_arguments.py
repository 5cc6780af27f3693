"""Arguments that several commands share: counts, shares, formats, and how answers are printed."""

import argparse
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeVar

from costmodel.common.errors import CostModelError
from costmodel.common.formats import number_format
from costmodel.exact import Number
from costmodel.model import Model
from costmodel.parallel import Parallel

Named = TypeVar("Named", str, int, str | None)


def count(text: str) -> int:
    """A positive whole number."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 10**15:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 10^15, got {text[:40]!r}")
    return value


def share(text: str) -> Fraction:
    """A share from 0 up to, but not including, 1, exactly: 0.1 is a tenth."""
    with suppress(InvalidOperation):
        value = Decimal(text)
        if value.is_finite() and 0 <= value < 1 and int(value.as_tuple().exponent) >= -30:
            return Fraction(value)
    raise argparse.ArgumentTypeError(f"must be a share at least 0 and below 1, got {text[:40]!r}")


def positive(text: str) -> float:
    """A number above 0."""
    with suppress(ValueError):
        value = float(text)
        if 0 < value < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"must be a number above 0, got {text[:40]!r}")


def price(text: str) -> float:
    """Dollars for an hour of a device; it may be free."""
    with suppress(argparse.ArgumentTypeError):
        return positive(text)
    with suppress(ValueError):
        if float(text) == 0:
            return 0.0
    raise argparse.ArgumentTypeError(f"must be a number of at least 0, got {text[:40]!r}")


def used(text: str) -> Fraction:
    """A share above 0 and up to 1."""
    with suppress(ValueError, argparse.ArgumentTypeError):
        found = Fraction(1) if float(text) == 1 else share(text)
        if found > 0:
            return found
    raise argparse.ArgumentTypeError(f"must be a share above 0 and at most 1, got {text[:40]!r}")


def once(what: str, names: Iterable[Named]) -> list[Named]:
    """The names; one that is there twice is refused."""
    found = list(names)
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise CostModelError(f"{what} {twice} is given twice")
    return found


def storage(text: str) -> str:
    """The name of a number format."""
    try:
        return number_format(text).name
    except CostModelError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def format_name(weights: str | Number) -> str:
    """A format in words: its name, or the average of a file that mixes several."""
    return weights if isinstance(weights, str) else f"mixed formats, {8 * float(weights):.3g} bits on average"


def notes_on(model: Model) -> list[str]:
    """What had to be assumed of a model; why its weight format is unknown is no news once one is given."""
    return list(model.notes[1:] if model.dtype is None else model.notes)


def only_with(parser: argparse.ArgumentParser, other: str, *names: str) -> None:
    """Options that mean nothing without another one: None unless given, until `filled` puts their usual values."""
    usual = {name: parser.get_default(name) for name in names}
    parser.set_defaults(only_with=(other, usual), **dict.fromkeys(names))


def filled(options: argparse.Namespace) -> None:
    """Put the usual values of `only_with` in place; refuse what was given without the option that it belongs to."""
    other, usual = options.only_with
    given = [name for name in usual if getattr(options, name) is not None]
    if given and getattr(options, other) is None:
        raise CostModelError(f"--{given[0]} means nothing without --{other}")
    for name in usual.keys() - set(given):
        setattr(options, name, usual[name])


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json: the same answer for scripts."""
    parser.add_argument("--json", action="store_true", help="print JSON, in SI base units")


def add_weights(parser: argparse.ArgumentParser) -> None:
    """--weights: the format weights are stored in."""
    parser.add_argument(
        "--weights", type=storage, metavar="FORMAT", help="bf16, fp8, int8, int4, … (default: as stored)"
    )


def add_assume_family(parser: argparse.ArgumentParser) -> None:
    """--assume-family: read an unknown model_type as one that is known."""
    parser.add_argument(
        "--assume-family", metavar="NAME", help="read an unknown model_type as this family, with a warning"
    )


def add_deployment(parser: argparse.ArgumentParser) -> None:
    """What is deployed and how it is used."""
    add_lengths(parser)
    parser.add_argument("--prompt", type=count, metavar="N", help="tokens of the prompt (default: the context)")
    add_formats(parser)


def add_lengths(parser: argparse.ArgumentParser, batch: int = 1, context: int = 1024) -> None:
    """--batch and --context."""
    parser.add_argument(
        "--batch", type=count, default=batch, metavar="N", help=f"sequences decoded together (default {batch})"
    )
    parser.add_argument(
        "--context", type=count, default=context, metavar="N", help=f"tokens each attends to (default {context})"
    )


def add_formats(parser: argparse.ArgumentParser) -> None:
    """--weights and --cache."""
    add_weights(parser)
    parser.add_argument(
        "--cache", type=storage, default="bf16", metavar="FORMAT", help="format of the key/value cache (default bf16)"
    )


SPREADS = {
    "tensor": "devices that split every matrix",
    "data": "groups of devices that each run attention for a share of the batch",
    "expert": "devices that hold different experts, of the tensor x data",
    "pipeline": "stages of consecutive layers",
    "replicas": "independent copies; --batch is that of one",
}


def add_parallel(parser: argparse.ArgumentParser) -> None:
    """--tensor, --data, --expert, --pipeline, --replicas: how the model is spread over devices."""
    group = parser.add_argument_group("several devices")
    for name, words in SPREADS.items():
        group.add_argument(f"--{name}", type=count, default=1, metavar="N", help=f"{words} (default 1)")


def parallel(options: argparse.Namespace) -> Parallel:
    """The spread that the options ask for."""
    return Parallel(**{name: getattr(options, name) for name in SPREADS})


def print_json(answer: Mapping[str, Any] | list[Any]) -> None:
    """Print plain JSON; a number that JSON cannot hold is an error, not NaN."""
    print(json.dumps(answer, indent=2, allow_nan=False, ensure_ascii=False))
