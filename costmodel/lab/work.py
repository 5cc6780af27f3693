"""Counting what is multiplied, as it is multiplied."""

from dataclasses import dataclass, field


@dataclass
class Work:
    """Running totals of a decoder: FLOPs by step and positions processed.

    A multiply-add is 2 FLOPs; norms, softmax, rotations and activations count 0. Steps bear the names of the ledger's
    rows (query, key, value, scores, values, output, up, gate, down, unembedding).

    Attributes
    ----------
    positions : tokens that went through the layers, summed over passes
    flops_by_step : step -> FLOPs [FLOP]

    Examples
    --------
    >>> work = Work()
    >>> work.count("up", rows=3, inner=4, columns=5)
    >>> work.flops, work.flops_by_step
    (120, {'up': 120})
    """

    positions: int = 0
    flops_by_step: dict[str, int] = field(default_factory=dict)

    def count(self, step: str, *, rows: int, inner: int, columns: int) -> None:
        """Add the 2·rows·inner·columns FLOPs of a product (rows × inner)·(inner × columns)."""
        self.flops_by_step[step] = self.flops_by_step.get(step, 0) + 2 * rows * inner * columns

    @property
    def flops(self) -> int:
        """Σ over the steps [FLOP]."""
        return sum(self.flops_by_step.values())
