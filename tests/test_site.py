"""The exported site: links lead somewhere, figures are described, headings in order, texts legible, nothing fetched."""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from tests.browser import CONTRAST, needs_chromium

bs4 = pytest.importorskip("bs4", reason="the extra 'notebooks' is not installed")
pytest.importorskip("latex2mathml", reason="the extra 'notebooks' is not installed")
pytestmark = [
    pytest.mark.xdist_group("site"),  # one worker builds it, once
    pytest.mark.skipif(find_spec("nbconvert") is None, reason="the extra 'notebooks' is not installed"),
]

REPOSITORY = Path(__file__).parent.parent
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("[0-9][0-9]_*.ipynb"))
PAGES = [*(path.stem for path in NOTEBOOKS), "index", "glossary", "calculator"]
every_page = pytest.mark.parametrize("name", PAGES)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it."""
    out = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "notebooks/export.py", str(out)]
    built = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return out


@pytest.fixture(scope="module")
def parsed(site: Path) -> dict[str, object]:
    return {path.stem: bs4.BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in site.iterdir()}


def test_every_notebook_and_nothing_else_is_there(parsed: dict[str, object]) -> None:
    assert sorted(parsed) == sorted(PAGES)


@every_page
def test_links_lead_somewhere(parsed: dict[str, object], name: str) -> None:
    page = parsed[name]
    for link in page.find_all("a"):
        target, _, place = link["href"].partition("#")
        if target.startswith("https://"):
            continue
        assert (target.removesuffix(".html") in parsed and target.endswith(".html")) or target == "", link["href"]
        where = parsed[target.removesuffix(".html")] if target else page
        assert not place or where.find(id=place), link["href"]
        assert link.get_text(strip=True), link


@every_page
def test_figures_are_inside_and_described(parsed: dict[str, object], name: str) -> None:
    for image in parsed[name].find_all("img"):
        assert image["src"].startswith("data:image/"), image["src"][:80]
        assert len(image.get("alt", "")) > 20, image["src"][:80]


def test_no_figure_is_lost(parsed: dict[str, object]) -> None:
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        kinds = [kind for cell in cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
        assert len(parsed[path.stem].find_all("img")) >= kinds.count("image/png")


@every_page
def test_headings_are_in_order(parsed: dict[str, object], name: str) -> None:
    levels = [int(heading.name[1]) for heading in parsed[name].find_all(re.compile(r"^h[1-6]$"))]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels


@every_page
def test_a_page_stands_alone(parsed: dict[str, object], name: str) -> None:
    page = parsed[name]
    assert page.html["lang"] == "en"
    assert page.find("meta", attrs={"name": "viewport"})
    assert page.title.get_text(strip=True)
    ids = [tag["id"] for tag in page.find_all(id=True)]
    assert len(ids) == len(set(ids))
    assert [tag for tag in page.find_all(src=True) if not tag["src"].startswith("data:")] == []
    assert [tag for tag in page.find_all("link") if not tag["href"].startswith("data:")] == []
    assert not re.search(r"@import|url\((?!data:)", "".join(tag.get_text() for tag in page.find_all("style")))


@every_page
def test_mathematics_became_mathml(parsed: dict[str, object], name: str) -> None:
    page = parsed[name]
    for code in page.find_all(["pre", "code", "script", "style"]):
        code.decompose()
    for text in page.stripped_strings:
        assert not re.search(r"\$[^$\s\d][^$\n]*\$", text), text
        assert r"\$" not in text
        assert not re.search(r"\\(frac|mathrm|text|cdot|sum|displaystyle|left)\b", text), text
    if name not in ("index", "calculator"):
        assert page.find("math")


def test_pages_lead_to_each_other_in_order(parsed: dict[str, object]) -> None:
    names = [path.stem for path in NOTEBOOKS]
    for before, after in pairwise(names):
        assert parsed[before].find("a", rel="next")["href"] == f"{after}.html"
        assert parsed[after].find("a", rel="prev")["href"] == f"{before}.html"
    listed = [link["href"] for link in parsed["index"].select(".pages a")]
    assert listed == [f"{name}.html" for name in names]


def test_answers_are_folded(parsed: dict[str, object]) -> None:
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        answers = sum("answer" in cell.metadata.get("tags", []) for cell in cells)
        assert len(parsed[path.stem].select("details.answer")) == answers >= 3


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("work")
    command = [sys.executable, "notebooks/export.py", str(tmp_path)]
    refused = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "something else" in refused.stderr
    (tmp_path / "index.html").write_text("<!DOCTYPE html>\n<h1>My own</h1>")
    refused = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert "something else" in refused.stderr
    assert (tmp_path / "precious").read_text() == "work"
    assert "My own" in (tmp_path / "index.html").read_text()
    command[-1] = str(tmp_path / "precious")
    refused = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert refused.stderr == f"{command[-1]} is a file; give a folder\n"


def test_a_second_site_replaces_the_first_and_nothing_else(site: Path, tmp_path: Path) -> None:
    script = importlib.util.spec_from_file_location("export", REPOSITORY / "notebooks" / "export.py")
    export = importlib.util.module_from_spec(script)
    script.loader.exec_module(export)
    shutil.copytree(site, out := tmp_path / "site")
    (out / "photo.jpg").write_text("mine")
    (out / "mine.html").write_text("<p>mine</p>")
    (out / "17_dropped.html").write_text((out / "index.html").read_text())
    written = export.export(out, NOTEBOOKS[:1])
    assert {path.name for path in written} == {f"{name}.html" for name in (NOTEBOOKS[0].stem, *PAGES[-3:])}
    assert {path.name for path in out.iterdir()} == {path.name for path in written} | {"photo.jpg", "mine.html"}


@pytest.fixture(scope="module")
def offline(browser: object) -> Iterator[object]:
    """A context that records every request for anything but the pages themselves, and every error."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, offline=True)
    context.troubles = []
    context.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else context.troubles.append(r.url))
    context.on("weberror", lambda error: context.troubles.append(str(error.error)))
    yield context
    context.close()


@needs_chromium
@every_page
def test_a_phone_offline_shows_it_legibly(site: Path, offline: object, name: str) -> None:
    page = offline.new_page()
    page.goto((site / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRAST) == [], scheme
    page.close()
    assert offline.troubles == []


@needs_chromium
def test_the_calculator_in_a_page_is_live(site: Path, offline: object) -> None:
    page = offline.new_page()
    page.goto((site / "05_will_it_fit.html").as_uri())
    assert "15 sequences fit" in page.inner_text(".cm-verdict")
    page.locator(".cm [data-name=model]").select_option("7b")
    assert "3 sequences fit" in page.inner_text(".cm-verdict")
    page.close()


@needs_chromium
def test_illegible_text_would_be_noticed(offline: object) -> None:
    page = offline.new_page()
    page.set_content('<p style="color: #999; background: #fff">grey</p><p style="color: #555">darker</p>')
    assert [text for text, _ in page.evaluate(CONTRAST)] == ["grey"]
    page.close()
