"""The letters of the subject: every symbol is made here, once, and nowhere else.

All symbols are `positive=True` and nothing more: with `integer=True` SymPy's `solve` answers `[]` whenever
the root is fractional. Whether a count is whole is checked where numbers come in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Symbol

from costmodel.common.errors import CostModelError


@dataclass(frozen=True)
class Letter:
    """One line of the notation table: a symbol, what it means, its unit and how LaTeX writes it."""

    symbol: Symbol
    meaning: str
    unit: str  # "" for a plain count
    latex: str


NOTATION: dict[str, Letter] = {}


def _letter(name: str, meaning: str, unit: str = "", latex: str | None = None, **assumptions: bool) -> Symbol:
    symbol = Symbol(name, **(assumptions or {"positive": True}))
    NOTATION[name] = Letter(symbol, meaning, unit, latex or name)
    return symbol


B = _letter("B", "sequences in the batch")
S = _letter("S", "tokens conditioned on (keys that attention reads), those being processed included")
T = _letter("T", "tokens processed in this pass (T = S in prefill, T = 1 in decode)")
D = _letter("D", "model width")
F = _letter("F", "feed-forward width")
N = _letter("N", "query heads")
K = _letter("K", "key/value heads")
G = _letter("G", "query heads per key/value head, N/K")
H = _letter("H", "head width")
L = _letter("L", "layers")
V = _letter("V", "vocabulary")
E = _letter("E", "routed experts")
A = _letter("A", "experts active per token")
C = _letter("C", "width of the MLA latent")
R = _letter("R", "width of the decoupled RoPE key")
W = _letter("W", "sliding-window length")
P = _letter("P", "tokens of the prompt")
M = _letter("M", "tokens generated")
params = _letter("params", "stored parameters", latex=r"\mathrm{params}")
b_w = _letter("b_w", "size of a weight", "byte", r"b_w")
b_kv = _letter("b_kv", "size of a cached key or value element", "byte", r"b_{kv}")
b_a = _letter("b_a", "size of an activation", "byte", r"b_a")
memory_bandwidth = _letter("memory_bandwidth", "bytes that memory delivers per second", "byte/s", r"\mathrm{bandwidth}")
peak = _letter("peak", "dense arithmetic rate", "FLOP/s", r"\mathrm{peak}")
capacity = _letter("capacity", "bytes that memory holds", "byte", r"\mathrm{capacity}")
devices = _letter("devices", "accelerators working together", latex=r"\mathrm{devices}")
price = _letter("price", "cost of one device for one second", "$/s", r"\mathrm{price}")
interconnect = _letter("interconnect", "bytes that a device sends per second", "byte/s", r"\mathrm{interconnect}")
replicas = _letter("replicas", "copies of the deployment, each with its own users", latex=r"\mathrm{replicas}")
utilisation = _letter("utilisation", "share of the time that is spent on paid work", latex=r"u")
alpha = _letter("alpha", "acceptance rate of drafted tokens", latex=r"\alpha", nonnegative=True)
gamma = _letter("gamma", "drafted tokens per round", latex=r"\gamma", nonnegative=True)
cost_ratio = _letter("cost_ratio", "time of one draft step in steps of the target", latex="c")
p = _letter("p", "target distribution")
q = _letter("q", "draft distribution")
bits = _letter("bits", "bits of a quantized weight", latex=r"\mathrm{bits}")
group = _letter("group", "weights that share a scale", latex=r"\mathrm{group}")
scale_bits = _letter("scale_bits", "bits of a group's scale and zero point", latex=r"\mathrm{scale\ bits}")
index = _letter("i", "summation index")
block = _letter("block", "tokens that one block of cache memory holds", latex=r"\mathrm{block}")
requests = _letter("requests", "requests that share a prefix", latex=r"\mathrm{requests}")
prefix = _letter("prefix", "tokens that every request begins with", latex=r"\mathrm{prefix}")
suffix = _letter("suffix", "tokens that only one request has", latex=r"\mathrm{suffix}")
write = _letter("write", "price of a token written to a prompt cache, in plain ones", latex=r"\mathrm{write}")
read = _letter("read", "price of a token read from a prompt cache, in plain ones", latex=r"\mathrm{read}")
token_price = _letter("token_price", "price of a plain input token", "$", r"\mathrm{price}_\mathrm{token}")

LATEX_NAMES: dict[Symbol, str] = {letter.symbol: letter.latex for letter in NOTATION.values()}


def letter(name: str) -> Symbol:
    """Return the symbol called `name`.

    Raises
    ------
    KeyError
        when the notation has no such letter; the message lists those it has.

    Examples
    --------
    >>> letter("B") is B
    True
    """
    if name not in NOTATION:
        raise KeyError(f"no symbol called {name!r}; the notation has {', '.join(NOTATION)}")
    return NOTATION[name].symbol


def bindings(values: Mapping[Any, Any]) -> dict[Symbol, object]:
    """Turn `{symbol or its name: value}` into `{symbol: value}`, refusing look-alikes.

    A `Symbol("B")` made elsewhere has other assumptions, so substituting for it silently does nothing; here it is an
    error instead. So is a text, which SymPy would run as Python.

    Raises
    ------
    KeyError
        for a letter that the notation does not have, or a look-alike
    CostModelError
        for a value that is a text

    Examples
    --------
    >>> bindings({"T": 1, S: 8})
    {T: 1, S: 8}
    """
    bound: dict[Symbol, object] = {}
    for key, value in values.items():
        name = key if isinstance(key, str) else getattr(key, "name", str(key))
        symbol = letter(name)
        if not isinstance(key, str) and key != symbol:
            raise KeyError(f"{name!r} is a different symbol from costmodel.symbols.{name}: its assumptions differ")
        if isinstance(value, str):
            raise CostModelError(f"{name} must be a number or a formula, got the text {value!r}")
        bound[symbol] = value
    return bound


def used_in(*expressions: object) -> list[Letter]:
    """Return the lines of the notation table that the expressions use, in the table's order."""
    free = set().union(*(e.free_symbols for e in expressions if isinstance(e, Expr)))
    return [line for line in NOTATION.values() if line.symbol in free]
