"""Run every notebook in a fresh kernel; store nothing that changes from run to run."""

import sys
from pathlib import Path

import nbformat
from costmodel.explore.calculator import WIDGET_VIEW
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
MEASURED = "nbval-ignore-output"


def run(path: Path) -> None:
    """Execute one notebook in its own folder and write it back, normalised."""
    notebook = nbformat.read(path, as_version=4)
    measured = {cell.source: cell.outputs for cell in measurements(notebook)}
    NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        coalesce_streams=True,  # a print may arrive in one piece or in two
        resources={"metadata": {"path": str(FOLDER)}},
    ).execute()
    for cell in measurements(notebook):
        cell.outputs = measured.get(cell.source) or cell.outputs
    normalise(notebook)
    nbformat.write(notebook, path)


def measurements(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Cells that time this machine: what they once showed stays until they change."""
    tagged = (c for c in notebook.cells if MEASURED in c.metadata.get("tags", []))
    return [cell for cell in tagged if cell.cell_type == "code"]


def normalise(notebook: nbformat.NotebookNode) -> None:
    """No times, versions or widget state; cell ids that stay."""
    notebook.metadata = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"file_extension": ".py", "name": "python"},
    }
    for place, cell in enumerate(notebook.cells):
        cell.id = f"cell-{place:02}"
        cell.metadata.pop("execution", None)
        cell.source = cell.source.rstrip()
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)  # dead without its kernel


def main(names: list[str]) -> None:
    """All notebooks of the folder, or those named."""
    for path in [Path(name) for name in names] or sorted(
        FOLDER.glob("[0-9][0-9]_*.ipynb")
    ):
        run(path)
        print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
