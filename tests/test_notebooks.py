"""What strict nbval does not see: cleared outputs, cells run out of order, broken links, pages without their parts."""

import ast
import re
import statistics
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parent.parent / "notebooks"
PAGES = sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))
PARTS = (
    "What you'll do",
    "What you'll learn",
    "What you'll need",
    "Takeaway",
    "## What breaks",
    "## Exercises",
    "<details>",
    "## Test yourself",
    "## Papers",
)
every_page = pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)


def cells(path: Path, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def test_there_are_pages() -> None:
    assert len({p.stem[:2] for p in PAGES}) == len(PAGES)
    assert len(PAGES) >= 4


@every_page
def test_a_page_says_how_long_it_takes(path: Path) -> None:
    assert re.search(r"[Aa]bout \d+\s+minutes", cells(path, "markdown")[0].source)


@every_page
def test_cells_ran_once_in_order_without_errors(path: Path) -> None:
    code = cells(path, "code")
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [o for cell in code for o in cell.outputs if o.output_type == "error"]
    assert not [o for cell in code for o in cell.outputs if o.get("name") == "stderr"]


@every_page
def test_what_shows_something_has_its_output(path: Path) -> None:
    for cell in cells(path, "code"):
        last = ast.parse(cell.source).body[-1]
        shows = isinstance(last, ast.Expr) or "print(" in cell.source
        assert bool(cell.outputs) == shows, cell.source


@every_page
def test_nothing_in_a_page_depends_on_the_run(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert "version" not in notebook.metadata.language_info
    assert [cell.id for cell in notebook.cells] == [f"cell-{i:02}" for i in range(len(notebook.cells))]
    shown = "".join(str(o) for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs)
    assert not re.search(r"0x[0-9a-f]{6,}|/home/|/work/|/tmp/|/root/", re.sub(r"'image/png': '[^']*'", "", shown))
    assert not any("execution" in cell.metadata for cell in notebook.cells)


@every_page
def test_cells_are_short_and_claims_asserted(path: Path) -> None:
    code = [cell.source for cell in cells(path, "code")]
    lengths = [len(source.splitlines()) for source in code[1:]]
    assert statistics.median(lengths) <= 5
    assert max(len(source.splitlines()) for source in code) <= 25
    assert sum("assert" in source for source in code) >= len(code) // 3
    first = ast.parse(code[0]).body
    assert all(isinstance(node, ast.Import | ast.ImportFrom) for node in first), "the first cell holds imports only"
    assert not any(isinstance(n, ast.Import | ast.ImportFrom) for s in code[1:] for n in ast.walk(ast.parse(s)))


@every_page
def test_a_page_has_its_parts(path: Path) -> None:
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    assert [part for part in PARTS if part not in text] == []
    assert sum("answer" in cell.metadata.get("tags", []) for cell in cells(path, "code")) >= 3


@every_page
def test_links_lead_somewhere(path: Path) -> None:
    for cell in cells(path, "markdown"):
        for target in re.findall(r"\]\(([^)#\s]+)\)", cell.source):
            assert target.startswith("https://") or (FOLDER / target).exists(), target
        assert "![](" not in cell.source, "an image without alt text"


@every_page
def test_figures_carry_alt_text(path: Path) -> None:
    figures = [o for cell in cells(path, "code") for o in cell.outputs if "image/png" in o.get("data", {})]
    assert figures
    assert all(len(figure.metadata["image/png"]["alt"]) > 20 for figure in figures)
