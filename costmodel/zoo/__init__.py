"""Real models: presets by name, and readers of published configurations."""

import os
from pathlib import Path

from costmodel.common.errors import UnknownNameError
from costmodel.model import Model
from costmodel.zoo.config import model_from_config
from costmodel.zoo.json_file import is_gguf, read_object
from costmodel.zoo.presets import preset, preset_config, presets, records

__all__ = ["load", "model_from_config", "preset", "preset_config", "presets"]


def load(name: str | os.PathLike[str], *, assume_family: str | None = None) -> Model:
    """A Model by preset name, or from the path of a config.json, a GGUF or a safetensors file (or its index).

    Parameters
    ----------
    name : of a preset, in any case or an unambiguous beginning; or a path: anything with a separator, one of these
        endings, or that exists and is no preset's name
    assume_family : of a config.json: read a model_type that is not known as if it were this one

    Returns
    -------
    Model

    Raises
    ------
    UnknownNameError
        for a name that is neither a preset nor a file; near names are suggested
    ConfigError
        for a file that cannot be right or is not understood

    Examples
    --------
    >>> load("llama-2-13b").params
    13015864320
    """
    if not isinstance(name, str | os.PathLike):
        raise UnknownNameError(f"a model is named by a string or a path, got {name!r}")
    path = Path(name)
    if (
        isinstance(name, os.PathLike)
        or name.endswith((".json", ".gguf", ".safetensors"))
        or os.sep in name
        or (name not in records() and os.path.exists(name))
    ):
        if is_gguf(path):
            from costmodel.zoo.gguf import model_from_gguf  # rarely asked for, and the slowest part to import

            return model_from_gguf(path)
        if path.name.endswith((".safetensors", ".safetensors.index.json")):
            from costmodel.zoo.safetensors import model_from_safetensors  # likewise

            return model_from_safetensors(path)
        return model_from_config(read_object(path), str(path), assume_family=assume_family)
    try:
        return preset(name)
    except UnknownNameError as error:
        raise UnknownNameError(f"{error} (a file is taken by its path, such as ./config.json)") from None
