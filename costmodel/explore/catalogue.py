"""What the interactive page knows, as a script: models as formulas, accelerators and number formats as figures."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from costmodel.common.formats import number_format
from costmodel.exact import Number, largest, whole_times
from costmodel.explore.javascript import function, mathml
from costmodel.hardware import SYMBOLIC_ACCELERATOR, Accelerator, accelerators
from costmodel.model import Model, element_bytes
from costmodel.roofline import Timing
from costmodel.sizing import Deployment
from costmodel.symbols import B, C, D, F, S, b_kv, b_w, capacity, memory_bandwidth, params, peak, price
from costmodel.tables import display_form
from costmodel.zoo import load, presets

LETTERS = (B, S, b_w, b_kv, memory_bandwidth, peak, capacity, price)  # what the page's sliders give values to
FORMATS = ("bf16", "fp8", "nvfp4", "mxfp4", "int4", "int3")
ROUNDED = ("8b", "7b", "70b")
MILLION = 10**6


def formulas(deployment: Deployment) -> dict[str, Number]:
    """Everything the page shows, as formulas in B, S and the letters of the accelerator.

    Parameters
    ----------
    deployment : on an accelerator of symbols, its widths the symbols b_w and b_kv

    Examples
    --------
    >>> d = Deployment(load("8b"), SYMBOLIC_ACCELERATOR, weights=b_w, cache=b_kv)
    >>> formulas(d)["largest_batch"]
    Max(0, floor((-8000000000*b_w + capacity)/(65536*S*b_kv)))
    """
    step, prefill = deployment.decode(B, S).timing, deployment.prefill(S)
    return {
        "prefill_flops": prefill.flops,
        "prefill_bytes": prefill.bytes,
        "ttft_s": prefill.seconds,
        "prefill_intensity": prefill.intensity,
        **composed(deployment.weight_bytes, deployment.cache_bytes(S), step),
    }


def composed(weights: Number, cache: Number, step: Timing) -> dict[str, Number]:
    """What follows from weights [byte], cache of a sequence [byte] and the timing of a decode step of B sequences."""
    seconds = step.seconds
    return {
        "weight_bytes": weights,
        "cache_bytes": cache,
        "memory_bytes": weights + B * cache,
        "largest_batch": largest(0, whole_times(capacity - weights, cache)),
        "flops": step.flops,
        "bytes": step.bytes,
        "compute_seconds": step.compute_seconds,
        "memory_seconds": step.memory_seconds,
        "seconds_per_token": seconds,
        "tokens_per_s": B / seconds,
        "intensity": step.intensity,
        "ridge": step.ridge,
        "dollars_per_million": MILLION * price * seconds / B,
    }


LEAVES = ("weight_bytes", "cache_bytes", "flops", "bytes")  # a model's own; the rest is the same for all
COMPOSED = ("memory_bytes", "largest_batch", "seconds_per_token", "tokens_per_s", "dollars_per_million")
WORDS = {params: "weights", C: "cache", F: "FLOPs", D: "bytes"}  # letters that stand in for a model's own formulas


def general() -> dict[str, str]:
    """MathML of what is composed of the leaves, whatever the model."""
    found = composed(params, C, Timing(F, D, peak, memory_bandwidth))
    names = WORDS | {found["seconds_per_token"]: "latency"}
    return {name: mathml(found[name], WORDS if name == "seconds_per_token" else names) for name in COMPOSED}


@dataclass
class Skeletons:
    """Formulas that differ in their numbers alone, stored once."""

    known: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> list[int | str]:
        """Which skeleton, then its numbers.

        Examples
        --------
        >>> store = Skeletons()
        >>> store.add("<mn>2</mn><mi>B</mi>"), store.add("<mn>3</mn><mi>B</mi>"), store.known
        ([0, '2'], [0, '3'], {'<mn>#</mn><mi>B</mi>': 0})
        """
        numbers = re.findall(r"<mn>([^<]*)</mn>", text)
        skeleton = re.sub(r"<mn>[^<]*</mn>", "<mn>#</mn>", text)
        return [self.known.setdefault(skeleton, len(self.known)), *numbers]


@dataclass(frozen=True)
class Catalogue:
    """Models and accelerators for one page.

    Parameters
    ----------
    models : by the name the page calls them
    accelerators : likewise
    """

    models: Mapping[str, Model]
    accelerators: Mapping[str, Accelerator]

    @classmethod
    def of(cls, models: Iterable[str] | None = None, devices: Iterable[str] | None = None) -> "Catalogue":
        """Models by preset name or path, and accelerators by name; everything on record where None."""
        chosen = presets() if models is None else dict.fromkeys(models)
        known = accelerators()
        return cls({name: load(name) for name in chosen}, known if devices is None else {n: known[n] for n in devices})

    @cached_property
    def script(self) -> str:
        """`const CATALOGUE = {…};`, the arithmetic in it printed from the package's expressions."""
        store = Skeletons()
        models = ",\n".join(self._model(name, model, store) for name, model in self.models.items())
        rest = {
            "accelerators": {name: self._accelerator(record) for name, record in self.accelerators.items()},
            "formats": {name: float(number_format(name).bytes) for name in FORMATS},
            "leaves": LEAVES,
            "general": general(),
            "skeletons": list(store.known),
        }
        return f"const CATALOGUE = {{models: {{\n{models}\n}},\n{_json(rest)[1:-1]}}};\n"

    def _model(self, name: str, model: Model, store: Skeletons) -> str:
        about = {
            "title": presets()[name]["title"] if name in presets() else model.name,
            "rounded": name in ROUNDED,
            "stored": self._stored(model),
            "positions": model.positions,
        }
        found = formulas(Deployment(model, SYMBOLIC_ACCELERATOR, weights=b_w, cache=b_kv))
        maths = [store.add(mathml(display_form(found[leaf]))) for leaf in LEAVES]
        return f'{_json(name)}: {{{_json(about)[1:-1]},"maths":{_json(maths)},"of":{function(found, LETTERS)}}}'

    @staticmethod
    def _stored(model: Model) -> dict[str, object] | None:
        if model.dtype is None:
            return None
        size = float(element_bytes(model.dtype))
        return {"label": model.dtype if isinstance(model.dtype, str) else "mixed formats", "bytes": size}

    @staticmethod
    def _accelerator(record: Accelerator) -> dict[str, object]:
        dtype = record.peak_dtype()
        return {
            "title": record.title,
            "capacity": record.capacity,
            "bandwidth": record.bandwidth,
            "peak": record.peak(),
            "dtype": dtype,
        }


def _json(value: object) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False).replace("</", r"<\/")
