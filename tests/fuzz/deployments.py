"""Deployments from any arguments: refused by name, or answered sanely: finite, not negative, growing with the load.

Of wrong types, only a keyword that does not exist may be Python's own TypeError.
"""

import math
from decimal import Decimal
from fractions import Fraction
from random import Random

from costmodel import CostModelError, accelerator, load, transformer
from costmodel.common.formats import FORMATS
from costmodel.hardware import Accelerator
from costmodel.model import stated_model
from costmodel.parallel import Parallel
from costmodel.sizing import Deployment
from costmodel.sizing.levers import LEVERS, METRICS
from tests.fuzz.harness import Target

MODELS = ("llama-3-8b", "llama-2-70b", "mixtral-8x7b", "deepseek-v3", "gpt2", "mamba-2.8b-hf", "gemma-2-9b")
ODD = (
    0, -1, 1, 2, 7, 1.0, 1.5, -0.0, math.nan, math.inf, -math.inf, 10**30, -(10**30), 2**63, 1e308, 5e-324, True, False,
    None, "", "8", "bf16", "é", b"1", [], [1], {}, (), object, Fraction(1, 3), Fraction(-1, 3), 3 + 1j, Decimal("0.1"),
    Decimal("NaN"),
)  # fmt: skip
COUNTS = (1, 2, 3, 8, 64, 1000, 8192, 10**6, 10**9)
COMPUTE = ("bf16", "fp8", "fp16", "int8", "fp64")
SOFTWARE = (False, False, False, True, "vllm", "nobody")


def _number(rng: Random, usual: tuple, odd: float = 0.12) -> object:
    return rng.choice(ODD) if rng.random() < odd else rng.choice(usual)


def _model(rng: Random) -> tuple:
    what = rng.random()
    if what < 0.6:
        return "load", rng.choice(MODELS)
    if what < 0.7:
        return "odd", rng.choice(ODD)
    if what < 0.8:
        return "stated", {"params": _number(rng, COUNTS), "L": 2, "K": _number(rng, (1, 8)), "H": 64}
    sizes = {"V": 100, "D": 64, "F": 128, "N": 4, "K": 2, "H": 16, "L": 2}
    return "transformer", sizes | {rng.choice("VDFNKHL"): _number(rng, (1, 4, 256), 0.5)}


def _device(rng: Random) -> tuple:
    what = rng.random()
    if what < 0.7:
        return "record", rng.choice(("h100-sxm", "a100-sxm-80gb", "rtx-4090", "v100-sxm2-32gb"))
    if what < 0.8:
        return "odd", rng.choice(ODD)
    figures = {"name": "mine", "capacity": 8 * 10**10, "bandwidth": 2 * 10**12, "peaks": {"bf16": 10**15}}
    figures |= {"interconnect": _number(rng, (10**11, None))}
    change = rng.choice(("capacity", "bandwidth", "peak", "peaks", "none"))
    if change == "peak":
        figures["peaks"] = {"bf16": rng.choice(ODD)}
    elif change != "none":
        figures[change] = rng.choice(ODD)
    return "made", figures


def made(rng: Random) -> tuple[tuple, tuple, dict, dict, dict]:
    """A model, an accelerator, arguments of Parallel and of Deployment, and where it is asked."""
    ways = ("tensor", "data", "expert", "pipeline", "replicas", "seconds_per_message", "all_reduce", "hidden", "pad")
    several = {name: _number(rng, (1, 1, 2, 4, 8)) for name in ways[:5] if rng.random() < 0.15}
    if rng.random() < 0.1:
        several[rng.choice(ways)] = rng.choice((*ODD, "ring", "tree"))
    widths = (*FORMATS, 1, 2, 0.5, Fraction(17, 32))
    options = {name: _number(rng, widths) for name in ("weights", "cache", "activations") if rng.random() < 0.3}
    if rng.random() < 0.3:
        options["reserve"] = _number(rng, (0, 0.1, 0.5, Fraction(1, 10)), 0.3)
    if rng.random() < 0.2:
        options["compute"] = _number(rng, COMPUTE)
    if rng.random() < 0.2:
        options[rng.choice(("textbook", "calibrated", "parallel"))] = rng.choice((*ODD, *SOFTWARE))
    at = {name: _number(rng, COUNTS, 0.2) for name in ("batch", "context", "prompt")}
    if rng.random() < 0.05:
        at["generated"] = _number(rng, (1, 16, 300), 0.5)
    if rng.random() < 0.01:
        at |= {
            "lever": rng.choice(list(LEVERS)),
            "metric": rng.choice(list(METRICS)),
            "target": _number(rng, (0.02, 9.0)),
        }
    return _model(rng), _device(rng), several, options, at


def _built(model: tuple, device: tuple, several: dict, options: dict) -> Deployment:
    kind, what = model
    built = {
        "load": load,
        "odd": lambda x: x,
        "stated": lambda x: stated_model(**x),
        "transformer": lambda x: transformer(**x),
    }
    found = built[kind](what)
    kind, what = device
    chip = {"record": accelerator, "odd": lambda x: x, "made": lambda x: Accelerator(**x)}[kind](what)
    spread = Parallel(**several) if several else {}
    return Deployment(found, chip, **({"parallel": spread} if several else {}) | options)


def _sane(name: str, value: object) -> None:
    assert isinstance(value, int | float | Fraction), f"{name} is {value!r}"
    assert not isinstance(value, bool), f"{name} is {value!r}"
    assert 0 <= value < math.inf, f"{name} is {value!r}"


SIZES = ("batch", "context", "prompt")
METHODS = {  # name -> the sizes it is asked for
    "cache_bytes": ("context",), "memory_bytes": ("batch", "context"), "fits": ("batch", "context"),
    "wall": ("batch", "context"), "largest_batch": ("context",), "longest_context": ("batch",),
    "decode": ("batch", "context"), "prefill": ("prompt",),
}  # fmt: skip


def tried(given: tuple[tuple, tuple, dict, dict, dict]) -> str:
    """Build it, ask every method, then ask for twice as much."""
    model, device, several, options, at = given
    try:
        d = _built(model, device, several, options)
        _sane("weights", d.weight_bytes)
        _sane("usable", d.usable_bytes)
    except CostModelError:
        return "not built"
    answers, refused = {}, 0
    for name, sizes in METHODS.items():
        try:
            answers[name] = getattr(d, name)(*(at[size] for size in sizes))
        except CostModelError as refusal:
            assert str(refusal)
            refused += 1
    for name, answer in answers.items():
        _checked(name, answer)
    if len(answers) == len(METHODS) and max(at[size] for size in SIZES) <= 2**62:  # twice that is refused
        _grows(d, answers, at)
    _asked(d, at)
    return "refused in part" if refused else "answered"


def _checked(name: str, answer: object) -> None:
    if name == "fits":
        assert isinstance(answer, bool)
    elif name == "wall":
        assert answer in (None, "weights", "cache")
    elif name == "decode":
        _sane("seconds per token", float(answer.seconds_per_token))
        _sane("memory", answer.memory_bytes)
        assert answer.tokens_per_s > 0
        assert answer.bound in ("memory", "compute", "communication")
    elif name == "prefill":
        _sane("seconds", float(answer.seconds))
        _sane("bytes", answer.bytes)
    elif answer is not None or name not in ("largest_batch", "longest_context"):
        _sane(name, answer)


def _grows(d: Deployment, answers: dict, at: dict) -> None:
    """Twice the batch, context or prompt never takes less memory or time, nor leaves more room."""
    batch, context, prompt = at["batch"], at["context"], at["prompt"]
    memory = answers["memory_bytes"]
    assert memory >= d.weight_bytes
    assert memory <= d.memory_bytes(2 * batch, context)
    assert memory <= d.memory_bytes(batch, 2 * context)
    assert answers["fits"] == (memory <= d.usable_bytes) == (answers["wall"] is None)
    less = answers["largest_batch"], d.largest_batch(2 * context)
    assert None in less or less[1] <= less[0]
    most = answers["largest_batch"]
    if most is not None and most >= 1:
        assert d.fits(most, context)
    longest = answers["longest_context"]
    if longest is not None and longest >= 1:
        assert d.fits(batch, longest)
        assert not d.fits(batch, longest + 1)
    if not d.calibrated:
        step = answers["decode"].seconds_per_token
        rounding = 1 + 1e-12
        assert step <= d.decode(2 * batch, context).seconds_per_token * rounding
        assert step <= d.decode(batch, 2 * context).seconds_per_token * rounding
        assert answers["prefill"].seconds <= d.prefill(2 * prompt).seconds * rounding


def _asked(d: Deployment, at: dict) -> None:
    """What the rarer questions answer."""
    where = {name: at[name] for name in ("batch", "context")}
    if "generated" in at:
        try:
            _checked("decode", d.decode(**where, generated=at["generated"]))
        except CostModelError as refusal:
            assert str(refusal)
    if "lever" in at:
        try:
            found = d.elasticities(**where, metric=at["metric"])
            assert all(math.isfinite(value) for value in found.levers.values())
            where.pop(at["lever"], None)
            _sane("root", float(d.solve(at["lever"], **where, **{at["metric"]: at["target"]})))
        except CostModelError as refusal:
            assert str(refusal)


DEPLOYMENT = Target("deployment", made, tried)
