import pytest

from costmodel import Deployment, accelerator, load
from costmodel.explore import Calculator
from costmodel.explore.calculator import PRESETS, WIDGET_VIEW

pytest.importorskip("ipywidgets", reason="the extra 'notebooks' is not installed")


@pytest.mark.parametrize("name", PRESETS)
def test_answers_are_the_deployments(name: str) -> None:
    found, d = Calculator(name, context=8192, batch=4).answer(), Deployment(load(name), accelerator("h100-sxm"))
    assert found["weights"] + found["cache"] == d.memory_bytes(4, 8192)
    assert found["fits"] == d.fits(4, 8192) == (name != "70b")
    assert (found["largest batch"], found["longest context"]) == (d.largest_batch(8192), d.longest_context(4))


def test_moving_a_control_recomputes() -> None:
    calculator = Calculator("8b", context=32_000)
    *controls, shown = calculator.widget().children
    by_name = {control.description: control for control in controls}
    assert "15 requests fit" in shown.value
    by_name["model"].value = "7b"
    assert "3 requests fit" in shown.value
    by_name["weights"].value = "int4"
    assert calculator.settings["weights"] == "int4"
    assert f"{calculator.answer()['largest batch']:,} requests fit" in shown.value


def test_a_page_without_a_kernel_shows_the_answer() -> None:
    bundle = Calculator("70b", context=32_000)._repr_mimebundle_()
    assert set(bundle) == {WIDGET_VIEW, "text/html", "text/plain"}
    assert "does not fit" in bundle["text/html"]
    assert bundle["text/plain"] == "70b on h100-sxm, 1 x 32,000 tokens, weights bf16, cache bf16"
