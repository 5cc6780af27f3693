"""A forecast in place of the bound: the same pass, its time from constants fitted to published measurements."""

from dataclasses import dataclass, replace

from costmodel.calibration import (
    AVERAGE,
    Calibration,
    Setting,
    Term,
    engine,
    families,
    fitted,
    interruption_terms,
    pass_terms,
    total_seconds,
)
from costmodel.common.checks import present
from costmodel.common.errors import CostModelError, unknown_name
from costmodel.exact import Number, is_plain, quotient
from costmodel.hardware import Accelerator
from costmodel.model import Model
from costmodel.operation import Widths
from costmodel.ops import Ledger
from costmodel.roofline import Timing


@dataclass(frozen=True)
class Forecast(Timing):
    """How long a pass is likely to take; its FLOPs, bytes and what binds stay those of the roofline.

    Attributes
    ----------
    terms : what the time is made of
    calibration : the constants, and their error
    """

    terms: tuple[Term, ...] = ()
    calibration: Calibration | None = None

    @property
    def seconds(self) -> Number:
        """The sum of the terms, weights and compute overlapping [s]."""
        return total_seconds(self.terms, present("calibration", self.calibration).constants)

    @property
    def parts(self) -> dict[str, Number]:
        """Seconds of each term by name [s]."""
        return {term.name: term.seconds(present("calibration", self.calibration).constants) for term in self.terms}

    @property
    def error(self) -> str:
        """How wrong such forecasts were on measurements they had not been fitted to."""
        return present("calibration", self.calibration).stated_error


def setting(accelerator: Accelerator, widths: Widths, software: str | bool) -> Setting:
    """The Setting of a deployment; True is average software.

    Raises
    ------
    CostModelError
        when a width or the interconnect is a symbol: constants were fitted to formats and kinds of links; for software
        of no known family
    """
    if not is_plain(widths.weight, widths.cache):
        raise CostModelError("calibrated needs formats of known size; give weights and cache as formats, such as 'fp8'")
    if not is_plain(0 if accelerator.interconnect is None else accelerator.interconnect):
        raise CostModelError("calibrated needs an interconnect in numbers: its constants belong to kinds of it")
    name = AVERAGE if isinstance(software, bool) else software
    found = engine(name)
    if found.family == AVERAGE != name:
        raise unknown_name("software", name, families())
    return Setting(accelerator, float(8 * widths.weight), float(8 * widths.cache), found)


def forecast(
    bound: Timing, model: Model, ledger: Ledger, where: Setting, sequences: Number, tokens: Number
) -> Forecast:
    """The forecast of one pass of B sequences and B·T tokens whose bound is known."""
    terms = pass_terms(model, ledger, where, sequences=sequences, tokens=tokens)
    return Forecast(bound.flops, bound.bytes, bound.peak, bound.bandwidth, terms=tuple(terms), calibration=fitted())


def interrupted(
    step: Forecast, model: Model, where: Setting, batch: Number, context: Number, generated: Number
) -> Forecast:
    """A decode step of a server, on average: one that prefills the prompts of newcomers between steps.

    The context is the average one, prompt + generated/2. Software that batches statically is never interrupted.
    """
    prompt = context - quotient(generated, 2)
    if is_plain(prompt) and prompt < 1:
        raise CostModelError(f"generated ({generated}) leaves no prompt in an average context of {context}")
    if where.engine.batching == "static":
        return step
    lengths = {"batch": batch, "prompt": prompt, "generated": generated}
    added = interruption_terms(model, model.prefill(1, prompt), where, **lengths)
    return replace(step, terms=(*step.terms, *added))
