"""What a token costs: dollars from a price per hour, and an upper estimate of energy from the rated power."""

from costmodel.common.checks import is_real
from costmodel.common.errors import CostModelError
from costmodel.exact import Number, amount, is_open
from costmodel.sizing.deployment import Deployment

HOUR = 3600
MILLION = 10**6


def paid_devices(deployment: Deployment) -> Number:
    """Devices that one replica occupies."""
    spread = deployment.parallel
    return deployment.accelerator.devices * spread.stage_devices * spread.pipeline


def checked_utilisation(utilisation: Number) -> Number:
    """A share above 0 and at most 1, or a symbol."""
    if not is_open(utilisation) and not (is_real(utilisation) and 0 < utilisation <= 1):
        raise CostModelError(f"utilisation must be above 0 and at most 1, got {utilisation!r}")
    return utilisation


def reading(deployment: Deployment, prompt: Number) -> tuple[Number, int]:
    """How long one copy is busy with the prompts that it reads at once, and how many these are: data·pipeline.

    Groups read side by side; stages of a pipeline hold different prompts, so that a stage is busy with one of them for
    1/pipeline of the time to its first token.

    Parameters
    ----------
    deployment : what runs
    prompt : tokens of each prompt [token]

    Returns
    -------
    duration [s], number of prompts

    Examples
    --------
    >>> from costmodel import Parallel, accelerator, load
    >>> four = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), parallel=Parallel(pipeline=4))
    >>> reading(four, 1000) == (four.prefill(1000).seconds, 4)
    True
    """
    groups = deployment.parallel.data
    return deployment.prefill(prompt, groups).seconds, groups * deployment.parallel.pipeline


def input_dollars(deployment: Deployment, prompt: Number, price: Number, utilisation: Number) -> Number:
    """Cost of a million tokens read, at the pace of `reading` [$]."""
    seconds, prompts = reading(deployment, prompt)
    return dollars(seconds, prompts * prompt, price, paid_devices(deployment), utilisation)


def output_dollars(
    deployment: Deployment, batch: Number, context: Number, price: Number, utilisation: Number
) -> Number:
    """Cost of a million tokens written, at the pace of a decode step of the batch [$]."""
    step = deployment.decode(batch, context).seconds_per_token
    return dollars(step, batch, price, paid_devices(deployment), utilisation)


def dollars(seconds: Number, tokens: Number, price: Number, devices: Number, utilisation: Number = 1) -> Number:
    """10⁶·price·devices·seconds/(tokens·utilisation·3600), the cost of a million tokens [$].

    Parameters
    ----------
    seconds, tokens : how long one copy works [s], and for how many tokens [token]
    price : of one device for one hour [$]
    devices : number that one copy occupies
    utilisation : share of the paid time spent on such work

    Returns
    -------
    cost of a million tokens [$]

    Raises
    ------
    CostModelError
        for a price below 0, and a utilisation outside (0, 1]

    Examples
    --------
    >>> dollars(seconds=0.01, tokens=64, price=3.6, devices=1, utilisation=0.5)
    0.3125
    """
    amount(price, "price", at_least=0)
    return MILLION * price * devices * seconds / (tokens * checked_utilisation(utilisation) * HOUR)


def dollars_per_million(
    deployment: Deployment, price: Number, *, batch: int = 1, context: int = 1024, prompt: int | None = None,
    utilisation: Number = 1,
) -> dict[str, Number]:  # fmt: skip
    """Cost of a million tokens read and of a million written [$].

    Input tokens come at the pace of a prompt's prefill in each group and stage, output tokens at that of a decode step
    of the batch.

    Parameters
    ----------
    deployment : what runs
    price : of one device for one hour [$]
    batch, context : sequences decoded together [sequence], tokens each attends to [token]
    prompt : tokens of a prompt [token]; None for the context
    utilisation : share of the paid time spent on such work; 1 is a machine that never waits

    Returns
    -------
    input, output : cost of a million tokens of each kind [$], by these names

    Raises
    ------
    CostModelError
        for a price below 0, and a utilisation outside (0, 1]

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    >>> {k: round(v, 4) for k, v in dollars_per_million(d, 3, batch=59, context=8192, utilisation=0.5).items()}
    {'input': 0.0271, 'output': 0.6635}
    """
    prompt = context if prompt is None else prompt
    return {
        "input": input_dollars(deployment, prompt, price, utilisation),
        "output": output_dollars(deployment, batch, context, price, utilisation),
    }


def joules_per_token(
    deployment: Deployment, *, batch: Number = 1, context: Number = 1024, utilisation: Number = 1
) -> Number:
    """TDP·devices·seconds/(batch·utilisation), an upper estimate [J]: the device drawing its rated power all the time.

    Parameters
    ----------
    deployment : what runs, on an accelerator whose power is on record
    batch, context : sequences decoded together [sequence], tokens each attends to [token]
    utilisation : share of the powered time spent on such work

    Returns
    -------
    energy of an output token [J]

    Raises
    ------
    CostModelError
        where the record has no rated power, and for a utilisation outside (0, 1]

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    >>> round(joules_per_token(d, batch=64), 3), round(700 * d.decode(64, 1024).seconds_per_token / 64, 3)
    (0.078, 0.078)
    """
    device = deployment.accelerator
    if device.tdp is None:
        raise CostModelError(f"{device.name} has no rated power (tdp) on record; energy needs one")
    step = deployment.decode(batch, context).seconds_per_token
    return device.tdp * paid_devices(deployment) * step / (batch * checked_utilisation(utilisation))
