"""Millions of rounds over bigram tables at once, with the distribution of the per-round loop."""

import numpy as np

from costmodel.lab.ragged import checked_ids
from costmodel.lab.speculation.models import checked_tables
from costmodel.lab.speculation.rule import checked_count, residual


class _Sampler:
    """Draws from the rows of a table, many at once: one search in all rows laid end to end."""

    def __init__(self, table: np.ndarray) -> None:
        self.vocab = table.shape[1]
        below = np.cumsum(table, axis=1)
        below /= below[:, -1:]
        self._ends = (below + np.arange(len(table))[:, np.newaxis]).ravel()
        self._last = self.vocab - 1 - np.argmax(table[:, ::-1] > 0, axis=1)  # of each row that can be drawn

    def __call__(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        found = np.searchsorted(self._ends, rows + rng.random(len(rows)), side="right") - rows * self.vocab
        return np.minimum(found, self._last[rows])  # a sum rounded up to the next row


class RoundSimulator:
    """Speculative rounds over bigram tables, vectorised over rounds.

    Parameters
    ----------
    target, draft : (V, V)
    n_draft : γ

    Raises
    ------
    CostModelError
        for tables of two shapes, rows that are not distributions, or a γ that is not a whole number of at least 0

    Examples
    --------
    >>> same = np.full((2, 2), 0.5)
    >>> tokens, counts = RoundSimulator(same, same, 3).rounds(np.zeros(5, int), np.random.default_rng(0))
    >>> tokens.shape, counts
    ((5, 4), array([4, 4, 4, 4, 4]))

    References
    ----------
    Leviathan et al., 2211.17192, algorithm 1.
    """

    def __init__(self, target: np.ndarray, draft: np.ndarray, n_draft: int) -> None:
        self.target, self.draft = checked_tables(target, draft)
        self.n_draft = checked_count("n_draft", n_draft)
        self._draft, self._replace, self._bonus = map(
            _Sampler, (self.draft, residual(self.target, self.draft), self.target)
        )

    def rounds(self, starts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """One round from each start.

        Parameters
        ----------
        starts : (n,) last tokens, 0 to V - 1
        rng : of all draws

        Returns
        -------
        tokens (n, γ + 1), of which each round's first `counts` (n,) are its output and the rest -1

        Raises
        ------
        CostModelError
            for a start that is not such an integer
        """
        before = checked_ids(starts, len(self.target)) if len(starts) else np.zeros(0, int)
        return self._rounds(before, rng)

    def _rounds(self, before: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        tokens = np.full((self.n_draft + 1, len(before)), -1)
        counts = np.full(len(before), self.n_draft + 1)
        alive = np.arange(len(before))
        for step in range(self.n_draft):
            drafted = self._draft(before, rng)
            passed = rng.random(len(before)) * self.draft[before, drafted] < self.target[before, drafted]
            failed = ~passed
            tokens[step, alive[failed]] = self._replace(before[failed], rng)
            counts[alive[failed]] = step + 1
            alive, before = alive[passed], drafted[passed]
            tokens[step, alive] = before
        tokens[self.n_draft, alive] = self._bonus(before, rng)
        return tokens.T, counts

    def sequences(self, start: int, n_tokens: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """n sequences of n_tokens each after one start, and how many rounds they took in all.

        Returns
        -------
        (n, n_tokens) tokens, rounds

        Raises
        ------
        CostModelError
            for a start that is not an integer from 0 to V - 1, or a number that is not an integer of at least 0
        """
        checked_ids([start], len(self.target)), checked_count("n_tokens", n_tokens), checked_count("n", n)
        out = np.empty((n, n_tokens + self.n_draft), int)
        filled, last, rounds = np.zeros(n, int), np.full(n, start), 0
        while (alive := np.flatnonzero(filled < n_tokens)).size:
            tokens, counts = self._rounds(last[alive], rng)
            rounds += len(alive)
            for step in range(self.n_draft + 1):
                has = counts > step
                out[alive[has], filled[alive[has]] + step] = tokens[has, step]
            last[alive] = tokens[np.arange(len(alive)), counts - 1]
            filled[alive] += counts
        return out[:, :n_tokens], rounds
