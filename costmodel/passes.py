"""What one forward pass is asked to do: how many sequences, how many new tokens, over how much context."""

from dataclasses import dataclass

from costmodel.common.checks import is_real
from costmodel.common.errors import CostModelError
from costmodel.exact import Number, is_open, is_plain, quotient, smallest, whole_times
from costmodel.symbols import B, S, T


@dataclass(frozen=True)
class ForwardPass:
    """One pass over `tokens` new tokens of each of `batch` sequences, which attend to `context` tokens in all.

    Attributes
    ----------
    batch : B [sequence]
    tokens, context : T and S [token]; S includes the T tokens being processed
    causal : whether a kernel skips the masked (query, key) pairs; if not, all T·S pairs are computed
    head : "last" (logits for one position per sequence) or "all"
    elementwise : whether norms, softmax, RoPE, activations, biases and residuals count FLOPs

    Raises
    ------
    CostModelError
        for another head, sizes that are not positive, and more tokens than context

    Examples
    --------
    >>> ForwardPass(batch=1, tokens=4, context=4).pairs()  # a causal prefill of 4: 1 + 2 + 3 + 4
    10
    >>> ForwardPass(batch=1, tokens=1, context=1024).pairs()  # a decode step
    1024
    """

    batch: Number = B
    tokens: Number = T
    context: Number = S
    causal: bool = True
    head: str = "last"
    elementwise: bool = False

    def __post_init__(self) -> None:
        if self.head not in ("last", "all"):
            raise CostModelError(f"head must be 'last' or 'all', got {self.head!r}")
        for name in ("batch", "tokens", "context"):
            value = getattr(self, name)
            if not is_open(value) and not (is_real(value) and value > 0):
                raise CostModelError(f"{name} must be positive, got {value!r}")
        if is_plain(self.tokens, self.context) and self.tokens > self.context:
            raise CostModelError(
                f"tokens ({self.tokens}) are part of the context ({self.context}) and cannot exceed it"
            )

    @property
    def sizes(self) -> dict[str, Number]:
        """The axes B, T and S of this pass."""
        return {"B": self.batch, "T": self.tokens, "S": self.context}

    def keys(self, window: Number | None = None, chunk: Number | None = None) -> Number:
        """Keys read per sequence: S; min(S, W + T − 1) under a sliding window of W; under chunks of c, those since the
        chunk of the first query began.
        """
        if chunk is not None:
            return self.context - chunk * whole_times(self.context - self.tokens, chunk)
        return self.context if window is None else smallest(self.context, window + self.tokens - 1)

    def pairs(self, window: Number | None = None, chunk: Number | None = None) -> Number:
        """(query, key) pairs computed per sequence and head.

        All: T·keys. Causal: T·S − T(T−1)/2; under a window each query sees at most W keys, itself included, so
        Σ min(i, W) over the last T positions i; under chunks it sees its own chunk so far.

        Examples
        --------
        >>> ForwardPass(tokens=4, context=4).pairs(), ForwardPass(tokens=4, context=4, causal=False).pairs()
        (10, 16)
        >>> ForwardPass(tokens=4, context=4).pairs(window=2), ForwardPass(tokens=1, context=9).pairs(window=2)
        (7, 2)
        >>> ForwardPass(tokens=5, context=5).pairs(chunk=3)
        9
        """
        if not self.causal:
            return self.tokens * self.keys(window, chunk)
        if chunk is not None:
            if is_plain(self.tokens) and self.tokens == 1:
                return self.keys(chunk=chunk)
            return _seen_in_chunks(self.context, chunk) - _seen_in_chunks(self.context - self.tokens, chunk)
        if window is None:
            return self.tokens * self.context - _triangle(self.tokens - 1)
        if is_plain(self.tokens) and self.tokens == 1:
            return smallest(self.context, window)
        return _seen(self.context, window) - _seen(self.context - self.tokens, window)


def _triangle(n: Number) -> Number:
    """1 + 2 + … + n = n(n + 1)/2."""
    return quotient(n * (n + 1), 2)


def _seen(positions: Number, window: Number) -> Number:
    """Σ min(i, W) for i = 1 … positions: n·m − m(m−1)/2 with m = min(n, W)."""
    m = smallest(positions, window)
    return positions * m - _triangle(m - 1)


def _seen_in_chunks(positions: Number, chunk: Number) -> Number:
    """Σ ((i − 1) mod c + 1) for i = 1 … positions: whole chunks, and a part of one."""
    chunks = whole_times(positions, chunk)
    return chunks * _triangle(chunk) + _triangle(positions - chunks * chunk)
