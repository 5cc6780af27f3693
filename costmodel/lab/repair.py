"""Repair after pruning: two recipes for a fast architecture, on the same few tokens, compared.

Train the fast architecture from scratch, or begin with what pruning left of a larger model and let that model teach it
(Muralidharan et al., Minitron, 2407.14679).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.language import VOCABULARY, sample
from costmodel.lab.pruning import prune
from costmodel.lab.training import distil, mean_loss, train
from costmodel.lab.transformer import Decoder
from costmodel.lab.weights import random_weights

RATE, FRESH_RATE = 5e-3, 1e-2  # to repair, and to learn from nothing, which takes longer steps
BATCH, LENGTH = 16, 24  # windows for each step, and tokens in each


@dataclass(frozen=True)
class Recipes:
    """Mean losses of one small architecture on held-out text [nat per token].

    Attributes
    ----------
    params : of the small architecture
    original : of the model it was cut from
    cut : right after pruning
    distilled : after steps towards the original's logits
    retrained : after as many steps towards the text
    scratch : after as many from random weights
    """

    params: int
    original: float
    cut: float
    distilled: float
    retrained: float
    scratch: float


def language_model(steps: int = 200, seed: int = 0) -> Decoder:
    """A decoder of 42,272 weights that has learned the tiny language: D = 32, L = 4, N = K = 4, F = 64, gated.

    Examples
    --------
    >>> language_model(steps=1).params
    42272
    """
    decoder = TinyDecoder(
        vocab=len(VOCABULARY), d_model=32, n_heads=4, n_layers=4, max_len=64, seed=seed, d_ff=64, gated=True,
        norm_gain=True, rope_theta=1e4,
    )  # fmt: skip
    train(decoder, sample(60_000, seed), steps=steps, batch=BATCH, length=LENGTH, rate=FRESH_RATE)
    return decoder


def compare_recipes(parent: Decoder, text: np.ndarray, held_out: np.ndarray, *, steps: int, **kept: Any) -> Recipes:
    """Cut a parent down, repair it in two ways, and train its like from scratch: same text, windows and steps.

    Parameters
    ----------
    parent : stays as it is
    text : (n,) ids to repair and to train with
    held_out : (m,) ids to measure on
    steps : of each training
    kept : layers, heads, neurons or channels, for `prune`

    Returns
    -------
    Recipes
    """
    cut = prune(parent, **kept)
    distilled, retrained = (prune(cut) for _ in range(2))
    scratch = Decoder(cut.shape, random_weights(cut.shape, seed=1))
    train(distilled, text, steps=steps, batch=BATCH, length=LENGTH, rate=RATE, loss=distil(parent))
    train(retrained, text, steps=steps, batch=BATCH, length=LENGTH, rate=RATE)
    train(scratch, text, steps=steps, batch=BATCH, length=LENGTH, rate=FRESH_RATE)
    return Recipes(cut.params, *(mean_loss(model, held_out) for model in (parent, cut, distilled, retrained, scratch)))
