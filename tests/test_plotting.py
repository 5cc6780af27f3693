"""Figures: the same bytes each time, committed as drawn, and a title that states the finding."""

import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import pytest

from costmodel.plotting import FIGURES
from costmodel.plotting import __main__ as writer
from costmodel.plotting.evidence import this_machine
from costmodel.plotting.style import Picture, rendered

IMAGES = Path(__file__).parent.parent / "images"
PINNED = "3.11.2"  # the matplotlib that the committed files were drawn with


def test_images_are_those_of_the_package() -> None:
    assert {p.name for p in IMAGES.iterdir()} == {f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png")}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_says_what_it_shows_and_is_committed(name: str) -> None:
    figure = FIGURES[name]()
    assert isinstance(figure, Picture)
    assert len(figure.title) > 20
    ET.fromstring(rendered(figure, "svg"))
    if mpl.__version__ == PINNED:
        assert rendered(figure, "svg") == (IMAGES / f"{name}.svg").read_bytes(), "run `make images`"
        assert rendered(figure, "png") == (IMAGES / f"{name}.png").read_bytes(), "run `make images`"


def test_a_picture_shows_itself_with_alt_text() -> None:
    data, metadata = FIGURES["roofline"]()._repr_mimebundle_()
    assert data["text/plain"] == metadata["image/png"]["alt"]
    assert "0.335% of the peak" in data["text/plain"]


def test_writing_leaves_what_else_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FIGURES", {"roofline": FIGURES["roofline"]})
    folder = tmp_path / "new" / "images"
    writer.main([str(folder)])
    theirs = {"holiday.jpg", "mine.png", "sys.log"}
    for name in theirs:
        (folder / name).write_text("mine")
    writer.main([str(folder)])
    assert {path.name for path in folder.iterdir()} == {"roofline.svg", "roofline.png"} | theirs
    assert (folder / "roofline.svg").read_bytes() == rendered(FIGURES["roofline"](), "svg")


def test_without_a_folder_it_says_how_it_is_called(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        writer.main([])
    assert "usage: python -m costmodel.plotting [-h] FOLDER" in capsys.readouterr().err


def test_this_machine_is_drawn_beside_its_bound() -> None:
    rows = [{"what": what, "tokens": 256, "measured_s": 0.04, "ideal_s": 0.01} for what in ("prefill", "decode")]
    assert this_machine(rows).title == "Share of this machine's bound: prefill 25%, decode 25%"
