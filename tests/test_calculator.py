import pytest

from costmodel import CostModelError, Deployment, accelerator, load
from costmodel.explore import Calculator
from costmodel.explore.calculator import WIDGET_VIEW
from costmodel.explore.catalogue import ROUNDED
from costmodel.parallel import Parallel

pytest.importorskip("anywidget", reason="the extra 'notebooks' is not installed")


@pytest.mark.parametrize("name", ROUNDED)
def test_answers_are_the_deployments(name: str) -> None:
    found, d = Calculator(name, context=8192, batch=4).answer(), Deployment(load(name), accelerator("h100-sxm"))
    assert found["weights"] + found["cache"] == d.memory_bytes(4, 8192)
    assert found["fits"] == d.fits(4, 8192) == (name != "70b")
    assert (found["largest batch"], found["longest context"]) == (d.largest_batch(8192), d.longest_context(4))


def test_what_a_reader_moves_python_sees() -> None:
    calculator = Calculator("8b", context=32_000)
    control = calculator.widget()
    assert control.settings["batch"] == 1
    control.settings = {**control.settings, "model": "7b", "free": 10, "weights": "stored"}
    assert "3 requests fit" in calculator.html()
    control.settings = {**control.settings, "weights": "int4"}
    assert f"{calculator.answer()['largest batch']:,} requests fit" in calculator.html()
    control.settings = {**control.settings, "model": "70b", "weights": "stored", "tensor": 4, "free": 20}
    shared = Deployment(load("70b"), accelerator("h100-sxm"), reserve=0.2, parallel=Parallel(tensor=4))
    assert calculator.answer()["largest batch"] == shared.largest_batch(32_000) > 0
    assert "one of 4 that share it" in calculator.html()
    with pytest.raises(CostModelError, match="model"):
        control.settings = {}


def test_a_share_kept_free_may_be_a_fraction_and_formats_are_known() -> None:
    assert Calculator("8b", free=12.5).answer()["capacity"] == 70 * 10**9
    assert Calculator("8b", weights="float16").settings["weights"] == "fp16"
    with pytest.raises(CostModelError, match="int5"):
        Calculator("8b", cache="int5")


def test_the_control_offers_the_model_it_was_made_for() -> None:
    script = Calculator("llama-3-8b").widget()._esm
    assert all(f'"{name}": {{"title"' in script for name in (*ROUNDED, "llama-3-8b"))
    assert "llama-2-13b" not in script


def test_a_page_without_a_kernel_shows_the_answer() -> None:
    bundle = Calculator("70b", context=32_000)._repr_mimebundle_()
    assert set(bundle) == {WIDGET_VIEW, "text/html", "text/plain"}
    assert "does not fit" in bundle["text/html"]
    assert bundle["text/plain"] == "70b on h100-sxm, 1 x 32,000 tokens, weights bf16, cache bf16"
