"""What a pass over sequences of different lengths costs, read off the model's ledger and kept exact.

A ledger in B, T and S has the form weights + experts(B·T) + B·h(T, S): what all sequences share, what the experts of a
mixture add, and what each sequence adds by itself. So a ragged pass costs weights + experts(tokens) + Σ h(Tᵢ, Sᵢ).
Times are whole ticks, a unit in which every coefficient is an integer: sums are exact, ties are ties.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import lcm
from typing import TypeAlias

from sympy import Add, Expr, Pow, expand, sympify

from costmodel.common.errors import CostModelError
from costmodel.layers import LatentAttention
from costmodel.model import Model
from costmodel.operation import Widths
from costmodel.passes import ForwardPass
from costmodel.serving.formula import Piecewise, Polynomial, as_fraction
from costmodel.sizing import Deployment
from costmodel.symbols import B, S, T

Form: TypeAlias = tuple[bool, ...]  # of each kind of latent attention: whether it attends to the latents themselves


def _terms(expr: Expr) -> tuple[Expr, Expr, Expr]:
    """Split a total in B, T and S: what is shared, experts(B·T), and h(T, S) of each sequence."""
    shared, experts, own = [], [], []
    for term in Add.make_args(expand(sympify(expr))):
        if not term.has(B):
            shared.append(term)
        elif any(isinstance(p, Pow) and p.exp.has(B) for p in term.atoms(Pow)):
            experts.append(term)
        else:
            own.append(expand(term / B))
    if any(part.has(S, T) for part in shared) or any(part.has(B) for part in own):
        raise CostModelError("a pass does not split into what is shared and what each sequence adds")
    return Add(*shared), Add(*experts), Add(*own)


@dataclass(frozen=True)
class Side:
    """One of the two sides of the roofline: the terms of FLOPs over the peak, or of bytes over the bandwidth."""

    shared: Fraction
    experts: Expr
    decode: Polynomial
    prefill: dict[Form, Polynomial]
    rate: Fraction

    @classmethod
    def of(cls, decode: Expr, chunks: Mapping[Form, Expr], rate: Fraction) -> "Side":
        """From the ledger's totals for one new token and, in each form, for T of them."""
        shared, experts, one = _terms(decode)
        prefill = {}
        for form, chunk in chunks.items():
            shared_too, experts_too, many = _terms(chunk)
            if expand(shared - shared_too) != 0 or expand(experts_too.subs(T, 1) - experts) != 0:
                raise CostModelError("one new token and many do not read the same weights")
            prefill[form] = Polynomial(many)
        return cls(as_fraction(shared), experts, Polynomial(one), prefill, rate)

    def denominators(self) -> Iterable[int]:
        """Those that a tick must divide out."""
        parts = [Fraction(c) for formula in (self.decode, *self.prefill.values()) for c, _, _ in formula.terms]
        return [(c / self.rate).denominator for c in (*parts, self.shared)]


class PassCosts:
    """The cost of any pass of a deployment, in whole ticks.

    Parameters
    ----------
    deployment : with numbers throughout

    Attributes
    ----------
    ticks_per_s : integer, so that every coefficient is whole
    compute, memory, cache : a decoding sequence's share of the step and the bytes it keeps, linear between breaks in S;
        the cache in units of 1/cache_unit byte
    lines, breaks : the three; whether any of them breaks
    mixture : whether there are experts

    Raises
    ------
    CostModelError
        for a textbook or calibrated deployment, one spread by Parallel, or a model whose pass does not split into what
        is shared and what each sequence adds

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
    >>> costs = PassCosts(d)
    >>> costs.seconds(costs.decode([8192] * 16)) == d.decode(16, 8192).seconds_per_token
    True
    """

    def __init__(self, deployment: Deployment) -> None:
        for name in ("textbook", "calibrated"):
            if chosen := getattr(deployment, name):
                raise CostModelError(
                    f"serving is timed by the roofline; {name}={chosen!r} has no pass of prompts and tokens together"
                )
        if deployment.parallel.devices != 1:
            raise CostModelError(
                "serving takes joined devices as one, accelerator.times(n), and copies as the `replicas` of simulate; "
                f"got {deployment.parallel}"
            )
        self.deployment = deployment
        self._latents = _undecided(deployment.model)
        flops, moved = self._totals(deployment.model, deployment.widths)
        device = deployment.accelerator
        sides = (
            Side.of(*flops, as_fraction(sympify(device.peak(deployment.compute)))),
            Side.of(*moved, as_fraction(sympify(device.bandwidth))),
        )
        self.ticks_per_s = lcm(2, *(d for side in sides for d in side.denominators()))
        units = [self.ticks_per_s / side.rate for side in sides]
        compute, memory = (int(side.shared * unit) for side, unit in zip(sides, units, strict=True))
        self._shared = compute, memory
        self._experts = [
            [(float(unit), *_power(term)) for term in Add.make_args(side.experts) if term != 0]
            for side, unit in zip(sides, units, strict=True)
        ]
        self.mixture = any(self._experts)
        self._seen: dict[int, tuple[int, int]] = {}
        self.compute, self.memory = (
            Piecewise(side.decode.scaled(unit)) for side, unit in zip(sides, units, strict=True)
        )
        self._chunks = {
            form: [side.prefill[form].scaled(unit) for side, unit in zip(sides, units, strict=True)]
            for form in sides[0].prefill
        }
        self.prefills = self._chunks[self._form(2, 2)]  # whatever their length
        kept = Polynomial(deployment.cache_bytes(S))
        self.cache_unit = lcm(*kept.denominators)
        self.cache = Piecewise(kept.scaled(Fraction(self.cache_unit)))
        self.lines = (self.compute, self.memory, self.cache)
        self.breaks = any(line.breaks for line in self.lines)

    def _totals(
        self, model: Model, widths: Widths
    ) -> tuple[tuple[Expr, dict[Form, Expr]], tuple[Expr, dict[Form, Expr]]]:
        one = model.decode(B, S).sized(widths)
        many = {
            form: _decided(model, dict(zip(self._latents, form, strict=True)))
            .forward(ForwardPass(B, T, S))
            .sized(widths)
            for form in product((False, True), repeat=len(self._latents))
        }
        flops, moved = ({form: getattr(ledger, what) for form, ledger in many.items()} for what in ("flops", "bytes"))
        return (one.flops, flops), (one.bytes, moved)

    def _form(self, tokens: int, context: int) -> Form:
        """Which kinds of latents a chunk absorbs."""
        if not self._latents:
            return ()
        chunk = ForwardPass(1, tokens, context)
        return tuple(layer.absorbs(chunk) for layer in self._latents)

    def lines_at(self, context: int) -> tuple[tuple[int, int], ...]:
        """Each line's value at S and its growth a step."""
        return self.compute.at(context), self.memory.at(context), self.cache.at(context)

    def last(self, context: int) -> int | None:
        """The last context for which all three pieces at S hold; None if they never end."""
        ends = [end for line in self.lines if (end := line.last(context)) is not None]
        return min(ends, default=None)

    def shared(self, tokens: int) -> tuple[int, int]:
        """Weights, and the experts that `tokens` tokens are expected to use, to the nearest tick: (compute, memory)."""
        if not self.mixture:
            return self._shared
        if tokens not in self._seen:
            compute, memory = (
                base + round(sum(unit * c * share**tokens for unit, c, share in terms))
                for base, terms in zip(self._shared, self._experts, strict=True)
            )
            self._seen[tokens] = compute, memory
        return self._seen[tokens]

    def prefill(self, tokens: int, context: int) -> tuple[int, int]:
        """What T new tokens over S add to a pass, one of them being a decode step: (compute, memory) [tick]."""
        if tokens == 1:
            return self.compute.at(context)[0], self.memory.at(context)[0]
        compute, memory = self._chunks[self._form(tokens, context)]
        return compute.at(tokens, context), memory.at(tokens, context)

    def mixed(self, contexts: Iterable[int], chunks: Iterable[tuple[int, int]]) -> int:
        """One pass: a token for each of `contexts`, and T tokens over S for each of `chunks` [tick]."""
        contexts, chunks = list(contexts), list(chunks)
        tokens = len(contexts) + sum(t for t, _ in chunks)
        compute, memory = self.shared(tokens)
        for context in contexts:
            compute, memory = compute + self.compute.at(context)[0], memory + self.memory.at(context)[0]
        for t, s in chunks:
            more = self.prefill(t, s)
            compute, memory = compute + more[0], memory + more[1]
        return max(compute, memory)

    def decode(self, contexts: Iterable[int]) -> int:
        """One step of sequences at these contexts [tick]."""
        return self.mixed(contexts, ())

    def cache_bytes(self, tokens: int) -> int:
        """What one sequence of so many tokens keeps, in whole bytes."""
        return -(-self.cache.at(tokens)[0] // self.cache_unit) if tokens else 0

    def transfer(self, tokens: int, link: float) -> int:
        """Ticks that the cache of so many tokens takes over a link [byte/s], the last one whole."""
        return self.ticks(Fraction(self.cache_bytes(tokens)) / Fraction(link))

    def ticks(self, seconds: float | Fraction) -> int:
        """The first tick at or after a time."""
        above, below = seconds.as_integer_ratio()
        return -(-above * self.ticks_per_s // below)

    def seconds(self, ticks: int) -> float:
        """Ticks as seconds."""
        return ticks / self.ticks_per_s


def _undecided(model: Model) -> list[LatentAttention]:
    """Each kind of latent attention that expands its cache or not as the pass asks for."""
    layers = dict.fromkeys(layer for block, _ in model.blocks for layer in block.layers)
    return [layer for layer in layers if isinstance(layer, LatentAttention) and layer.absorbed is None]


def _decided(model: Model, forms: Mapping[LatentAttention, bool]) -> Model:
    """The same model with the form of its latent attention laid down."""
    form = lambda layer: replace(layer, absorbed=forms[layer]) if layer in forms else layer  # noqa: E731
    blocks = tuple((replace(block, layers=tuple(map(form, block.layers))), count) for block, count in model.blocks)
    return replace(model, blocks=blocks)


def _power(term: Expr) -> tuple[float, float]:
    """c·q^(B·T) as (c, q)."""
    power = next(p for p in term.atoms(Pow) if p.exp.has(B))
    return float(term / power), float(power.base ** (power.exp / (B * T if power.exp.has(T) else B)))
