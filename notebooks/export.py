"""Export the series as HTML that works offline: mathematics as MathML, figures inside.

python notebooks/export.py site
"""

import re
import sys
from collections.abc import Sequence
from html import escape, unescape
from itertools import pairwise
from pathlib import Path

import nbformat
from costmodel.explore import Catalogue, page
from costmodel.explore.catalogue import ROUNDED
from costmodel.explore.document import source
from costmodel.symbols import NOTATION
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

FOLDER = Path(__file__).parent
MARKER = "costmodel, notebooks/export.py"  # the generator that every page names
INLINE = re.compile(r"(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?!\d)")
LIVE = """for (const place of document.querySelectorAll("[data-calculator]")) {
  const start = JSON.parse(place.dataset.calculator);
  const root = document.createElement("div");
  place.replaceWith(root);
  mount(root, start);
}
"""


def mathml(latex: str, display: str = "inline") -> str:
    """LaTeX as MathML, which browsers draw without any script."""
    plain = latex.strip().removeprefix(r"\displaystyle").strip()
    return convert(plain, display=display).replace(r"\$", "$")  # as inside \text


def with_mathematics(html: str) -> str:
    """HTML whose $…$ have become MathML."""
    return INLINE.sub(lambda found: mathml(unescape(found[1])), html)


class Renderer(IPythonRenderer):
    """Markdown as nbconvert renders it, with mathematics that needs no script."""

    def block_math(self, body: str) -> str:
        """$$…$$."""
        return mathml(body, "block")

    def inline_math(self, body: str) -> str:
        """$…$."""
        return mathml(body)

    def latex_environment(self, name: str, body: str) -> str:
        r"""\begin{…}…\end{…}."""
        return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

    def block_html(self, html: str) -> str:
        """HTML in Markdown, whose mathematics the parser leaves alone."""
        return with_mathematics(super().block_html(html))

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """A link to another page leads to its export."""
        return super().link(text, re.sub(r"\.ipynb(#|$)", r".html\1", url), title)


def markdown(text: str) -> str:
    """Markdown as HTML."""
    renderer = Renderer(
        escape=False,
        exclude_anchor_links=True,
        embed_images=True,
        path=str(FOLDER),
    )
    return MarkdownWithMath(renderer).render(text)


def prepared(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with mathematics in its outputs drawn, and tables kept plain."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/latex" in data and "text/html" not in data:
                data["text/html"] = mathml(data["text/latex"].strip().strip("$"))
            elif "text/html" in data:
                data["text/html"] = with_mathematics(data["text/html"])
    return notebook


class Page:
    """One notebook: its title, what a reader is told first, and where it goes."""

    def __init__(self, path: Path) -> None:
        self.notebook = nbformat.read(path, as_version=4)
        opening = self.notebook.cells[0].source
        self.title = re.search(r"^# (.+)$", opening, re.M)[1].strip()
        self.href = path.with_suffix(".html").name
        found = re.search(r"\*\*What you'll do:\*\*\s*(.+?)(?:\n\n|$)", opening, re.S)
        about = " ".join(found[1].split()) if found else ""
        self.about = about[:1].upper() + about[1:]
        minutes = re.search(r"[Aa]bout (\d+)\s+minutes", opening)
        self.minutes = f"{minutes[1]} minutes" if minutes else ""
        self.live = any(
            "data-calculator" in str(cell.get("outputs"))
            for cell in self.notebook.cells
        )


def live_script() -> str:
    """The calculator for pages that have one, in place of its still picture."""
    script = Catalogue.of(ROUNDED).script + source("calculator.js") + LIVE
    return f'<script type="module">\n{script}</script>'


def exporter() -> HTMLExporter:
    """Nbconvert with the template that stands beside this file."""
    made = HTMLExporter(
        template_name="template",
        extra_template_basedirs=[str(FOLDER)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    made.register_filter("markdown2html", markdown)
    return made


def glossary() -> str:
    """The notation table, from the module that makes the symbols."""
    rows = "".join(
        f"<tr><td>{mathml(line.latex)}</td><td>{escape(name)}</td>"
        f"<td>{escape(line.meaning)}</td><td>{escape(line.unit)}</td></tr>"
        for name, line in NOTATION.items()
    )
    head = "".join(
        f'<th scope="col">{word}</th>' for word in ("letter", "name", "meaning", "unit")
    )
    return (
        "<h1>Glossary</h1><p>The letters of the subject, as every page, formula and "
        f"function uses them.</p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def index(pages: Sequence[Page]) -> str:
    """The first page: every other one with its question and the time it takes."""
    items = "".join(
        f'<li><a href="{p.href}">{escape(p.title)}</a><p>{markdown_line(p.about)}</p>'
        f"<small>{p.minutes}</small></li>"
        for p in pages
    )
    return (
        "<h1>What transformer inference costs, as algebra</h1>"
        "<p>Pages that derive each formula, run it, and check it against a decoder "
        "that does the work. They need no network; the "
        '<a href="calculator.html">calculator</a> computes in your browser.</p>'
        f'<h2>The pages</h2><ol class="pages">{items}</ol>'
    )


def markdown_line(text: str) -> str:
    """One paragraph of Markdown without the paragraph."""
    return markdown(text).strip().removeprefix("<p>").removesuffix("</p>")


def make_room(out: Path) -> None:
    """A folder without the pages of an earlier site; what else is there stays."""
    if out.exists() and not out.is_dir():
        raise SystemExit(f"{out} is a file; give a folder")
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()) and not written_here(out / "index.html"):
        raise SystemExit(f"{out} holds something else than a site; give another folder")
    for path in out.glob("*.html"):
        if written_here(path):
            path.unlink()


def written_here(path: Path) -> bool:
    """Whether it is a page of the series as this file writes them."""
    return path.is_file() and f'content="{MARKER}"' in path.read_text(
        "utf-8", errors="replace"
    )


def export(out: Path, notebooks: Sequence[Path]) -> list[Path]:
    """Write the whole site into a folder, in place of one written there before."""
    make_room(out)
    pages, converter, style = (
        [Page(path) for path in notebooks],
        exporter(),
        (FOLDER / "template" / "style.css").read_text(),
    )
    series = [{"href": p.href, "title": p.title} for p in pages]
    before = {b["href"]: a for a, b in pairwise(series)}
    after = {a["href"]: b for a, b in pairwise(series)}
    script = live_script() if any(p.live for p in pages) else ""
    calculator_style = source("calculator.css")

    def write(
        name: str, title: str, notebook: object, body: str = "", live: bool = False
    ) -> None:
        about = {
            "title": title,
            "href": name,
            "series": series,
            "previous": before.get(name),
            "next": after.get(name),
            "marker": MARKER,
            "style": style + calculator_style if live else style,
            "script": script if live else "",
            "body": body,
        }
        html, _ = converter.from_notebook_node(notebook, resources={"page": about})
        (out / name).write_text(html, encoding="utf-8")

    empty = nbformat.v4.new_notebook()
    for p in pages:
        write(p.href, p.title, prepared(p.notebook), live=p.live)
    write("index.html", "Index", empty, index(pages))
    write("glossary.html", "Glossary", empty, glossary())
    (out / "calculator.html").write_text(page(), encoding="utf-8")
    names = [*(p.href for p in pages), "index.html", "glossary.html", "calculator.html"]
    return [out / name for name in names]


def main(arguments: Sequence[str]) -> None:
    """Export to the folder named, "site" if none is."""
    out = Path(arguments[0] if arguments else "site")
    written = export(out, sorted(FOLDER.glob("[0-9][0-9]_*.ipynb")))
    size = sum(path.stat().st_size for path in written)
    print(f"{len(written)} pages, {size / 1e6:.1f} MB: open {out / 'index.html'}")


if __name__ == "__main__":
    main(sys.argv[1:])
