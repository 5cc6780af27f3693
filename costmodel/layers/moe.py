"""Mixture of experts: a router sends each token to A of E feed-forward experts (Shazeer et al., 1701.06538).

All experts are stored. A pass reads those that some token of the batch was sent to: E·(1 − (1 − A/E)^(B·T)) on average
if tokens choose independently and evenly.
"""

from dataclasses import dataclass, field, replace

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_plain, ratio
from costmodel.layers._layer import Layer
from costmodel.layers.mlp import Mlp
from costmodel.operation import Op, Tensor
from costmodel.ops import Ledger, Row, contract, elementwise
from costmodel.passes import ForwardPass
from costmodel.symbols import A, E


def distinct_experts(experts: Number, active: Number, tokens: Number) -> Number:
    """E·(1 − (1 − A/E)^tokens), the experts that a pass is expected to read.

    Each token is taken to choose A of the E independently and evenly; where the choice is uneven, fewer are read.

    Parameters
    ----------
    experts, active : E, A; number of experts stored, and of those that one token is sent to
    tokens : B·T, of the whole pass [token]

    Returns
    -------
    number of distinct experts on average: A for one token, towards E for many

    Examples
    --------
    >>> distinct_experts(8, 2, 1), distinct_experts(8, 2, 2), round(distinct_experts(8, 2, 16), 3)
    (2.0, 3.5, 7.92)
    """
    return experts * (1 - (1 - ratio(active, experts)) ** tokens)  # exact shares of 10⁹ tokens would be 10⁹ digits


@dataclass(frozen=True)
class Moe(Layer):
    """One mixture: params = E·expert + D·E for the router, plus a shared expert where there is one.

    Attributes
    ----------
    expert : one expert, an Mlp of widths D and F
    experts, active : E, A; number of experts stored, and of those that one token is sent to
    shared : an Mlp that every token uses; None for none
    shared_gate : whether a learned gate of width D scales the shared expert
    router_bias : whether the router has biases
    scored : number of experts that the router scores, more than E where a device holds only some; None: E
    gathered : number of devices whose tokens meet in these experts (data-parallel attention)

    Raises
    ------
    CostModelError
        when A exceeds E

    Examples
    --------
    >>> mixture = Moe(Mlp(4, 8), experts=8, active=2)
    >>> mixture.params, mixture.active_params  # 8 or 2 experts of 3·4·8, and a router of 4·8
    (800, 224)

    References
    ----------
    Shazeer et al., The sparsely-gated mixture-of-experts layer, 1701.06538, section 2; Fedus et al., Switch
    Transformers, 2101.03961.
    """

    residual = "mlp residual"

    expert: Mlp = field(default_factory=Mlp)
    experts: Number = E
    active: Number = A
    shared: Mlp | None = None
    shared_gate: bool = False
    router_bias: bool = False
    scored: Number | None = None
    gathered: Number = 1

    def __post_init__(self) -> None:
        if is_plain(self.experts, self.active) and self.active > self.experts:
            raise CostModelError(f"experts per token ({self.active}) exceed the experts ({self.experts})")

    @property
    def width(self) -> Number:
        """D."""
        return self.expert.width

    @property
    def _routed(self) -> Number:
        return self.experts if self.scored is None else self.scored

    @property
    def _around(self) -> Number:
        """Router and shared expert: used by every token."""
        shared = 0 if self.shared is None else self.shared.params + self.width * int(self.shared_gate)
        return self.width * self._routed + self._routed * int(self.router_bias) + shared

    @property
    def params(self) -> Number:
        """E·expert + router + shared."""
        return self.experts * self.expert.params + self._around

    @property
    def active_params(self) -> Number:
        """A·expert + router + shared."""
        return self.active * self.expert.params + self._around

    @property
    def matrix_params(self) -> Number:
        """Without biases."""
        return self._matrices_of(self.experts)

    @property
    def active_matrix_params(self) -> Number:
        """Those of A experts, router and shared expert, without biases."""
        return self._matrices_of(self.active)

    def _matrices_of(self, experts: Number) -> Number:
        shared = 0 if self.shared is None else self.shared.matrix_params + self.width * int(self.shared_gate)
        return experts * self.expert.matrix_params + self.width * self._routed + shared

    def matrices(self) -> list[tuple[int, int, int]]:
        """Those of the experts and of the shared one; the router stays apart."""
        shared = [] if self.shared is None else self.shared.matrices()
        return [(inputs, outputs, self.experts) for inputs, outputs, _ in self.expert.matrices()] + shared

    def ledger(self, forward: ForwardPass) -> Ledger:
        """The router sees every token; each token works in A experts, and the experts read are those chosen by any."""
        sizes = forward.sizes | {"D": self.width, "E": self._routed}
        router = contract("B T D, D E -> B T E", sizes=sizes)
        tokens = forward.batch * forward.tokens * self.gathered
        read = distinct_experts(self.experts, self.active, tokens)
        rows = [Row("router", router)]
        if self.router_bias:
            added = elementwise("B T E", int(forward.elementwise), sizes=sizes, gain="E", on_chip=True)
            rows.append(Row("router bias", added))
        for row in self.expert.ledger(replace(forward, batch=1, tokens=1, context=1)).rows:
            rows.append(Row(f"experts: {row.name}", _spread(row.op, tokens * self.active, read)))
        if self.shared is not None:
            rows += [replace(row, name=f"shared: {row.name}") for row in self.shared.ledger(forward).rows]
            if self.shared_gate:
                rows.append(Row("shared gate", contract("B T D, D -> B T", sizes=sizes, on_chip=[0])))
        return Ledger(rows)


def _spread(op: Op, visits: Number, read: Number) -> Op:
    """One token's visit to one expert, times all visits; weights once for each expert that is read."""

    def grown(tensor: Tensor) -> Tensor:
        return replace(tensor, elements=tensor.elements * (read if tensor.role == "weight" else visits))

    return Op(op.flops * visits, tuple(map(grown, op.reads)), tuple(map(grown, op.writes)), op.widths)
