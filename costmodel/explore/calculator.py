"""Will it fit? A control with sliders in JupyterLab, a plain answer wherever there is no kernel to ask."""

from html import escape
from types import ModuleType

from costmodel.common.extras import needed
from costmodel.common.formats import FORMATS
from costmodel.hardware import accelerator
from costmodel.sizing import Deployment
from costmodel.tables import rate, with_prefix
from costmodel.zoo import load

PRESETS = ("8b", "7b", "70b")
COLORS = {"weights": "#0072B2", "cache": "#E69F00"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class Calculator:
    """Memory of one deployment as a bar against the card's capacity, and how many requests fit.

    Parameters
    ----------
    model : a preset
    context, batch : tokens per request, requests at once
    weights, cache : number formats
    hardware : an accelerator

    Examples
    --------
    >>> Calculator("8b", context=32_000).answer()["largest batch"]
    15
    """

    def __init__(
        self, model: str = "8b", *, context: int = 32_000, batch: int = 1, weights: str = "bf16", cache: str = "bf16",
        hardware: str = "h100-sxm",
    ) -> None:  # fmt: skip
        self.settings = {"model": model, "context": context, "batch": batch, "weights": weights, "cache": cache}
        self.hardware = hardware

    @property
    def deployment(self) -> Deployment:
        """What the settings describe."""
        chosen = self.settings
        return Deployment(
            load(chosen["model"]), accelerator(self.hardware), weights=chosen["weights"], cache=chosen["cache"]
        )

    def answer(self) -> dict[str, object]:
        """Memory [byte], whether it fits, the largest batch and the longest context, speed [token/s]."""
        d, batch, context = self.deployment, self.settings["batch"], self.settings["context"]
        step = d.decode(batch, context)
        return {
            "weights": d.weight_bytes,
            "cache": batch * d.cache_bytes(context),
            "capacity": d.accelerator.capacity,
            "fits": d.fits(batch, context),
            "largest batch": d.largest_batch(context),
            "longest context": d.longest_context(batch),
            "tokens per second": step.tokens_per_s,
        }

    def html(self) -> str:
        """The answer as a bar and a line of text."""
        found = self.answer()
        most = max(found["weights"] + found["cache"], found["capacity"])
        share = {part: f"{100 * found[part] / most:.1f}%" for part in ("weights", "cache", "capacity")}
        bars = "".join(
            f'<div style="width:{share[part]};height:24px;background:{color}"></div>' for part, color in COLORS.items()
        )
        key = " &nbsp; ".join(
            f'<span style="border-left:14px solid {color}">&nbsp;{part} {with_prefix(found[part], "B")}</span>'
            for part, color in COLORS.items()
        )
        reach = "any context" if found["longest context"] is None else f"{found['longest context']:,} tokens"
        return (
            '<div style="max-width:720px;font-family:sans-serif;line-height:1.5">'
            f'<div style="display:flex;border:1px solid #888;background:#f4f4f4">{bars}</div>'
            f'<div style="width:{share["capacity"]};border-right:3px solid #D55E00;text-align:right">'
            f"capacity {with_prefix(found['capacity'], 'B')}&nbsp;</div>"
            f"<div>{key}</div><div><b>{'fits' if found['fits'] else 'does not fit'}</b>: {escape(str(self))}.<br>"
            f"At this context {found['largest batch']:,} requests fit; at this batch the context can reach {reach}. "
            f"At most {rate(found['tokens per second'])} tokens/s.</div></div>"
        )

    def __str__(self) -> str:
        s = self.settings
        return (
            f"{s['model']} on {self.hardware}, {s['batch']:,} x {s['context']:,} tokens, "
            f"weights {s['weights']}, cache {s['cache']}"
        )

    __repr__ = __str__

    def widget(self) -> object:
        """The control itself; every change recomputes the answer.

        Raises
        ------
        CostModelError
            without the package ipywidgets
        """
        widgets = needed("ipywidgets", "the interactive calculator", "notebooks")
        shown = widgets.HTML(self.html())
        controls = self._controls(widgets)

        def changed(_: object) -> None:
            self.settings = {name: control.value for name, control in controls.items()}
            shown.value = self.html()

        for control in controls.values():
            control.observe(changed, names="value")
        return widgets.VBox([*controls.values(), shown])

    def _controls(self, widgets: ModuleType) -> dict[str, object]:
        style, layout = {"description_width": "90px"}, widgets.Layout(width="480px")
        s, look = self.settings, {"style": style, "layout": layout}
        slider = widgets.SelectionSlider
        contexts = sorted({*(1000 * 2**i for i in range(8)), 2048, 8192, 131_072, s["context"]})
        batches = sorted({*(2**i for i in range(9)), s["batch"]})
        formats = [name for name in FORMATS if name != "fp32"]
        return {
            "model": widgets.Dropdown(options=PRESETS, value=s["model"], description="model", **look),
            "context": slider(options=contexts, value=s["context"], description="context", **look),
            "batch": slider(options=batches, value=s["batch"], description="batch", **look),
            "weights": widgets.Dropdown(options=formats, value=s["weights"], description="weights", **look),
            "cache": widgets.Dropdown(options=formats, value=s["cache"], description="cache", **look),
        }

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        """The control where a kernel can answer, and the plain answer beside it for pages that are only read."""
        live = self.widget()._repr_mimebundle_() or {}
        return {WIDGET_VIEW: live[WIDGET_VIEW], "text/html": self.html(), "text/plain": str(self)}
