"""Multi-head latent attention (DeepSeek-V2, 2405.04434, section 2.1): keys and values squeezed into one latent.

Each token leaves C numbers that all heads share, and R more that carry its rotary position: C + R, not twice that.
"""

from dataclasses import dataclass, replace

from costmodel.exact import Number, is_plain
from costmodel.layers._layer import Layer
from costmodel.ops import Ledger, Row, contract, elementwise
from costmodel.passes import ForwardPass
from costmodel.symbols import C, D, H, N, R


@dataclass(frozen=True)
class LatentAttention(Layer):
    """One MLA layer; cache = (C + R)·S elements per sequence, the same on every rank of tensor parallelism.

    params = D·N·(H + R) + D·(C + R) + C + C·N·(H + U) + N·U·D, with U the value width; with a query latent of width q
    the first term is D·q + q + q·N·(H + R).

    Attributes
    ----------
    width : D [element]
    heads : N, number of query heads
    latent, rotary : C, R, what each token leaves in the cache [element]
    key_width, value_width : H, the unrotated part of a key, and U [element]
    query_latent : q, width of the queries' own latent [element]; None projects directly
    absorbed : attend to the latents themselves, with the up-projections moved into query and output; None does so where
        that takes no more FLOPs than expanding the cache, pairs·(2·C − H − U) ≤ (S − T)·C·(H + U): in a decode step and
        in checking a few drafts, not in a prefill; one token always does, and where T is a symbol the cache is expanded

    Examples
    --------
    >>> LatentAttention(latent=512, rotary=64).cache_elements(1000)
    576000
    >>> from costmodel.layers import Attention
    >>> Attention(heads=128, kv_heads=128, head_width=128).cache_elements(1000)  # as many heads without a latent
    32768000

    References
    ----------
    DeepSeek-AI, DeepSeek-V2, 2405.04434, section 2.1.
    """

    residual = "attention residual"

    width: Number = D
    heads: Number = N
    latent: Number = C
    rotary: Number = R
    key_width: Number = H
    value_width: Number = H
    query_latent: Number | None = None
    absorbed: bool | None = None

    @property
    def matrix_params(self) -> Number:
        """Without the gains of the latents' norms."""
        return self.params - self.latent - (self.query_latent or 0)

    def cache_elements(self, context: Number) -> Number:
        """(C + R)·S."""
        return (self.latent + self.rotary) * context

    def matrices(self) -> list[tuple[int, int, int]]:
        """As they are stored: from the latent to the heads, whichever way a pass uses them."""
        return super(LatentAttention, replace(self, absorbed=False)).matrices()

    def _sizes(self, forward: ForwardPass) -> dict[str, Number]:
        widths = {"D": self.width, "N": self.heads, "C": self.latent, "R": self.rotary, "H": self.key_width}
        joined = {"Z": self.latent + self.rotary, "Y": self.key_width + self.rotary, "U": self.value_width}
        return forward.sizes | widths | joined | ({"Q": self.query_latent} if self.query_latent is not None else {})

    def _queries(self, sizes: dict[str, Number], counted: int) -> list[Row]:
        if self.query_latent is None:
            return [Row("query", contract("B T D, D N Y -> B T N Y", sizes=sizes))]
        return [
            Row("query down", contract("B T D, D Q -> B T Q", sizes=sizes)),
            Row("query norm", elementwise("B T Q", 4 * counted, sizes=sizes, gain="Q", on_chip=True)),
            Row("query up", contract("B T Q, Q N Y -> B T N Y", sizes=sizes)),
        ]

    def absorbs(self, forward: ForwardPass) -> bool:
        """Whether a pass attends to the latents themselves.

        Expanding spares pairs·(2·C − H − U) in scores and values, and makes the keys and values of S − T more tokens.

        Examples
        --------
        >>> layer = LatentAttention(latent=512, rotary=64, key_width=128, value_width=128)
        >>> [layer.absorbs(ForwardPass(1, tokens, 8192)) for tokens in (1, 168, 169, 8192)]
        [True, True, False, False]
        """
        tokens, context = forward.tokens, forward.context
        if self.absorbed is not None or not is_plain(tokens) or tokens == 1:
            return is_plain(tokens) if self.absorbed is None else self.absorbed
        longer, each = 2 * self.latent - self.key_width - self.value_width, self.key_width + self.value_width
        if not is_plain(longer, each):
            return False
        if not is_plain(context):  # taken as long, so that pairs are T·S
            return bool(tokens * longer <= self.latent * each)
        return bool(forward.pairs() * longer <= (context - tokens) * self.latent * each)

    def core(self, forward: ForwardPass) -> Ledger:
        """Scores, softmax and the weighted sum, over the latents or over what they were expanded to."""
        sizes, pairs = self._sizes(forward), forward.pairs()
        softmax = 5 * forward.batch * self.heads * pairs if forward.elementwise else 0
        if self.absorbs(forward):
            read = ("activation", "cache", "activation")
            scores = contract("B T N Z, B S Z -> B N T S", sizes=sizes, roles=read, on_chip=[-1], visible=pairs)
            values = contract("B N T S, B S C -> B T N C", sizes=sizes, on_chip=[0, 1], visible=pairs)
        else:
            scores = contract("B T N Y, B S N Y -> B N T S", sizes=sizes, roles=_ALL, on_chip=[-1], visible=pairs)
            values = contract("B N T S, B S N U -> B T N U", sizes=sizes, roles=_ALL, on_chip=[0], visible=pairs)
        on_chip = elementwise("B N T S", sizes=sizes, on_chip=True)
        return Ledger([Row("scores", scores), Row("softmax", on_chip.with_flops(softmax)), Row("values", values)])

    def _around(self, sizes: dict[str, Number], *, absorbed: bool) -> tuple[list[Row], list[Row]]:
        """The up-projections: of queries and outputs, after and before the core, or of every latent before it."""
        if absorbed:
            key_up = contract("B T N H, N H C -> B T N C", sizes=sizes, on_chip=[0])
            value_up = contract("B T N C, N C U -> B T N U", sizes=sizes, on_chip=[0])
            return [Row("key up, absorbed", key_up)], [Row("value up, absorbed", value_up)]
        expand = ("cache", "weight", "activation")
        key_up = contract("B S C, C N H -> B S N H", sizes=sizes, roles=expand)
        value_up = contract("B S C, C N U -> B S N U", sizes=sizes, roles=expand, on_chip=[0])
        return [Row("key up", key_up), Row("value up", value_up)], []

    def ledger(self, forward: ForwardPass) -> Ledger:
        """The latent is written to the cache; attention reads it once for keys and values together."""
        sizes, counted = self._sizes(forward), int(forward.elementwise)
        cached = ("activation", "weight", "cache")
        rows = [
            *self._queries(sizes, counted),
            Row("latent", contract("B T D, D Z -> B T Z", sizes=sizes, roles=cached, on_chip=[0])),
            Row("latent norm", elementwise("B T C", 4 * counted, sizes=sizes, gain="C", on_chip=True)),
        ]
        if self.rotary != 0:
            turned = (("query RoPE", "B T N R"), ("key RoPE", "B T R"))
            rows += [Row(name, elementwise(axes, 3 * counted, sizes=sizes, on_chip=True)) for name, axes in turned]
        before, after = self._around(sizes, absorbed=self.absorbs(forward))
        output = Row("output", contract("B T N U, N U D -> B T D", sizes=sizes))
        return Ledger([*rows, *before]) + self.core(forward) + Ledger([*after, output])


_ALL = ("activation",) * 3
