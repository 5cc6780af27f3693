"""A tiny language with a known entropy: sentences about animals, in which distant words must agree.

A subject's number and kind decide a verb several words later ("the dogs near a small bird never see …"), and again the
pronoun and the verb after "and". To predict well, a model must remember; how well anything can predict is computed.
"""

from bisect import bisect
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, product
from math import log

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.lab.ragged import checked_ids

NUMBERS = (0, 1)  # one, several: the index into each pair of forms
NOUNS = (("cat", "cats"), ("dog", "dogs"), ("bird", "birds"), ("child", "children"))
ALONE = (("sleeps", "sleep"), ("sings", "sing"), ("runs", "run"))  # verbs without an object
TOWARD = (("sees", "see"), ("chases", "chase"), ("likes", "like"))  # and with one
PRONOUNS = ("it", "they")
DETERMINERS = ({"the": 0.5, "a": 0.5}, {"the": 0.6, "many": 0.4})

HABITS = ((0.7, 0.05, 0.25), (0.25, 0.05, 0.7), (0.1, 0.8, 0.1), (0.2, 0.4, 0.4))
"""How often each kind sleeps, sings and runs."""
WISHES = ((0.5, 0.4, 0.1), (0.2, 0.6, 0.2), (0.8, 0.1, 0.1), (0.2, 0.1, 0.7))
"""How often each kind sees, chases and likes."""
OBJECTS = ((0.05, 0.1, 0.7, 0.15), (0.6, 0.1, 0.05, 0.25), (0.2, 0.2, 0.3, 0.3), (0.4, 0.4, 0.1, 0.1))
"""Whom each kind does it to."""

VOCABULARY = (
    *(".", "the", "a", "many", "small", "big", "that", "near", "never", "and", *PRONOUNS),
    *(form for forms in (NOUNS, ALONE, TOWARD) for pair in forms for form in pair),
)
"""The 32 words by id; id 0 ends a sentence."""
IDS = {word: i for i, word in enumerate(VOCABULARY)}


def _rules() -> dict[str, list[tuple[float, tuple[str, ...]]]]:
    """What each part of a sentence becomes, and how probably; a name that is no part is a word."""
    animals = list(product(NUMBERS, range(len(NOUNS))))
    rules: dict[str, list[tuple[float, tuple[str, ...]]]] = {
        "sentence": [(1 / 8, (f"animal {n} {k}", f"aside {n} {k}", f"act {n} {k}", f"more {n} {k}", "."))
                     for n, k in animals],
        "anyone": [(1 / 8, (f"animal {n} {k}",)) for n, k in animals],
        "adjective": [(0.6, ()), (0.25, ("small",)), (0.15, ("big",))],
        "often": [(0.8, ()), (0.2, ("never",))],
    }  # fmt: skip
    for n, k in animals:
        watchers = [(0.1 / 8, ("that", f"animal {m} {j}", f"toward {m} {j}")) for m, j in animals]
        rules |= {
            f"determiner {n}": [(p, (word,)) for word, p in DETERMINERS[n].items()],
            f"animal {n} {k}": [(1.0, (f"determiner {n}", "adjective", NOUNS[k][n]))],
            f"alone {n} {k}": [(p, (verb[n],)) for p, verb in zip(HABITS[k], ALONE, strict=True)],
            f"toward {n} {k}": [(p, (verb[n],)) for p, verb in zip(WISHES[k], TOWARD, strict=True)],
            f"object {k}": [(OBJECTS[k][j] / 2, (f"animal {m} {j}",)) for m, j in animals],
            f"doing {n} {k}": [(1.0, (f"toward {n} {k}", f"object {k}"))],
            f"aside {n} {k}": [(0.6, ()), (0.2, ("near", "anyone")), (0.1, ("that", f"doing {n} {k}")), *watchers],
            f"act {n} {k}": [(0.5, ("often", f"alone {n} {k}")), (0.5, ("often", f"doing {n} {k}"))],
            f"more {n} {k}": [(0.7, ()), (0.3, ("and", PRONOUNS[n], f"alone {n} {k}"))],
        }
    return rules


RULES = _rules()


@cache
def entropy(part: str = "sentence") -> float:
    """Σ p·(-ln p + Σ entropy(what it becomes)): entropy of a part of a sentence [nat], as one parse fits each text.

    Parameters
    ----------
    part : a key of RULES; anything else is a word, with nothing left to choose

    Returns
    -------
    entropy [nat]

    Examples
    --------
    >>> entropy("cat"), round(entropy("adjective"), 4)
    (0.0, 0.9376)
    """
    choices = RULES.get(part, [])
    return float(sum(p * (-log(p) + sum(entropy(inner) for inner in parts)) for p, parts in choices))


@cache
def mean_length(part: str = "sentence") -> float:
    """Σ p·Σ mean_length(what it becomes): mean number of words of a part of a sentence [token].

    Parameters
    ----------
    part : a key of RULES; anything else is a word, of length 1

    Returns
    -------
    mean length [token]

    Examples
    --------
    >>> mean_length("cat"), round(mean_length("adjective"), 4)
    (1.0, 0.4)
    """
    if part not in RULES:
        return 1.0
    return sum(p * sum(mean_length(inner) for inner in parts) for p, parts in RULES[part])


def entropy_rate() -> float:
    """The least mean loss that any model can have on a long text: entropy/length of a sentence [nat per token].

    Sentences are independent, so the text is a renewal process and its rate is this quotient.

    Returns
    -------
    entropy rate [nat per token]

    Examples
    --------
    >>> round(entropy_rate(), 4), round(log(len(VOCABULARY)), 4)  # against 32 words all equally likely
    (1.3303, 3.4657)

    References
    ----------
    Shannon, A mathematical theory of communication, Bell System Technical Journal 27, 1948, section 7.
    """
    return entropy() / mean_length()


def sample(n_tokens: int, seed: int = 0) -> np.ndarray:
    """A text of so many tokens, from the start of a sentence; the same seed gives the same text.

    Parameters
    ----------
    n_tokens : at least 1; the last sentence is cut where it falls
    seed : of the choices

    Returns
    -------
    (n_tokens,) ids, 0 to 31

    Raises
    ------
    CostModelError
        for n_tokens that is not a positive integer

    Examples
    --------
    >>> words(sample(14))
    'the dogs that chase many small cats never sleep and they sleep . many'
    """
    whole("n_tokens", n_tokens, 1)
    rng = np.random.default_rng(seed)
    text: list[int] = []
    sums = {part: list(accumulate(p for p, _ in choices))[:-1] for part, choices in RULES.items()}
    while len(text) < n_tokens:
        waiting = ["sentence"]
        for draw in rng.random(256).tolist():  # more than the longest sentence has choices
            while waiting and waiting[-1] not in RULES:
                text.append(IDS[waiting.pop()])
            if not waiting:
                break
            part = waiting.pop()
            waiting += reversed(RULES[part][bisect(sums[part], draw)][1])
    return np.array(text[:n_tokens])


def words(ids: Sequence[int]) -> str:
    """The text of token ids, words with spaces between; `token_ids` is the way back.

    Parameters
    ----------
    ids : 0 to 31, the places of words in VOCABULARY

    Returns
    -------
    the text, empty without ids

    Raises
    ------
    CostModelError
        for an id that is not an integer from 0 to 31

    Examples
    --------
    >>> words([2, 12, 20, 0])
    'a cat sleeps .'
    """
    return " ".join(VOCABULARY[i] for i in (checked_ids(ids, len(VOCABULARY)) if len(ids) else ()))


def token_ids(text: str) -> list[int]:
    """The ids of words with spaces between.

    Parameters
    ----------
    text : of words of VOCABULARY, the full stop one of them

    Returns
    -------
    ids, 0 to 31

    Raises
    ------
    CostModelError
        for a word that the language does not have

    Examples
    --------
    >>> token_ids("many dogs run .")
    [3, 15, 25, 0]
    """
    for word in text.split():
        if word not in IDS:
            raise CostModelError(f"the language has no word {word!r}; it has {' '.join(VOCABULARY)}")
    return [IDS[word] for word in text.split()]
