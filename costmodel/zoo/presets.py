"""Models by name: published configurations, read like any other file, and rounded ones, known by their size."""

from copy import deepcopy
from functools import lru_cache
from importlib.resources import files
from typing import Any

from costmodel.common.errors import CostModelError, resolve_name
from costmodel.model import Model, stated_model
from costmodel.zoo.config import model_from_config
from costmodel.zoo.families import FAMILIES

NULL = "null"  # TOML has no null; only whole fields need one


@lru_cache(maxsize=1)
def records() -> dict[str, dict[str, Any]]:
    """Those of `presets`, read once; not to be changed."""
    import tomllib  # only when a preset is asked for: `import costmodel` stays light

    return tomllib.loads((files("costmodel") / "data" / "models.toml").read_text(encoding="utf-8"))


def presets() -> dict[str, dict[str, Any]]:
    """Every preset's record, by name; the reader's own, to keep or to change.

    Returns
    -------
    {name: record}; a record has a title, a source, and either a config or the stated size of a rounded model

    Examples
    --------
    >>> presets()["8b"]["stated"]
    {'params': 8000000000, 'L': 32, 'K': 8, 'H': 128}
    """
    return deepcopy(records())


def preset_config(name: str) -> dict[str, object]:
    """The config.json of a preset, as a dictionary that the reader takes back.

    Parameters
    ----------
    name : of a preset; other case and an unambiguous beginning are accepted

    Returns
    -------
    {field: value}

    Raises
    ------
    UnknownNameError
        suggesting the near ones
    CostModelError
        for a rounded model, which has no configuration

    Examples
    --------
    >>> preset_config("llama-3-8b")["num_key_value_heads"]
    8
    """
    slug = resolve_name("model", name, records())
    record = deepcopy(records()[slug])
    if "config" not in record:
        raise CostModelError(f"{slug} is a rounded model known only by its size: it has no config.json")
    config: dict[str, Any] = {name: None if value == NULL else value for name, value in record["config"].items()}
    return {"architectures": list(FAMILIES[config["model_type"]].architectures), **config}


def preset(name: str) -> Model:
    """Look up a preset; other case and an unambiguous beginning are accepted.

    Parameters
    ----------
    name : of a preset, such as "llama-3-8b"

    Returns
    -------
    Model

    Raises
    ------
    UnknownNameError
        suggesting the near ones

    Examples
    --------
    >>> preset("Llama-3-8B").params
    8030261248
    """
    slug = resolve_name("model", name, records())
    record = records()[slug]
    if "stated" in record:
        return stated_model(**record["stated"], name=slug, family="rounded")
    return model_from_config(preset_config(slug), slug, name=slug)
