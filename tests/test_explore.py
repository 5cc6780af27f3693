"""The interactive page computes what the package computes, in a real browser, and can be used by anyone."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from urllib.parse import urlencode

import pytest
from sympy import Max, Min, Piecewise, Rational, ceiling, floor, gamma

from costmodel import CostModelError, Deployment, accelerator, load
from costmodel.cli import main
from costmodel.common.formats import FORMATS as KNOWN
from costmodel.common.formats import number_format
from costmodel.explore import Catalogue, page
from costmodel.explore.catalogue import FORMATS, LINKED, STAND_INS, STARTING, TENSOR, composed, leaves
from costmodel.explore.document import source
from costmodel.explore.javascript import function, javascript, mathml
from costmodel.hardware import accelerators
from costmodel.parallel import Parallel
from costmodel.symbols import B, D, S, T, b_kv, b_w
from costmodel.zoo import preset_config, presets
from tests.browser import CONTRAST, needs_chromium

pytestmark = pytest.mark.xdist_group("explore")  # one worker writes the page, once


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as the command writes it, opening with a file's model."""
    folder = tmp_path_factory.mktemp("explore")
    config, out = folder / "config.json", folder / "page.html"
    config.write_text(json.dumps(preset_config("qwen2.5-7b")))
    assert main(["explore", "--model", str(config), "--on", "H200", "--batch", "3", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def opened(written: Path, browser: object) -> Iterator[object]:
    """The page in Chromium, every request and error recorded."""
    shown = browser.new_page(viewport={"width": 1280, "height": 900})
    shown.troubles, shown.requests = [], []
    shown.on("pageerror", lambda error: shown.troubles.append(str(error)))
    shown.on("console", lambda message: shown.troubles.append(message.text))
    shown.on("request", lambda request: shown.requests.append(request.url))
    shown.goto(written.as_uri())
    yield shown
    shown.close()


@pytest.fixture(scope="module")
def computing(browser: object) -> Iterator[object]:
    """An empty page that knows every model's formulas."""
    empty = browser.new_page()
    script = Catalogue.of().script + source("calculator.js")
    empty.evaluate("script => { window.computed = new Function(script + 'return computed')(); }", script)
    yield empty
    empty.close()


def test_one_small_file_that_needs_nothing(written: Path) -> None:
    html = written.read_text(encoding="utf-8")
    assert len(html.encode()) < 300_000
    outside = [part for part in ("http://", "https://", "//cdn", "@import", "url(", " src=") if part in html]
    assert outside == []
    assert all(f'"{name}": {{' in html for name in presets())
    assert all(f'"{name}":{{' in html for name in accelerators())


def test_the_page_opens_with_what_was_asked(written: Path) -> None:
    start = next(line for line in written.read_text().splitlines() if line.startswith("const START"))
    assert json.loads(start.removeprefix("const START = ").rstrip(";")) == {
        "model": str(written.parent / "config.json"), "on": "h200-sxm", "batch": 3, "context": 8192,
        "weights": "stored", "cache": "bf16",
    }  # fmt: skip


def test_refusals_name_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["explore", "--model", "no-such", "--out", str(tmp_path / "x")]) == 2
    assert main(["explore", "--out", str(tmp_path / "no" / "x")]) == 2
    assert "cannot write" in capsys.readouterr().err
    with pytest.raises(CostModelError, match="gamma"):
        javascript(gamma(B))


def test_a_script_element_cannot_be_closed_early() -> None:
    assert "</script" not in Catalogue({"</script>": load("8b")}, accelerators()).script


@needs_chromium
def test_a_thousand_random_points_equal_pythons(computing: object) -> None:
    rng = random.Random(7)
    names, devices = sorted(presets()), sorted(accelerators())
    points, expected = [], []
    while len(points) < 1000:
        name, on, weights, cache = (rng.choice(of) for of in (names, devices, FORMATS, FORMATS))
        batch, context = round(2 ** rng.uniform(0, 12)), round(2 ** rng.uniform(1, 20))  # the page's own limits
        device, price = accelerator(on), rng.uniform(0.1, 20) / 3600
        tensor = 1 if device.interconnect is None else rng.choice(TENSOR)
        w, kv = number_format(weights).bytes, number_format(cache).bytes
        d = Deployment(load(name), device, weights=w, cache=kv, parallel=Parallel(tensor=tensor))
        try:
            step, prefill = d.decode(batch, context), d.prefill(context)
        except CostModelError:
            assert tensor > 1  # not offered by the page either
            continue
        expected.append({
            "weight_bytes": d.params * w, "cache_bytes": d.cache_bytes(context),
            "flops": step.timing.flops, "bytes": step.timing.bytes, "seconds_per_token": step.seconds_per_token,
            "tokens_per_s": step.tokens_per_s, "intensity": step.timing.intensity, "ridge": step.timing.ridge,
            "compute_seconds": step.timing.compute_seconds, "memory_seconds": step.timing.memory_seconds,
            "communication_seconds": step.timing.communication_seconds,
            "ttft_s": prefill.seconds, "prefill_flops": prefill.flops, "prefill_bytes": prefill.bytes,
            "prefill_intensity": prefill.intensity,
            "dollars_per_million": 1e6 * tensor * price / step.tokens_per_s,
            "largest_batch": d.largest_batch(context),
        })  # fmt: skip
        points.append([name, tensor, {
            "B": batch, "S": context, "b_w": float(w), "b_kv": float(kv), "memory_bandwidth": device.bandwidth,
            "peak": device.peak(), "interconnect": device.interconnect or 1, "capacity": device.capacity,
            "price": price,
        }])  # fmt: skip
    found = computing.evaluate("points => points.map(point => computed(...point))", points)
    for point, one, other in zip(points, found, expected, strict=True):
        for key, value in other.items():
            if value is not None:
                near = {"rel": 0, "abs": 0} if key == "largest_batch" else {"rel": 1e-12, "abs": 0}
                assert one[key] == pytest.approx(float(value), **near), (point, key)


@needs_chromium
def test_floor_and_ceiling_are_exact_at_multiples(computing: object) -> None:
    printed = function({"down": floor(S / 49), "up": ceiling(S / 49), "more": floor(3 * S / 7 + Rational(1, 2)),
                        "by": ceiling(S / B)}, (B, S))  # fmt: skip
    for divisor in (1, 3, 7, 49, 1000):
        near = sorted({m + d for m in range(49, 18_700, 49) for d in (-1, 0, 1)})
        script = f"([near, B]) => {{ const f = {printed}; return near.map(S => f({{ B, S }})); }}"
        found = computing.evaluate(script, [near, divisor])
        for s, one in zip(near, found, strict=True):
            exact = {"down": s // 49, "up": -(-s // 49), "more": (6 * s + 7) // 14, "by": ceil(Fraction(s, divisor))}
            assert one == exact, s
    naive = computing.evaluate("near => near.map(s => Math.floor((1/49)*s))", list(range(49, 18_700, 49)))
    assert naive != [s // 49 for s in range(49, 18_700, 49)], "the trap this guards against is gone"


@needs_chromium
@pytest.mark.parametrize("name", ["8b", "7b", "70b", "gemma-2-9b"])
def test_the_largest_batch_is_exact_where_memory_is_full_to_the_byte(computing: object, name: str) -> None:
    d = Deployment(load(name), accelerator("h100-sxm"), weights="bf16")
    for many in (1, 3, 49, 1000):
        for spare in (-1, 0, 1):
            full = d.weight_bytes + many * d.cache_bytes(8191) + spare
            at = {"B": 1, "S": 8191, "b_w": 2, "b_kv": 2, "capacity": full}
            found = computing.evaluate("([name, at]) => computed(name, 1, at)", [name, at])
            assert found["largest_batch"] == (many if spare >= 0 else many - 1)


@needs_chromium
def test_min_max_and_piecewise_print_as_they_compute(computing: object) -> None:
    formula = 2 * Piecewise((B, B < 3), (S, True)) + Max(B, S, T) / Min(S, 7) - S ** Rational(1, 2) / D**2
    printed = function({"value": formula}, (B, S, T, D))
    assert "\n" not in printed
    for at in ((1, 16, 5, 3), (4, 9, 100, 2), (3, 4, 1, 7)):
        exact = float(formula.subs(dict(zip((B, S, T, D), at, strict=True))))
        named = dict(zip("BSTD", at, strict=True))
        assert computing.evaluate(f"at => ({printed})(at).value", named) == pytest.approx(exact, rel=1e-15)


LABELS_ON_LINES = """() => {
  const svg = document.querySelector('.cm-roof svg'), both = 'path[fill=none], path[stroke-dasharray]';
  const [roof, ridge] = svg.querySelectorAll(both);
  const on = (path, box) => Array.from({length: 400}, (_, k) => path.getPointAtLength(k * path.getTotalLength() / 399))
    .some(p => p.x > box.x && p.x < box.x + box.width && p.y > box.y && p.y < box.y + box.height);
  const labels = [...svg.querySelectorAll('.halo')], boxes = labels.map(text => text.getBBox()), [a, b] = boxes;
  const each = boxes.filter(box => on(roof, box) || on(ridge, box) || box.x + box.width > 460);
  return each.length + (a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height);
}"""


@needs_chromium
@pytest.mark.parametrize("wide", [1280, 360])
def test_labels_keep_off_the_roofline_and_long_sums_break(opened: object, written: Path, wide: int) -> None:
    opened.set_viewport_size({"width": wide, "height": 900})
    for model, on, tensor in (("8b", "h100-sxm", 1), ("deepseek-v3", "h200-sxm", 8), ("gemma-2-9b", "t4", 1)):
        for batch, context in ((1, 2), (1, 8192), (64, 64), (64, 8192), (256, 300), (4096, 64), (65536, 1_000_000)):
            given = {"model": model, "on": on, "tensor": tensor, "batch": batch, "context": context}
            opened.goto(f"{written.as_uri()}#{urlencode(given)}")
            assert opened.evaluate(LABELS_ON_LINES) == 0, given
            for place in (".cm-maths", ".cm-maths td:last-child"):
                assert opened.evaluate(
                    f"[...document.querySelectorAll('{place}')].every(e => e.scrollWidth <= e.clientWidth)"
                )
    opened.set_viewport_size({"width": 1280, "height": 900})


def test_a_later_formula_reuses_an_earlier_one() -> None:
    script = Catalogue.of(["8b"], ["t4"]).script
    assert "seconds_per_token=communication_seconds + Math.max(memory_seconds, compute_seconds)" in script
    assert "tokens_per_s=B/(seconds_per_token)" in script


def test_put_together_they_are_the_deployments_formulas() -> None:
    model, own = load("llama-3-8b"), leaves(load("llama-3-8b"), 4)
    whole = Deployment(model, LINKED, weights=b_w, cache=b_kv, parallel=Parallel(tensor=4)).formulas
    places = {letter: own[name] for letter, name in STAND_INS.items()}
    for name, formula in whole.items():
        assert composed()[name].subs(places, simultaneous=True).equals(formula), name


def test_a_model_is_offered_only_where_it_splits_evenly() -> None:
    script = Catalogue.of(["falcon-7b", "qwen2.5-7b"], ["h100-sxm"]).script
    assert "Over 2 devices it does not split: query heads (71)" in script
    assert "Over 8 devices it does not split: query heads (28)" in script
    assert script.count(",sent=") == 1 + 3  # falcon on one device, Qwen on 1, 2 and 4


def test_formulas_are_mathml_without_entities() -> None:
    weight = "<msub><mi>b</mi><mi>w</mi></msub>"
    assert mathml(3 * B * b_w) == f"<mrow><mn>3</mn><mo>·</mo><mi>B</mi><mo>·</mo>{weight}</mrow>"
    assert "&" not in Catalogue.of(["gpt-oss-20b"], ["t4"]).script


@needs_chromium
def test_nothing_fails_and_nothing_is_fetched(opened: object, written: Path) -> None:
    assert opened.troubles == []
    assert set(opened.requests) == {written.as_uri()}


@needs_chromium
def test_a_link_reproduces_the_view(opened: object, written: Path, browser: object) -> None:
    wanted = {
        "model": "70b", "on": "h200-sxm", "batch": 8, "context": 4096, "weights": "int4", "cache": "fp8", "tensor": 2,
    }  # fmt: skip
    opened.goto("about:blank")
    opened.goto(f"{written.as_uri()}#{urlencode(wanted)}")
    d = Deployment(load("70b"), accelerator("h200-sxm"), weights="int4", cache="fp8", parallel=Parallel(tensor=2))
    assert f"{d.largest_batch(4096):,} sequences fit" in opened.inner_text(".cm-verdict")
    opened.locator("[data-name=batch]").focus()
    opened.keyboard.press("ArrowRight")
    moved = opened.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
    assert moved["batch"] == "10"
    assert {k: v for k, v in moved.items() if k in wanted and k != "batch"} == {
        k: str(v) for k, v in wanted.items() if k != "batch"
    }
    before = opened.inner_text(".cm-results")
    again = browser.new_page(viewport=opened.viewport_size)
    again.goto(opened.url)
    assert again.inner_text(".cm-results") == before
    again.close()


@needs_chromium
@pytest.mark.parametrize("name", ["batch", "context", "weights", "cache", "tensor"])
def test_every_key_press_moves_a_slider(opened: object, written: Path, name: str) -> None:
    opened.goto("about:blank")
    opened.goto(written.as_uri())
    slider = opened.locator(f"[data-name={name}]")
    slider.focus()
    opened.keyboard.press("Home")
    said = [slider.get_attribute("aria-valuetext")]
    for _ in range(int(slider.get_attribute("max"))):
        opened.keyboard.press("ArrowRight")
        said.append(slider.get_attribute("aria-valuetext"))
    assert len(set(said)) == len(said)
    assert slider.input_value() == slider.get_attribute("max")


@needs_chromium
def test_nonsense_in_a_link_is_bounded(opened: object, written: Path) -> None:
    opened.goto("about:blank")
    opened.goto(f"{written.as_uri()}#model=__proto__&batch=-5&context=1e99&weights=x&free=nan&price=&cache=toString")
    assert "NaN" not in opened.inner_text("body")
    assert opened.input_value("[data-number=batch]") == "1"
    assert opened.troubles == []


@needs_chromium
def test_every_control_is_labelled_and_reached_by_the_keyboard(opened: object, written: Path) -> None:
    opened.goto("about:blank")
    opened.goto(written.as_uri())
    bare = opened.evaluate(
        "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length && !e.ariaLabel).length"
    )
    assert bare == 0
    reached = set()
    for _ in range(30):
        opened.keyboard.press("Tab")
        reached.add(opened.evaluate("document.activeElement.id"))
    assert set(opened.evaluate("[...document.querySelectorAll('input, select')].map(e => e.id)")) <= reached
    assert opened.get_attribute(".cm-verdict", "aria-live") == "polite"
    assert "memory" in opened.get_attribute(".cm-roof svg", "aria-label")
    assert opened.locator("tr:has(math)").count() == 9


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_in_one_column_with_contrast(written: Path, browser: object, scheme: str) -> None:
    shown = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    shown.goto(f"{written.as_uri()}#model=gpt-oss-20b&batch=32&context=131072")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
    lefts = shown.evaluate("[...document.querySelectorAll('.cm-panel')].map(e => e.getBoundingClientRect().left)")
    assert len(lefts) == 4
    assert len(set(lefts)) == 1
    shown.locator("[data-number=price]").scroll_into_view_if_needed()
    assert shown.evaluate("document.querySelector('.cm-verdict').getBoundingClientRect().top") > 0, "out of sight"
    assert shown.evaluate(CONTRAST) == []
    shown.close()


def test_settings_of_the_page_are_checked_by_name() -> None:
    few = Catalogue.of(["7b"], ["t4"])
    assert 'const START = {"model": "7b"' in page(few, model="7b", on="t4")
    assert '"on": "t4", "weights": "fp16", "cache": "int8"}' in page(few, on="T4", weights="float16", cache="INT8")
    for setting, words in (
        ({"bogus": 3}, "unknown setting 'bogus'"), ({"model": "nope"}, "unknown model 'nope'"),
        ({"model": "8b"}, "unknown model '8b'"), ({"on": "zzz"}, "accelerator"), ({"on": "h100-sxm"}, "accelerator"),
        ({"weights": "int5"}, "number format"), ({"cache": "stored"}, "number format"), ({"tensor": 3}, "tensor"),
        ({"batch": "x"}, "batch"), ({"context": float("nan")}, "context"), ({"free": -1}, "free"),
    ):  # fmt: skip
        with pytest.raises(CostModelError, match=words):
            page(few, **setting)


@needs_chromium
def test_every_format_that_the_command_takes_is_on_the_page(browser: object, tmp_path: Path) -> None:
    shown, out = browser.new_page(), tmp_path / "page.html"
    asked = ["explore", "--on", "h200", "--weights", "int8", "--cache", "int8", "--out", str(out)]
    assert main(asked) == 0
    opened = out.as_uri()
    for name in [None, *KNOWN]:
        shown.goto("about:blank")
        shown.goto(opened if name is None else f"{opened}#weights={name}&cache={name}")
        d = Deployment(load("8b"), accelerator("h200-sxm"), weights=name or "int8", cache=name or "int8")
        assert f"{d.largest_batch(8192):,} sequences fit" in shown.inner_text(".cm-verdict"), name
        assert "NaN" not in shown.inner_text("body"), name
    shown.close()


@needs_chromium
def test_what_a_control_starts_with_is_checked_like_a_link(computing: object) -> None:
    found = computing.evaluate(
        'script => new Function(script + \'return sensible({batch: 3}, {cache: "int5", context: "x", free: 12.5})\')()',
        Catalogue.of(["7b"], ["t4"]).script + source("calculator.js"),
    )
    assert found == {**STARTING, "model": "7b", "on": "t4", "batch": 3, "free": 12.5}


def test_mathml_of_a_number_is_a_number() -> None:
    assert mathml(3) == "<mn>3</mn>"


def test_a_model_without_a_stored_format_says_so() -> None:
    model = replace(load("llama-3-8b"), dtype=None, name="unknown storage")
    catalogue = Catalogue({"unknown": model}, {})
    assert '"stored": null' in catalogue.script or '"stored":null' in catalogue.script
