"""Every public name says, in this order: what it is, parameters [unit], returns [unit], errors, an example, the source.

Public is what a room lists in its `__all__` and what a page imports, with the methods of the classes that people hold.
Figures are left out: each says what it shows, and the pages run them. The doctests hold the examples.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

import costmodel
from costmodel.exact import Number

ORDER = ["Parameters", "Attributes", "Returns", "Raises", "Examples", "References"]
HEADING = re.compile(r"^([A-Z]\w+)\n-{3,}\n", re.M)
# What tells a reader how to measure a number: a unit or a shape, or a word for what has neither.
MEASURED = re.compile(
    r"\[[^\]]+\]|\([A-Za-z0-9_, ….]+\)|\b(share|probabilit|ratio|factor|exponent|seed|number|times|logarithm)"
)


HELD = (costmodel.Deployment, costmodel.Model, costmodel.Ledger, costmodel.Accelerator)
NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


def listed() -> Iterator[tuple[str, str]]:
    """Room and name of what is in an `__all__`."""
    for found in [costmodel, *pkgutil.walk_packages(costmodel.__path__, "costmodel.")]:
        room = getattr(found, "__name__", "") or found.name
        if not room.endswith("__main__"):
            yield from ((room, name) for name in getattr(importlib.import_module(room), "__all__", ()))


def on_pages() -> Iterator[tuple[str, str]]:
    """Room and name of what a notebook imports."""
    for page in sorted(NOTEBOOKS.glob("*.ipynb")):
        for cell in nbformat.read(page, as_version=4).cells:
            nodes = ast.walk(ast.parse(cell.source)) if cell.cell_type == "code" else ()
            for node in nodes:
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("costmodel"):
                    yield from ((node.module or "", alias.name) for alias in node.names)


def public() -> Iterator[tuple[str, Any]]:
    for room, name in [*listed(), *on_pages()]:
        thing = inspect.unwrap(getattr(importlib.import_module(room), name))
        if not room.startswith("costmodel.plotting") and (inspect.isclass(thing) or inspect.isfunction(thing)):
            yield f"{thing.__module__}.{name}", thing
    for held in HELD:
        for name, method in inspect.getmembers(held, inspect.isfunction):
            if not name.startswith("_"):
                yield f"{held.__name__}.{name}", method


PUBLIC = dict(public())


def sections(doc: str) -> dict[str, str]:
    """Title to text, in the order found; the text before the first title is under ""."""
    first, *rest = HEADING.split(inspect.cleandoc(doc))
    titles, texts = rest[::2], rest[1::2]
    assert titles == sorted(titles, key=ORDER.index), f"in this order: {ORDER}"
    return {"": first, **dict(zip(titles, texts, strict=True))}


def entries(text: str) -> dict[str, str]:
    """`a, b : words` to {a: words, b: words}; what is indented belongs to the line above."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        names, _, words = entry.partition(" : ")
        found |= {name.strip().lstrip("*"): words for name in names.split(",")}
    return found


def raised(thing: Any) -> set[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    names = {getattr(getattr(n.exc, "func", n.exc), "id", "") for n in ast.walk(tree) if isinstance(n, ast.Raise)}
    return {name for name in names if name.endswith("Error") and name != "NotImplementedError"}


def is_number(annotation: object) -> bool:
    return annotation is float or annotation == Number


@pytest.mark.parametrize("name", PUBLIC)
def test_it_says_what_goes_in_what_comes_out_and_how(name: str) -> None:
    thing = PUBLIC[name]
    assert inspect.isclass(thing) or thing.__doc__, "no docstring"
    found = sections(thing.__doc__)
    assert found[""].strip(), "no first line"
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return
    known = entries(found.get("Parameters", "")) | entries(found.get("Attributes", ""))
    signature = inspect.signature(thing)
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        assert parameter.name in known, f"parameter {parameter.name} is not described"
        if is_number(parameter.annotation):
            assert MEASURED.search(known[parameter.name]), f"{parameter.name}: a [unit], a (shape) or a word for it"
    if inspect.isfunction(thing):
        if signature.return_annotation is not None:
            assert "Returns" in found, "what comes out is not described"
            assert not is_number(signature.return_annotation) or MEASURED.search(found["Returns"]), "returns: a [unit]"
        for error in raised(thing):
            assert error in found.get("Raises", ""), f"{error} is raised and not described"
    assert ">>> " in found.get("Examples", ""), "no example"
    if "References" in found:
        assert re.search(r"\d{4}\.\d{4,5}|\b(19|20)\d\d\b|section|https?://", found["References"]), "which paper?"
