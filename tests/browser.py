"""A real headless Chromium for the tests that need one, driven by Playwright; where there is none they are skipped."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None,
    reason="needs playwright and a Chromium (apt-get install chromium)",
)


@contextmanager
def chromium() -> Iterator[object]:
    """A browser, closed afterwards."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


# Texts whose contrast with what lies behind them is below 4.5 (WCAG 2.2, 1.4.3, level AA).
CONTRAST = """() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const linear = v => v <= 10 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => [r, g, b].map(linear)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
  const poor = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !e.checkVisibility()) continue;
    if (e.closest('script, style, select, noscript')) continue;
    const style = getComputedStyle(e), svg = e.closest('svg');
    const [a, b] = [luminance(rgb(svg ? style.fill : style.color)), luminance(behind(e))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) poor.push([texts.currentNode.data.slice(0, 40), (a + .05) / (b + .05)]);
  }
  return poor;
}"""
