"""What the interactive page knows, as a script: models as formulas, accelerators and number formats as figures."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from sympy import expand

from costmodel.common.errors import CostModelError
from costmodel.common.formats import FORMATS as KNOWN
from costmodel.common.formats import number_format
from costmodel.common.progress import watched
from costmodel.exact import Number, largest, whole_times
from costmodel.explore.javascript import function, mathml
from costmodel.hardware import SYMBOLIC_ACCELERATOR, Accelerator, accelerator, accelerators
from costmodel.model import Model, element_bytes
from costmodel.parallel import Parallel
from costmodel.roofline import Timing
from costmodel.sizing import Decode, Deployment
from costmodel.symbols import (
    B,
    C,
    D,
    F,
    S,
    T,
    b_kv,
    b_w,
    capacity,
    devices,
    interconnect,
    memory_bandwidth,
    params,
    peak,
    price,
)  # fmt: skip
from costmodel.zoo import load, presets

FORMATS = tuple(sorted(KNOWN, key=lambda name: -KNOWN[name].bytes))  # as a slider runs, the widest first
ROUNDED = ("8b", "7b", "70b")
MILLION = 10**6
TENSOR = (1, 2, 4, 8)
STORED = "stored"  # what the control calls a model's own format
STARTING: dict[str, Any] = {
    "model": "8b", "on": "h100-sxm", "batch": 1, "context": 8192, "weights": STORED, "cache": "bf16", "tensor": 1,
    "free": 0, "price": 2,
}  # fmt: skip
LINKED = replace(SYMBOLIC_ACCELERATOR, interconnect=interconnect)
LEAVES = ("weight_bytes", "cache_bytes", "flops", "bytes", "sent")  # shown for each model, the rest once for all
COMPOSED = ("memory_bytes", "largest_batch", "seconds_per_token", "tokens_per_s", "dollars_per_million")


@lru_cache(maxsize=512)  # a page and a notebook ask for the same models again and again
def leaves(model: Model, tensor: int = 1) -> dict[str, Number]:
    """A model's own formulas in B, S, b_w and b_kv: what one of `tensor` devices holds, does and sends.

    Raises
    ------
    CostModelError
        when the model does not split evenly over so many devices

    Examples
    --------
    >>> leaves(load("8b"))["cache_bytes"], leaves(load("8b"), 8)["cache_bytes"]
    (65536*S*b_kv, 8192*S*b_kv)
    """
    spread = Parallel(tensor=tensor)
    deployment = Deployment(model, LINKED, weights=b_w, cache=b_kv, parallel=spread)
    step = deployment.part.decode(B, S).sized(deployment.widths)
    prefill = deployment.part.prefill(1, S).sized(deployment.widths)
    return {
        "weight_bytes": deployment.weight_bytes,
        "cache_bytes": deployment.cache_bytes(S),
        "flops": step.flops,
        "bytes": step.bytes,
        "sent": step.sent,
        "prefill_flops": prefill.flops,
        "prefill_bytes": prefill.bytes,
        "prefill_sent": prefill.sent,
    }


# Letters that stand in for a model's own formulas where these are put together, the same way for all models.
STAND_INS = {params: "weight_bytes", C: "cache_bytes", F: "flops", D: "bytes", T: "sent"}
GIVEN = (B, memory_bandwidth, peak, interconnect, capacity, price, devices)
WORDS = STAND_INS | {params: "weights", C: "cache", F: "FLOPs"}


def composed(sent: Number = T) -> dict[str, Number]:
    """What follows from the leaves, whatever the model: formulas in STAND_INS and GIVEN."""
    step = Timing(F, D, peak, memory_bandwidth, communication_seconds=sent / interconnect)
    decode = Decode(step, B, S, params + B * C)
    return {
        "memory_bytes": decode.memory_bytes,
        "largest_batch": largest(0, whole_times(capacity - params, C)),
        "compute_seconds": step.compute_seconds,
        "memory_seconds": step.memory_seconds,
        "communication_seconds": step.communication_seconds,
        "seconds_per_token": decode.seconds_per_token,
        "tokens_per_s": decode.tokens_per_s,
        "intensity": step.intensity,
        "ridge": step.ridge,
        "dollars_per_million": MILLION * devices * price / decode.tokens_per_s,
    }


def general(sent: Number = T) -> dict[str, str]:
    """MathML of what is composed of the leaves."""
    found = composed(sent)
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
    """Models and accelerators for one page; `Catalogue.of` takes them by name, `script` prints them as JavaScript.

    Parameters
    ----------
    models : by the name the page calls them
    accelerators : likewise

    Examples
    --------
    >>> few = Catalogue.of(["8b"], ["h100-sxm"])
    >>> list(few.models), few.accelerators["h100-sxm"].capacity
    (['8b'], 80000000000)
    """

    models: Mapping[str, Model]
    accelerators: Mapping[str, Accelerator]

    @classmethod
    def of(cls, models: Iterable[str] | None = None, devices: Iterable[str] | None = None) -> "Catalogue":
        """Models by preset name or path, and accelerators by name; everything on record where None."""
        chosen = presets() if models is None else dict.fromkeys(models)
        records = accelerators().values() if devices is None else map(accelerator, devices)
        return cls({name: load(name) for name in chosen}, {record.name: record for record in records})

    @cached_property
    def script(self) -> str:
        """`const CATALOGUE = {…};`, the arithmetic in it printed from the package's expressions."""
        store, lines, steps = Skeletons(), [], len(self.models) * len(TENSOR)
        progress = watched("printing formulas", "formulas", steps)
        for name, model in self.models.items():
            lines.append(self._model(name, model, store))
            if progress:
                progress(len(lines) * len(TENSOR), steps)
        models = ",\n".join(lines)
        rest = {
            "accelerators": {name: self._accelerator(record) for name, record in self.accelerators.items()},
            "formats": {name: float(number_format(name).bytes) for name in FORMATS},
            "leaves": LEAVES,
            "tensor": TENSOR,
            "starting": STARTING,
            "general": {"alone": general(0), "together": general()},
            "skeletons": list(store.known),
        }
        compose = function(composed(), {letter: str(letter) for letter in GIVEN} | STAND_INS)
        return f"const CATALOGUE = {{models: {{\n{models}\n}},\ncompose: {compose},\n{_json(rest)[1:-1]}}};\n"

    def _model(self, name: str, model: Model, store: Skeletons) -> str:
        about = {
            "title": presets()[name]["title"] if name in presets() else model.name,
            "rounded": name in ROUNDED,
            "stored": self._stored(model),
            "positions": model.positions,
        }
        maths, functions = {}, []
        for tensor in TENSOR:
            try:
                found = leaves(model, tensor)
            except CostModelError as error:
                if tensor == 1:
                    raise
                about["refused"] = f"Over {tensor} devices it does not split: {str(error).partition(';')[0]}."
                break
            maths[tensor] = [store.add(mathml(expand(found[leaf]))) for leaf in LEAVES]
            functions.append(f"{tensor}:{function(found, (B, S, b_w, b_kv))}")
        return f'{_json(name)}: {{{_json(about)[1:-1]},"maths":{_json(maths)},"of":{{{",".join(functions)}}}}}'

    @staticmethod
    def _stored(model: Model) -> dict[str, Any] | None:
        if model.dtype is None:
            return None
        size = float(element_bytes(model.dtype))
        return {"label": model.dtype if isinstance(model.dtype, str) else "mixed formats", "bytes": size}

    @staticmethod
    def _accelerator(record: Accelerator) -> dict[str, Any]:
        dtype = record.peak_dtype()
        return {
            "title": record.title,
            "capacity": record.capacity,
            "bandwidth": record.bandwidth,
            "peak": record.peak(),
            "dtype": dtype,
            "interconnect": record.interconnect,
        }


def _json(value: object) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False).replace("</", r"<\/")
