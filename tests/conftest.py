"""What every test shares: a repeatable hypothesis profile, and the published files when they are there."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.browser import chromium

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("ci")

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder of published configurations, named by COSTMODEL_DATA or lying beside the checkout."""
    for folder in (os.environ.get("COSTMODEL_DATA"), REPOSITORY.parent / "shared" / "data"):
        if folder and (Path(folder) / "truth.csv").is_file():
            return Path(folder)
    return pytest.skip("no published configurations: set COSTMODEL_DATA to a folder with truth.csv, models/ and bad/")


@pytest.fixture(scope="module")  # no longer: while it runs, no other test of this process may start an event loop
def browser() -> Iterator[object]:
    """A headless Chromium; a test that asks for it is marked `needs_chromium`."""
    with chromium() as running:
        yield running
