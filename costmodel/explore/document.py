"""The interactive page: one HTML file that needs nothing else."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from costmodel.explore.catalogue import Catalogue

STARTING = {"model": "8b", "on": "h100-sxm", "batch": 1, "context": 8192}


def source(name: str) -> str:
    """A file that stands beside this module."""
    return (files("costmodel.explore") / name).read_text(encoding="utf-8")


def page_script(catalogue: Catalogue, settings: Mapping[str, Any]) -> str:
    """The control for the element with the id `calculator`, as the text of a module script."""
    start = f"const START = {json.dumps(dict(settings))};\n"
    return catalogue.script + source("calculator.js") + start + source("page_entry.js")


def widget_script(catalogue: Catalogue) -> str:
    """The same control as the module that anywidget asks for."""
    return catalogue.script + source("calculator.js") + source("widget_entry.js")


def page(catalogue: Catalogue | None = None, **settings: Any) -> str:
    """The whole page as HTML.

    Parameters
    ----------
    catalogue : models and accelerators to choose from; everything on record if None
    settings : what it opens with: model, on, batch, context, weights, cache, free [%], price [$/hour]

    Returns
    -------
    one HTML document that loads nothing else

    Examples
    --------
    >>> page(Catalogue.of(["8b"], ["h100-sxm"]), batch=16).startswith("<!DOCTYPE html>")
    True
    """
    parts = {
        "style": source("calculator.css"),
        "version": version("costmodel"),
        "script": page_script(catalogue or Catalogue.of(), STARTING | settings),
    }
    html = source("page.html")
    for name, text in parts.items():
        html = html.replace("{{" + name + "}}", text)
    return html
