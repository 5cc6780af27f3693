"""A formula as JavaScript and as MathML: what a page without Python computes with and shows."""

from collections.abc import Iterable, Mapping
from typing import Any

from sympy import Expr, Mul
from sympy.printing.jscode import JavascriptCodePrinter
from sympy.printing.mathml import MathMLPresentationPrinter

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain
from costmodel.symbols import LATEX_NAMES


class _JavaScript(JavascriptCodePrinter):
    """SymPy's printer, with parts that already have a name, and rounding that is exact at multiples."""

    def __init__(self, names: Mapping[Expr, str]) -> None:
        super().__init__({"strict": True})
        self._names = names

    def _print(self, expr: object, **settings: Any) -> str:
        return self._names.get(expr) or super()._print(expr, **settings)

    def _rounded(self, function: str, argument: Expr) -> str:
        above, below = argument.as_numer_denom()  # floor(S/49), never floor(0.0204·S), which misses exact multiples
        return f"Math.{function}(({self._print(above)})/({self._print(below)}))"

    def _print_floor(self, expr: Expr) -> str:
        return self._rounded("floor", expr.args[0])

    def _print_ceiling(self, expr: Expr) -> str:
        return self._rounded("ceil", expr.args[0])

    def _print_Piecewise(self, expr: Expr) -> str:
        """One line in parentheses, so that it can stand inside a product."""
        return f"({' '.join(super()._print_Piecewise(expr).split())})"


def javascript(formula: Number, names: Mapping[Expr, str] | None = None) -> str:
    """A formula as a JavaScript expression in the notation's letters.

    floor(a/b) divides last, so that it is exact wherever a and b are; Piecewise is parenthesised.

    Parameters
    ----------
    formula : an expression in any of the notation's letters, or a number
    names : parts of it that the surrounding script has computed already, and what it calls them

    Raises
    ------
    CostModelError
        for a function that JavaScript does not have

    Examples
    --------
    >>> from sympy import Max, floor
    >>> from costmodel.symbols import B, S
    >>> javascript(floor(S / 49) + Max(B, 2 * S))
    'Math.floor((S)/(49)) + Math.max(B, 2*S)'
    """
    if is_plain(formula):
        return repr(float(formula)) if not float(formula).is_integer() else str(int(formula))
    try:
        return _JavaScript(names or {}).doprint(formula)
    except NotImplementedError as error:
        raise CostModelError(f"JavaScript cannot compute {formula}: {str(error).splitlines()[0]}") from error


def function(formulas: Mapping[str, Number], letters: Mapping[Expr, str] | Iterable[Expr]) -> str:
    """A JavaScript function from an object with `letters` to one with every formula; a later one reuses the earlier.

    Parameters
    ----------
    formulas : by name
    letters : the arguments, and what the script calls each where that is not its own name

    Examples
    --------
    >>> from costmodel.symbols import B, S
    >>> function({"all": 2 * B + S, "half": 1 / (2 * B + S)}, (B, S))
    '({B,S})=>{const all=2*B + S,half=1/(all);return {all,half}}'
    """
    names: dict[Expr, str] = (
        dict(letters) if isinstance(letters, Mapping) else {letter: str(letter) for letter in letters}
    )
    arguments = ",".join(names.values())
    lines = []
    for name, formula in formulas.items():
        lines.append(f"{name}={javascript(formula, names)}")
        if isinstance(formula, Expr) and not formula.is_Atom:
            names.setdefault(formula, name)
    return f"({{{arguments}}})=>{{const {','.join(lines)};return {{{','.join(formulas)}}}}}"


class _MathML(MathMLPresentationPrinter):
    """SymPy's printer, with named parts, words as one identifier and a visible dot for products."""

    def __init__(self, names: Mapping[Expr, str]) -> None:
        super().__init__({"disable_split_super_sub": False, "mul_symbol": None})
        self._names = names

    def _print(self, expr: object, **settings: Any) -> Any:
        if expr in self._names:
            return self._word(self._names[expr])
        return super()._print(expr, **settings)

    def parenthesize(self, item: object, level: int, strict: bool = False) -> object:
        return self._print(item) if item in self._names else super().parenthesize(item, level, strict)

    def mathml_tag(self, expr: object) -> str:
        return "·" if isinstance(expr, Mul) else super().mathml_tag(expr)

    def _word(self, text: str) -> object:
        tag = self.dom.createElement("mi")
        tag.appendChild(self.dom.createTextNode(text))
        return tag

    def _print_Symbol(self, symbol: Expr, style: str = "plain") -> object:
        word = LATEX_NAMES.get(symbol, "")
        if word.startswith(r"\mathrm{"):
            return self._word(word.removeprefix(r"\mathrm{").removesuffix("}"))
        return super()._print_Symbol(symbol, style)


def mathml(formula: Number, names: Mapping[Expr, str] | None = None) -> str:
    """A formula as presentation MathML, without the surrounding `math` element.

    Parameters
    ----------
    formula : an expression, or a number
    names : parts of it to show by a name

    Examples
    --------
    >>> from costmodel.symbols import B, b_w, peak
    >>> mathml(B / peak)
    '<mrow><mfrac><mi>B</mi><mi>peak</mi></mfrac></mrow>'
    """
    if is_plain(formula):
        return f"<mn>{formula}</mn>"
    return _MathML(names or {})._print(formula).toxml()
