"""A model is a stack of blocks, each with how often it occurs; sizes may be numbers or symbols."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from costmodel.common.errors import CostModelError
from costmodel.common.formats import number_format
from costmodel.exact import Number, amount, stored_bytes, whole
from costmodel.layers import Attention, Embedding, Mlp, Norm, StatedWeights, Unembedding
from costmodel.layers._layer import Layer
from costmodel.layers.stated import StatedCache
from costmodel.ops import Ledger, Row, elementwise
from costmodel.passes import ForwardPass
from costmodel.symbols import B, D, F, H, K, L, N, S, V
from costmodel.symbols import params as params_symbol

WIDEST = 64  # bytes of the widest element that is believed


def element_bytes(width: str | Number) -> Number:
    """Bytes per element of a format's name; a number or symbol is taken as bytes already."""
    return number_format(width).bytes if isinstance(width, str) else amount(width, "bytes per element", 0, WIDEST)


@dataclass(frozen=True)
class Tower:
    """An encoder known by its size: stored, and run apart from the text model's passes."""

    name: str
    params: int


@dataclass(frozen=True)
class Block:
    """Layers that follow each other; the output of each mixing layer is added to the residual stream."""

    layers: tuple[Layer, ...]
    name: str = "block"

    @property
    def width(self) -> Number | None:
        """D, where the block's layers know it."""
        return next((layer.width for layer in self.layers if hasattr(layer, "width")), None)

    def ledger(self, forward: ForwardPass) -> Ledger:
        """The rows of every layer; residual additions ride along with the writes they follow."""
        rows: list[Row] = []
        for layer in self.layers:
            rows += layer.ledger(forward).rows
            if layer.residual:
                added = elementwise(
                    "B T D", int(forward.elementwise), sizes=forward.sizes | {"D": layer.width}, on_chip=True
                )
                rows.append(Row(layer.residual, added))
        return Ledger(rows)


@dataclass(frozen=True)
class Model:
    """A stack [(block, count), …] between what comes before (embedding) and after (last norm, head).

    Attributes
    ----------
    name, family : what it is called, and the kind of configuration it came from
    before, blocks, after : its parts
    towers : encoders of other inputs (vision), stored beside the text model
    dtype : format its weights are stored in, or bytes per weight where formats are mixed; None if that cannot be known
    tied_head : whether the head reuses the embedding table
    positions : the longest context it was made for, where stated
    notes : what had to be assumed
    """

    blocks: tuple[tuple[Block, Number], ...]
    before: tuple[Layer, ...] = ()
    after: tuple[Layer, ...] = ()
    towers: tuple[Tower, ...] = ()
    name: str = "model"
    family: str = "transformer"
    dtype: str | Number | None = "bf16"
    tied_head: bool = False
    positions: int | None = None
    notes: tuple[str, ...] = ()

    def _parts(self) -> list[tuple[Layer, Number]]:
        inner = [(layer, count) for block, count in self.blocks for layer in block.layers]
        return [*((layer, 1) for layer in self.before), *inner, *((layer, 1) for layer in self.after)]

    @property
    def params(self) -> Number:
        """Stored parameters: those of the text model and of its towers."""
        return self.text_params + sum(tower.params for tower in self.towers)

    @property
    def text_params(self) -> Number:
        """Parameters of the text model: Σ count x the layers' own; a tied head stores none."""
        return sum(layer.params * count for layer, count in self._parts())

    @property
    def matrix_params(self) -> Number:
        """Parameters in matrices alone, without norm gains and biases: the textbook count."""
        return sum(layer.matrix_params * count for layer, count in self._parts())

    @property
    def active_params(self) -> Number:
        """Parameters of the text model that one token uses: without the experts it was not sent to."""
        return sum(layer.active_params * count for layer, count in self._parts())

    def cache_elements(self, context: Number = S) -> Number:
        """Elements kept per sequence of `context` tokens: keys, values and any constant state."""
        context = whole(context, "context", at_least=0)
        return sum(layer.cache_elements(context) * count for layer, count in self._parts())

    @property
    def state_elements(self) -> Number:
        """Elements of constant state per sequence, whatever the context."""
        return sum(layer.state_elements * count for layer, count in self._parts())

    def weight_bytes(self, weights: str | Number | None = None) -> Number:
        """Params x bytes per weight [byte], in the stored format unless another is given."""
        return stored_bytes(self.params, element_bytes(self.stored_dtype() if weights is None else weights))

    def cache_bytes(self, context: Number = S, cache: str | Number = "bf16") -> Number:
        """Keys and values x bytes per element, and any constant state at 16 bit, for one sequence [byte]."""
        state = self.state_elements
        return stored_bytes(self.cache_elements(context) - state, element_bytes(cache)) + 2 * state

    def stored_dtype(self) -> str | Number:
        """The stored format.

        Raises
        ------
        CostModelError
            when it cannot be known; an explicit weight format is then needed
        """
        if self.dtype is None:
            reason = self.notes[0] if self.notes else f"{self.name} states no weight format"
            raise CostModelError(
                f"{reason}; give the weight format explicitly, for example weights='int4' (--weights int4)"
            )
        return self.dtype

    def forward(self, forward: ForwardPass) -> Ledger:
        """The ledger of one forward pass, each block's rows counted as often as the block occurs."""
        ledger = Ledger(row for layer in self.before for row in layer.ledger(forward).rows)
        for block, count in self.blocks:
            rows = block.ledger(forward).times(count).rows
            if len(self.blocks) > 1:
                rows = [replace(row, name=f"{block.name}: {row.name}") for row in rows]
            ledger += Ledger(rows)
        return ledger + Ledger(row for layer in self.after for row in layer.ledger(forward).rows)

    def decode(self, batch: Number = B, context: Number = S, **switches: Any) -> Ledger:
        """One token for each of `batch` sequences that attend to `context` tokens (T = 1).

        Switches are those of `ForwardPass`: causal, head, elementwise.
        """
        return self.forward(ForwardPass(batch, 1, context, **switches))

    def prefill(self, batch: Number = B, prompt: Number = S, **switches: Any) -> Ledger:
        """A whole prompt at once (T = S). Switches are those of `ForwardPass`."""
        return self.forward(ForwardPass(batch, prompt, prompt, **switches))


def transformer(
    *, V: Number = V, D: Number = D, F: Number = F, N: Number = N, K: Number = K, H: Number = H, L: Number = L,
    norms: bool = True, gated: bool = True, tied_head: bool = False, qkv_bias: bool = False, out_bias: bool = False,
    mlp_bias: bool = False, qk_norm: bool = False, norm_gain: bool = True, max_len: Number | None = None,
    windows: Sequence[tuple[Number | None, Number]] | None = None, **about: Any,
) -> Model:  # fmt: skip
    """A dense decoder-only transformer; every size left out stays a symbol.

    params = 2·V·D + L·(2·D·N·H + 2·D·K·H + 3·D·F) without norms; each norm adds D, of which there are 2·L + 1.

    Parameters
    ----------
    V, D, F, N, K, H, L : vocabulary, widths, heads, layers
    norms, gated, tied_head, qkv_bias, out_bias, mlp_bias, qk_norm, norm_gain : what the architecture has
    max_len : rows of a learned table of positions; None for rotary positions, which store nothing
    windows : [(W or None, layers), …] when some layers attend through a sliding window
    about : name, family, dtype, positions, notes of the Model

    Returns
    -------
    Model

    Examples
    --------
    >>> transformer(norms=False).params.expand()
    3*D*F*L + 2*D*H*K*L + 2*D*H*L*N + 2*D*V
    >>> transformer(V=32000, D=5120, F=13824, N=40, K=40, H=128, L=40).params
    13015864320

    References
    ----------
    Touvron et al., Llama 2, 2307.09288, section 2.2.
    """
    V, D, F, N, K, H, L = (whole(v, n, limit=2**31) for v, n in zip((V, D, F, N, K, H, L), "VDFNKHL", strict=True))
    norm = lambda name: (Norm(D, name, norm_gain),) if norms else ()  # noqa: E731
    mlp = Mlp(D, F, gated=gated, bias=mlp_bias)
    blocks = []
    for window, count in [(None, L)] if windows is None else windows:
        mixer = Attention(
            D, N, K, H, window=window, qkv_bias=qkv_bias, out_bias=out_bias, qk_norm=qk_norm, rope=max_len is None
        )
        layers = (*norm("attention norm"), mixer, *norm("mlp norm"), mlp)
        blocks.append((Block(layers, "global" if window is None else "local"), count))
    after = (*norm("last norm"), Unembedding(V, D, tied=tied_head))
    positions = () if max_len is None else (Embedding(whole(max_len, "max_len"), D, "positions"),)
    return Model(tuple(blocks), (Embedding(V, D), *positions), after, tied_head=tied_head, **about)


def stated_model(*, params: Number = params_symbol, L: Number = L, K: Number = K, H: Number = H, **about: Any) -> Model:
    """A model known by its parameter count and its cache: one weights row, and the traffic of L caches.

    decode FLOPs = 2·B·params; bytes = 2·params + 4·B·L·K·H·(S + 1) at 16 bit.

    Examples
    --------
    >>> stated_model(params=8 * 10**9, L=32, K=8, H=128).decode(batch=1, context=1024)["weights"].bytes
    16000000000
    """
    params, L, K, H = (whole(v, n) for v, n in zip((params, L, K, H), ("params", "L", "K", "H"), strict=True))
    return Model(((Block((StatedCache(K, H),)), L),), (StatedWeights(params),), **about)
