"""Attention with N query heads over K key/value heads of width H: MHA (K = N), GQA, MQA (K = 1).

Accounting as in FlashAttention (Dao et al., 2205.14135): the S x T scores stay on chip. Grouped heads after Ainslie
et al. (2305.13245).
"""

from dataclasses import dataclass

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain, quotient, whole
from costmodel.layers._layer import Layer, kv_elements
from costmodel.operation import Op, Tensor
from costmodel.ops import Ledger, Row, contract, elementwise
from costmodel.passes import ForwardPass
from costmodel.symbols import D, H, K, N


@dataclass(frozen=True)
class Attention(Layer):
    """One attention layer.

    params = 2·D·N·H + 2·D·K·H, plus biases and query/key gains where there are any;
    cache = 2·K·H·min(S, W) elements per sequence.

    Attributes
    ----------
    width, head_width : D, H [element]
    heads, kv_heads : number of query heads N and of key/value heads K
    window : W, the keys a query may see, itself included [token]; None for all
    chunk : length of the blocks of positions that a query cannot see beyond (chunked local attention) [token]; None for
        none
    qkv_bias, out_bias : whether the projections have biases
    qk_norm : whether queries and keys are normalised per head, with learned gains of width H each
    rope : whether queries and keys are rotated by their positions
    sinks : whether each query head has a learned score to attend to nothing with
    output_gate : whether the query projection also makes a gate for the output
    borrows_kv : whether the keys and values are those of an earlier layer (cross-layer attention): no projections and
        no cache of its own, but the same reads

    Raises
    ------
    CostModelError
        for heads, a window or a chunk that are neither a symbol nor a whole number of at least 1, N that is not a
        multiple of K, or a window beside a chunk

    Examples
    --------
    >>> Attention().params
    2*D*H*K + 2*D*H*N
    >>> layer = Attention(4096, heads=32, kv_heads=8, head_width=128, window=4096)
    >>> layer.params, layer.cache_elements(10_000)  # of 10,000 tokens the window keeps 4096
    (41943040, 8388608)

    References
    ----------
    Vaswani et al., Attention is all you need, 1706.03762, section 3.2; Ainslie et al., GQA, 2305.13245, section 2;
    Brandon et al., cross-layer attention, 2405.12981.
    """

    residual = "attention residual"

    width: Number = D
    heads: Number = N
    kv_heads: Number = K
    head_width: Number = H
    window: Number | None = None
    chunk: Number | None = None
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False
    rope: bool = True
    sinks: bool = False
    output_gate: bool = False
    borrows_kv: bool = False

    def __post_init__(self) -> None:
        for name in ("heads", "kv_heads", "window", "chunk"):
            if getattr(self, name) is not None:
                whole(getattr(self, name), name)
        if self.window is not None and self.chunk is not None:
            raise CostModelError(f"a layer has a window or a chunk, got both: {self.window} and {self.chunk}")
        if is_plain(self.heads, self.kv_heads) and self.heads % self.kv_heads:
            raise CostModelError(f"query heads ({self.heads}) must be a multiple of key/value heads ({self.kv_heads})")

    def _sizes(self, forward: ForwardPass) -> dict[str, Number]:
        heads = {"D": self.width, "N": self.heads, "K": self.kv_heads, "H": self.head_width}
        return forward.sizes | heads | {"S": forward.keys(self.window, self.chunk)}

    @property
    def matrix_params(self) -> Number:
        """2·D·N·H + 2·D·K·H."""
        kept = {"output_gate": self.output_gate, "borrows_kv": self.borrows_kv}
        return Attention(self.width, self.heads, self.kv_heads, self.head_width, **kept).params

    def cache_elements(self, context: Number) -> Number:
        """2·K·H·min(S, W), or a chunk at most, or 0 where they are borrowed."""
        if self.borrows_kv:
            return 0
        return kv_elements(context, self.kv_heads, self.head_width, self.chunk if self.window is None else self.window)

    def _gate(self, sizes: dict[str, Number]) -> list[Row]:
        """A second matrix beside the query's, sharing its read of X."""
        if not self.output_gate:
            return []
        return [Row("output gate", contract("B T D, D N H -> B T N H", sizes=sizes, on_chip=[0]))]

    def core(self, forward: ForwardPass) -> Ledger:
        """Scores, softmax and the weighted sum of values: 4·B·pairs·N·H FLOPs, scores never leaving the chip."""
        sizes, pairs = self._sizes(forward), forward.pairs(self.window, self.chunk)
        softmax = 5 * forward.batch * self.heads * pairs if forward.elementwise else 0
        scores = contract(
            "B T K G H, B S K H -> B K G T S",
            sizes=sizes, roles=("activation", "cache", "activation"), on_chip=[-1], visible=pairs,
        )  # fmt: skip
        values = contract(
            "B K G T S, B S K H -> B T K G H",
            sizes=sizes, roles=("activation", "cache", "activation"), on_chip=[0], visible=pairs,
        )  # fmt: skip
        on_chip = elementwise("B K G T S", sizes=sizes, on_chip=True)
        return Ledger([Row("scores", scores), Row("softmax", on_chip.with_flops(softmax)), Row("values", values)])

    def ledger(self, forward: ForwardPass) -> Ledger:
        """Projections, RoPE, the core and the output projection; K and V are written to the cache as they are made."""
        sizes = self._sizes(forward)
        counted = forward.elementwise
        cached = ("activation", "weight", "cache")
        made = [("query", "N H")] if self.borrows_kv else [("query", "N H"), ("key", "K H"), ("value", "K H")]
        rows = [Row("query", contract("B T D, D N H -> B T N H", sizes=sizes)), *self._gate(sizes)]
        rows += [
            Row(name, contract("B T D, D K H -> B T K H", sizes=sizes, roles=cached, on_chip=[0]))
            for name, _ in made[1:]
        ]
        if self.qkv_bias:
            rows += [_inside(f"{name} bias", axes, int(counted), sizes, gain=axes) for name, axes in made]
        if self.qk_norm:
            rows += [_inside(f"{name} norm", axes, 4 * counted, sizes, gain="H") for name, axes in made[:2]]
        if self.rope:
            rows += [_inside(f"{name} RoPE", axes, 3 * counted, sizes) for name, axes in made[:2]]
        if self.sinks:
            rows.append(Row("sinks", Op(0, (Tensor("N", self.heads, "weight"),))))
        out = [Row("output", contract("B T N H, N H D -> B T D", sizes=sizes))]
        if self.out_bias:
            out.append(Row("output bias", elementwise("B T D", int(counted), sizes=sizes, gain="D", on_chip=True)))
        return Ledger(rows) + self.core(forward) + Ledger(out)


def _inside(name: str, axes: str, flops: int, sizes: dict[str, Number], gain: str | None = None) -> Row:
    """Elementwise work on a projection while it is on chip."""
    return Row(name, elementwise(f"B T {axes}", flops, sizes=sizes, gain=gain, on_chip=True))


def attention(
    heads: Number = N, kv_heads: Number | None = None, head_width: Number | None = None, *, causal: bool = False
) -> Ledger:
    """The attention core of one layer as a ledger in B, S and T; multi-head with N·H = D unless told otherwise.

    FLOPs = 4·B·S·T·D; bytes = 4·B·S·D + 4·B·T·D at 16 bit; intensity = S·T/(S + T).

    Parameters
    ----------
    heads : N, the number of query heads
    kv_heads : K, the number of key/value heads; None: K = N
    head_width : H [element]; None: D/N
    causal : count only the pairs that the mask leaves, T·S − T(T−1)/2

    Returns
    -------
    Ledger with flops [FLOP], bytes [byte] and intensity [FLOP/byte]; the projections are left out

    Raises
    ------
    CostModelError
        when N is not a multiple of K

    Examples
    --------
    >>> attention().intensity, attention().at(T=1).intensity
    (S*T/(S + T), S/(S + 1))
    >>> attention(kv_heads=K, head_width=H).bytes
    4*B*H*K*S + 4*B*H*N*T

    References
    ----------
    Dao et al., FlashAttention, 2205.14135, section 3; Ainslie et al., GQA, 2305.13245, section 2.
    """
    width = quotient(D, heads) if head_width is None else head_width
    layer = Attention(D, heads, heads if kv_heads is None else kv_heads, width)
    return layer.core(ForwardPass(causal=causal))
