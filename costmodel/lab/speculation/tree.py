"""Medusa's idea: several heads guess several places ahead at once; their best guesses form a tree, checked in one pass.

The target draws its own token at every node and follows the branch that has it, if there is one. So each token comes
from p whatever the heads say: exact, greedy or sampled. (Cai et al., 2401.10774.)
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from costmodel.common.checks import whole
from costmodel.common.errors import CostModelError
from costmodel.lab.generation import check_room
from costmodel.lab.selection import draw
from costmodel.lab.speculation.generate import SpeculativeRun
from costmodel.lab.speculation.models import Filters, as_tokens
from costmodel.lab.speculation.regression import Regression, read_by_head
from costmodel.lab.speculation.rule import checked_count
from costmodel.lab.transformer import Decoder

Path = tuple[int, ...]


class MedusaHeads:
    """Head j scores the token j places after the next one, from what the target's own head reads.

    Parameters
    ----------
    decoder : the target
    texts : what the heads are trained on, best the target's own; one at least must be longer than n_heads + 1
    n_heads : how many places ahead, at least 0
    options : width, penalty, seed of `Regression`

    Raises
    ------
    CostModelError
        for an n_heads that is not such an integer, texts that are all shorter, ids outside the vocabulary, or options
        that `Regression` refuses

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> heads = MedusaHeads(tiny, [tiny.generate([token], 12).tokens for token in range(8)], 2, width=32)
    >>> run = medusa_generate([3], tiny, heads, 12, (2, 2), np.random.default_rng(0), temperature=0)
    >>> run.tokens == tiny.generate([3], 12).tokens
    True

    References
    ----------
    Cai et al., Medusa, 2401.10774.
    """

    def __init__(self, decoder: Decoder, texts: Sequence[Sequence[int]], n_heads: int, **options: Any) -> None:
        pairs = read_by_head(decoder, texts, checked_count("n_heads", n_heads) + 2)
        one_hot, self.reads = np.eye(decoder.shape.vocab), (decoder.shape.d_model, decoder.shape.vocab)
        self.heads = []
        for ahead in range(2, n_heads + 2):
            x = np.concatenate([read[:-ahead] for _, read in pairs])
            y = one_hot[np.concatenate([ids[ahead:] for ids, _ in pairs])]
            self.heads.append(Regression(x, y, **options))

    def candidates(self, feature: np.ndarray, sizes: Sequence[int]) -> list[list[int]]:
        """The best sizes[j] tokens of head j, best first.

        Parameters
        ----------
        feature : (D,), read where the token before the last was processed
        sizes : branches at each depth, at least 1; at most one for each head

        Raises
        ------
        CostModelError
            for more depths than heads, or a size that is not a positive integer
        """
        self.check(sizes)
        return self.best(feature, sizes)

    def best(self, feature: np.ndarray, sizes: Sequence[int]) -> list[list[int]]:
        """`candidates` of sizes that are checked."""
        scores = [head(feature[np.newaxis])[0] for head in self.heads[: len(sizes)]]
        return [np.argsort(-row, kind="stable")[:size].tolist() for row, size in zip(scores, sizes, strict=True)]

    def check(self, sizes: Sequence[int]) -> None:
        """Refuse a tree that these heads cannot fill."""
        if len(sizes) > len(self.heads):
            raise CostModelError(f"there are {len(self.heads)} heads for {len(sizes)} depths of the tree")
        for size in sizes:
            whole("branches at a depth", size, 1)


def tree_paths(candidates: Sequence[Sequence[int]]) -> list[Path]:
    """Root to leaf, every combination of the candidates of each depth.

    Parameters
    ----------
    candidates : for each depth its guessed ids; none at all leaves the root alone

    Returns
    -------
    one tuple of ids for each leaf, as long as the tree is deep; as many as the product of the depths' sizes

    Examples
    --------
    >>> tree_paths([[7, 8], [9]])
    [(7, 9), (8, 9)]

    References
    ----------
    Cai et al., Medusa, 2401.10774 (tree attention).
    """
    return list(product(*candidates))


def tree_nodes(paths: Sequence[Path]) -> int:
    """Tokens that a tree mask would run, the root among them; one row for each path repeats what paths share.

    Parameters
    ----------
    paths : guessed ids from root to leaf, the root left out

    Returns
    -------
    number of distinct beginnings of the paths, the empty one included [token]

    Examples
    --------
    >>> tree_nodes([(7, 9), (7, 4), (8, 9)]), 3 * 3  # the root, 7, its 9 and 4, 8, its 9; three paths of three
    (6, 9)

    References
    ----------
    Miao et al., SpecInfer, 2305.09781; Cai et al., Medusa, 2401.10774 (tree attention).
    """
    return len({path[:depth] for path in paths for depth in range(len(path) + 1)})


def walk(rows: Mapping[Path, np.ndarray], rng: np.random.Generator) -> list[int]:
    """Tokens along the tree: drawn from p at each node, as long as a branch has them, and one more.

    Parameters
    ----------
    rows : p (V,) after each node, which is named by its path from the root
    """
    tokens: list[int] = []
    while tuple(tokens) in rows:
        tokens.append(int(draw(rows[tuple(tokens)], rng.random())))
    return tokens


def medusa_generate(
    prompt: Sequence[int], decoder: Decoder, heads: MedusaHeads, n_tokens: int, sizes: Sequence[int],
    rng: np.random.Generator, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
    min_p: float | None = None,
) -> SpeculativeRun:  # fmt: skip
    """Continue a prompt by n_tokens, each round checking a whole tree of guesses in one pass of one row per path.

    Parameters
    ----------
    prompt : (P,) ids, at least 1
    decoder : the target
    heads : trained on it
    n_tokens : M
    sizes : branches at each depth, at least 1; () is plain decoding
    rng : of the target's draws
    temperature : T, the number that logits are divided by; 0 is greedy
    top_k, top_p, min_p : as in `sample_next`

    Returns
    -------
    SpeculativeRun with M new tokens; `drafted` is the depth of a round's tree, `accepted` how deep it was followed

    Raises
    ------
    CostModelError
        before any work, for a prompt that is empty or outside the vocabulary, a bad count or setting, more depths than
        heads, heads of a decoder with another D or V, or a last position beyond max_len

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()
    >>> heads = MedusaHeads(tiny, [tiny.generate([token], 12).tokens for token in range(8)], 1, width=32)
    >>> plain, tree = (medusa_generate([3], tiny, heads, 12, sizes, np.random.default_rng(0)) for sizes in ((), (16,)))
    >>> plain.rounds, tree.rounds  # all 16 tokens are guessed, so none is missed: 1 + 5·2 + 1 tokens
    (12, 7)

    References
    ----------
    Cai et al., Medusa, 2401.10774 (tree attention); Miao et al., SpecInfer, 2305.09781 (trees verified in one pass).
    """
    filters, n_tokens = Filters(temperature, top_k, top_p, min_p), checked_count("n_tokens", n_tokens)
    shape, tokens = decoder.shape, as_tokens(prompt, decoder.shape.vocab)
    heads.check(sizes)
    if heads.reads != (shape.d_model, shape.vocab):
        raise CostModelError(f"heads of D, V = {heads.reads} do not fit a decoder of {(shape.d_model, shape.vocab)}")
    check_room(len(tokens), n_tokens, shape.max_len)
    run, cache = SpeculativeRun(tokens, len(tokens)), decoder.new_cache()
    feature: np.ndarray | None = None
    while (left := n_tokens - len(run.new_tokens)) > 0:
        depths = () if feature is None else sizes[: left - 1]
        paths = tree_paths(heads.best(feature, depths) if depths and feature is not None else [])
        pending = run.tokens[cache.length :]
        caches = [cache, *(cache.fork() for _ in paths[1:])]
        read = decoder.hidden_batch([[*pending, *path] for path in paths], caches)
        ends = [hidden[len(pending) - 1 :] for hidden in read]  # of each path: after its root and after each guess
        rows: dict[Path, np.ndarray] = {}
        for path, logits in zip(paths, decoder.logits_of(ends), strict=True):
            for depth, p in enumerate(filters.probs(logits)):
                rows.setdefault(path[:depth], p)
        new = walk(rows, rng)
        passed = tuple(new[:-1])
        taken = next(i for i, path in enumerate(paths) if path[: len(passed)] == passed)
        cache, feature = caches[taken], ends[taken][len(passed)]
        cache.truncate(len(run.tokens) + len(passed))
        run.tokens += new
        run.drafted.append(len(depths))
        run.accepted.append(len(passed))
    return run
