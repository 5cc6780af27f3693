"""What gives next-token distributions: a bigram table, or a decoder whose cache is rolled back to what still holds."""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.cache import KVCache
from costmodel.lab.filters import checked_share, checked_temperature, top_k_limit
from costmodel.lab.ragged import checked_ids
from costmodel.lab.sampling import candidates
from costmodel.lab.speculation.rule import checked_distribution
from costmodel.lab.transformer import Decoder

Requests = Mapping[int, tuple[Sequence[int], int]]  # sequence's number -> (its tokens, for how many of the last)


@dataclass(frozen=True)
class Filters:
    """Sampling settings, applied alike to target and draft: temperature, top-k, top-p, min-p (see `lab.sampling`).

    Attributes
    ----------
    temperature : T, the number that logits are divided by; 0 is greedy
    top_k : number of tokens left; None or below 1 keeps all
    top_p, min_p : 0 to 1; None keeps all

    Raises
    ------
    CostModelError
        for a temperature below 0 or infinite, a top_k that is no integer, or a top_p or min_p outside 0 to 1

    Examples
    --------
    >>> logits = np.log([[0.5, 0.3, 0.2]])
    >>> Filters(top_k=2).probs(logits).round(3), Filters(temperature=0).probs(logits)
    (array([[0.625, 0.375, 0.   ]]), array([[1., 0., 0.]]))
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        checked_temperature(self.temperature)
        top_k_limit(self.top_k, 1)
        for name, value in (("top_p", self.top_p), ("min_p", self.min_p)):
            if value is not None:
                checked_share(name, value)

    def probs(self, logits: np.ndarray) -> np.ndarray:
        """Filtered distributions (rows, V) of logits (rows, V); at temperature 0 all on the greedy token."""
        probs = np.zeros(logits.shape)
        for row, out in zip(logits, probs, strict=True):
            ids, kept = candidates(row, self.temperature, self.top_k, self.top_p, min_p=self.min_p)
            out[ids] = kept
        return probs


class TableModel:
    """A bigram table: row x is the distribution after token x.

    Parameters
    ----------
    table : (V, V)
    filters : applied to every row, with its logarithms as logits

    Raises
    ------
    CostModelError
        for a table that is not V x V, or a row that is no distribution

    Examples
    --------
    >>> table = [[0.6, 0.4], [0.25, 0.75]]
    >>> TableModel(table, Filters(top_k=1)).after({0: ([1, 0, 1], 2)})[0]  # after 0, and after 1
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, table: np.ndarray, filters: Filters) -> None:
        table = checked_distribution("a bigram table", table)
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise CostModelError(f"a bigram table must be V x V, got shape {table.shape}")
        self.passes = 0
        if filters != Filters():
            with np.errstate(divide="ignore"):
                table = filters.probs(np.log(table))
        self.table = table

    @property
    def vocab(self) -> int:
        """V."""
        return len(self.table)

    def after(self, requests: Requests) -> dict[int, np.ndarray]:
        """The distributions (n, V) after each of a sequence's last n tokens."""
        self.passes += 1
        return {slot: self.table[list(tokens[-n:])] for slot, (tokens, n) in requests.items()}


class CachedDecoder:
    """A decoder and one cache for each sequence; tokens that turn out otherwise are forgotten before the next pass.

    Parameters
    ----------
    decoder : runs the passes
    filters : from logits to distributions

    Attributes
    ----------
    passes : made so far
    features : for each sequence, what the head read (D,) at every token that is cached

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> model = CachedDecoder(tiny, Filters())
    >>> p, before = model.after({0: ([1, 2, 3, 4], 1)}), tiny.work.positions
    >>> p = model.after({0: ([1, 2, 3, 9, 5], 2)})  # 4 turned out to be 9: 1, 2, 3 stay, 9 and 5 are run
    >>> p[0].shape, tiny.work.positions - before
    ((2, 16), 2)
    """

    def __init__(self, decoder: Decoder, filters: Filters) -> None:
        self.decoder, self.filters, self.passes = decoder, filters, 0
        self.features: dict[int, list[np.ndarray]] = {}
        self._held: dict[int, tuple[KVCache, list[int]]] = {}

    @property
    def vocab(self) -> int:
        """V."""
        return self.decoder.shape.vocab

    def after(self, requests: Requests) -> dict[int, np.ndarray]:
        """The distributions (n, V) after each of a sequence's last n tokens, all sequences in one pass.

        A cache keeps the tokens that it shares with the sequence (`KVCache.truncate`); only the others are run.
        """
        caches, rows = [], []
        for slot, (tokens, n) in requests.items():
            cache, held = self._held.setdefault(slot, (self.decoder.new_cache(), []))
            kept = min(shared_prefix(held, tokens), len(tokens) - n)
            cache.truncate(kept)
            del held[kept:], self.features.setdefault(slot, [])[kept:]
            caches.append(cache)
            rows.append(list(tokens[kept:]))
        hidden = self.decoder.hidden_batch(rows, caches)
        logits = self.decoder.logits_of(hidden)
        self.passes += 1
        found = {}
        for (slot, (_, n)), row, read, out in zip(requests.items(), rows, hidden, logits, strict=True):
            self._held[slot][1].extend(row)
            self.features[slot].extend(read)
            found[slot] = self.filters.probs(out[-n:])
        return found


def shared_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many first tokens two sequences have in common.

    Examples
    --------
    >>> shared_prefix([1, 2, 3], [1, 2, 4, 5])
    2
    """
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def checked_tables(target: np.ndarray, draft: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two bigram tables, when they have one vocabulary."""
    p, q = (TableModel(table, Filters()).table for table in (target, draft))
    if p.shape != q.shape:
        raise CostModelError(f"tables must have one shape, got {p.shape} and {q.shape}")
    return p, q


def as_tokens(start: int | Sequence[int], vocab: int) -> list[int]:
    """A prompt, or the one token that it is, when all ids are 0 to V - 1."""
    tokens = start if isinstance(start, Sized) else [start]
    if not len(tokens):
        raise CostModelError("prompt is empty; give at least one token")
    return checked_ids(tokens, vocab).tolist()


def next_token_model(source: np.ndarray | Decoder, filters: Filters) -> TableModel | CachedDecoder:
    """A table or a decoder as a source of distributions."""
    return CachedDecoder(source, filters) if isinstance(source, Decoder) else TableModel(source, filters)
