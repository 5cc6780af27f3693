"""What a row's names stand for: a preset or a shape kept as data, an accelerator or a device known by its bandwidth."""

import re
from functools import lru_cache
from importlib.resources import files
from math import sqrt
from typing import Any

from costmodel.common.errors import CostModelError, UnknownNameError, unknown_name
from costmodel.hardware import Accelerator, accelerator, accelerators
from costmodel.model import Model, stated_model, transformer
from costmodel.zoo import preset, presets

COUNT = re.compile(r"(\d+(?:\.\d+)?)b(?:-|$)")

MOST_BILLIONS = 1e6  # of parameters: a name that states more is no size


@lru_cache(maxsize=1)
def _records() -> dict[str, dict[str, Any]]:
    import tomllib  # only when evidence is asked for: `import costmodel` stays light

    return tomllib.loads((files("costmodel") / "data" / "evidence.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def model_named(name: str) -> Model:
    """The model a published name means: a preset, a shape kept with the evidence, or a size read off the name.

    A name with a parameter count, such as "acme-13b", becomes a model stated by that count, with the layers and the
    cache of a dense decoder of that size: L = (params/1.5e6)^(1/3) to the nearest 8, K·H = √(params/(12·L)).

    Raises
    ------
    UnknownNameError
        for a name that is none of these

    Examples
    --------
    >>> model_named("Llama-3.3-70B").params
    70553706496
    >>> model_named("acme-13b").params
    13000000000
    """
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    records = _records()
    slug = records["aliases"].get(wanted, wanted)
    if slug in records["models"]:
        return transformer(**records["models"][slug], name=slug)
    if slug in records["stated"]:
        return stated_model(**records["stated"][slug], name=slug, family="stated")
    try:
        return preset(slug)
    except UnknownNameError:
        stated = COUNT.search(wanted)
        if stated is None or not 0 < float(stated[1]) < MOST_BILLIONS:
            raise unknown_name("model", name, {*presets(), *records["models"], *records["aliases"]}) from None
    params = round(float(stated[1]) * 1e9)
    layers = max(8, 8 * round((params / 1.5e6) ** (1 / 3) / 8))
    return stated_model(
        params=params, L=layers, K=max(1, round(sqrt(params / 12 / layers) / 128)), H=128, name=wanted, family="stated"
    )


@lru_cache(maxsize=256)
def device_named(name: str) -> Accelerator:
    """The accelerator a published name means: a record, the record it begins with, or a device without a peak.

    Parameters
    ----------
    name : as published; case, spaces and underscores do not matter

    Returns
    -------
    Accelerator

    Raises
    ------
    UnknownNameError
        suggesting the near ones

    Examples
    --------
    >>> device_named("H100-SXM-80GB").name, device_named("M2-Ultra").peaks
    ('h100-sxm', {})
    """
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    devices = _records()["devices"]
    wanted = _records()["cards"].get(wanted, wanted)
    if wanted in devices:
        return Accelerator(wanted, devices[wanted]["capacity"], devices[wanted]["bandwidth"], {})
    known = accelerators()
    if wanted in known:
        return known[wanted]
    begun = [slug for slug in known if wanted.startswith(f"{slug}-")]
    if begun:
        return known[max(begun, key=len)]
    try:
        return accelerator(wanted)
    except CostModelError:
        raise unknown_name("accelerator", name, {*known, *devices}) from None
