"""Will it fit, how fast? The interactive page's control in JupyterLab, and a plain answer where no kernel listens."""

from collections.abc import Mapping
from fractions import Fraction
from html import escape
from json import dumps
from typing import Any

from costmodel.common.errors import CostModelError
from costmodel.common.extras import needed
from costmodel.common.formats import number_format
from costmodel.explore.catalogue import ROUNDED, STARTING, STORED, Catalogue
from costmodel.explore.document import source, widget_script
from costmodel.hardware import accelerator
from costmodel.parallel import Parallel
from costmodel.sizing import Deployment
from costmodel.tables import rate, with_prefix
from costmodel.zoo import load

COLORS = {"weights": "#0072B2", "cache": "#E69F00"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class Calculator:
    """Memory of one deployment against the card's capacity, how many requests fit, and how fast they go.

    Parameters
    ----------
    model : a preset
    context, batch : tokens per request [token], requests at once
    weights, cache : number formats; weights may be "stored", as the model's own are
    hardware : an accelerator
    tensor : devices that share the model; memory is then that of one of them
    free : share of the memory kept free [%]

    Raises
    ------
    UnknownNameError
        for an accelerator or format that is not on record; other settings are refused when an answer is asked for

    Examples
    --------
    >>> Calculator("8b", context=32_000).answer()["largest batch"]
    15
    """

    def __init__(
        self, model: str = STARTING["model"], *, context: int = STARTING["context"], batch: int = STARTING["batch"],
        weights: str = "bf16", cache: str = STARTING["cache"], hardware: str = STARTING["on"],
        tensor: int = STARTING["tensor"], free: float = STARTING["free"],
    ) -> None:  # fmt: skip
        self.settings: dict[str, Any] = {
            "model": model, "on": accelerator(hardware).name, "batch": batch, "context": context,
            "weights": weights if weights == STORED else number_format(weights).name,
            "cache": number_format(cache).name, "tensor": tensor, "free": free,
        }  # fmt: skip

    @property
    def deployment(self) -> Deployment:
        """What the settings describe."""
        s = self.settings
        weights = None if s["weights"] == STORED else s["weights"]
        return Deployment(
            load(s["model"]), accelerator(s["on"]), weights=weights, cache=s["cache"],
            reserve=Fraction(s["free"]) / 100, parallel=Parallel(tensor=s["tensor"]),
        )  # fmt: skip

    def answer(self) -> dict[str, Any]:
        """Memory used and usable [byte], whether it fits, the largest batch, the longest context, speed [token/s]."""
        d, batch, context = self.deployment, self.settings["batch"], self.settings["context"]
        step = d.decode(batch, context)
        return {
            "weights": d.weight_bytes,
            "cache": batch * d.cache_bytes(context),
            "capacity": d.usable_bytes,
            "fits": d.fits(batch, context),
            "largest batch": d.largest_batch(context),
            "longest context": d.longest_context(batch),
            "tokens per second": step.tokens_per_s,
        }

    def html(self) -> str:
        """The answer as a bar and a line of text; a page that is only read may put the live control in its place."""
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
            f'<div data-calculator="{escape(dumps(self.settings))}" '
            'style="max-width:720px;font-family:sans-serif;line-height:1.5">'
            f'<div style="display:flex;border:1px solid #888;background:#f4f4f4">{bars}</div>'
            f'<div style="width:{share["capacity"]};border-right:3px solid #D55E00;text-align:right">'
            f"capacity {with_prefix(found['capacity'], 'B')}&nbsp;</div>"
            f"<div>{key}</div><div><b>{'fits' if found['fits'] else 'does not fit'}</b>: {escape(str(self))}.<br>"
            f"At this context {found['largest batch']:,} requests fit; at this batch the context can reach {reach}. "
            f"At most {rate(found['tokens per second'])} tokens/s.</div></div>"
        )

    def __str__(self) -> str:
        s = self.settings
        shared = f" (one of {s['tensor']} that share it)" if s["tensor"] > 1 else ""
        return (
            f"{s['model']} on {s['on']}{shared}, {s['batch']:,} x {s['context']:,} tokens, "
            f"weights {s['weights']}, cache {s['cache']}"
        )

    __repr__ = __str__

    def widget(self) -> Any:
        """The control itself; what a reader moves arrives in `settings`.

        Raises
        ------
        CostModelError
            without the package anywidget
        """
        base: Any = needed("anywidget", "the interactive calculator", "notebooks").AnyWidget
        traitlets = needed("traitlets", "the interactive calculator", "notebooks")
        catalogue = Catalogue.of(dict.fromkeys((*ROUNDED, self.settings["model"])))

        class Control(base):
            _esm = widget_script(catalogue)
            _css = source("calculator.css")
            settings = traitlets.Dict().tag(sync=True)

        control = Control(settings=dict(self.settings))
        control.observe(lambda change: self._take(change["new"]), names="settings")
        return control

    def _take(self, settings: Mapping[str, Any]) -> None:
        unknown = set(self.settings) - set(settings)
        if unknown:
            raise CostModelError(f"settings must have {', '.join(self.settings)}; {', '.join(unknown)} missing")
        self.settings = {name: settings[name] for name in self.settings}

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The control where a kernel can answer, and the plain answer beside it for pages that are only read."""
        live, _ = self.widget()._repr_mimebundle_()
        return {WIDGET_VIEW: live[WIDGET_VIEW], "text/html": self.html(), "text/plain": str(self)}
