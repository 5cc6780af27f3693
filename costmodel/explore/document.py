"""The interactive page: one HTML file that needs nothing else."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from costmodel.common.checks import number
from costmodel.common.errors import CostModelError, resolve_name, unknown_name
from costmodel.common.formats import number_format
from costmodel.explore.catalogue import STARTING, STORED, TENSOR, Catalogue


def source(name: str) -> str:
    """A file that stands beside this module."""
    return (files("costmodel.explore") / name).read_text(encoding="utf-8")


def page_script(catalogue: Catalogue, settings: Mapping[str, Any]) -> str:
    """The control for the element with the id `calculator`, as the text of a module script."""
    start = f"const START = {json.dumps(dict(settings))};\n".replace("</", r"<\/")
    return catalogue.script + source("calculator.js") + start + source("page_entry.js")


def widget_script(catalogue: Catalogue) -> str:
    """The same control as the module that anywidget asks for."""
    return catalogue.script + source("calculator.js") + source("widget_entry.js")


def checked(settings: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """The settings under the names that the page knows; anything unknown is refused."""
    found = dict(settings)
    for name, value in settings.items():
        if name not in STARTING:
            raise unknown_name("setting", name, STARTING)
        if name == "model" and value not in catalogue.models:
            raise unknown_name("model", value, catalogue.models)
        if name == "on":
            found[name] = resolve_name("accelerator", value, catalogue.accelerators)
        elif name == "cache" or (name == "weights" and value != STORED):
            found[name] = number_format(value).name
        elif name == "tensor" and value not in TENSOR:
            raise CostModelError(f"tensor must be one of {', '.join(map(str, TENSOR))}, got {value!r}")
        elif name in ("batch", "context", "free", "price"):
            number(name, value, 0)
    return found


def page(catalogue: Catalogue | None = None, **settings: Any) -> str:
    """The whole page as HTML.

    Parameters
    ----------
    catalogue : models and accelerators to choose from; everything on record if None
    settings : what it opens with: model, on, batch, context, weights, cache, tensor, free [%], price [$/hour]

    Returns
    -------
    one HTML document that loads nothing else

    Raises
    ------
    CostModelError
        for a setting, model, accelerator or format that is not known

    Examples
    --------
    >>> page(Catalogue.of(["8b"], ["h100-sxm"]), batch=16).startswith("<!DOCTYPE html>")
    True
    """
    catalogue = catalogue or Catalogue.of()
    parts = {
        "style": source("calculator.css"),
        "version": version("costmodel"),
        "script": page_script(catalogue, checked(settings, catalogue)),
    }
    html = source("page.html")
    for name, text in parts.items():
        html = html.replace("{{" + name + "}}", text)
    return html
