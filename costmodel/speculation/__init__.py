"""Speculative decoding as algebra: tokens per pass, cost of a round from the ledgers, when guesses pay."""

from costmodel.speculation.acceptance import (
    expected_tokens,
    implied_alpha,
    limits_of_text,
    most_tokens_of_mixtures,
    sensitivity,
)
from costmodel.speculation.cost import Speculation
from costmodel.speculation.ideal import best_gamma_formula, ideal_best_gamma, ideal_speedup, implied_cost
from costmodel.speculation.rounds import draft_ledger, run_passes, verify_ledger

__all__ = [
    "Speculation", "best_gamma_formula", "draft_ledger", "expected_tokens", "ideal_best_gamma", "ideal_speedup",
    "implied_alpha", "implied_cost", "limits_of_text", "most_tokens_of_mixtures", "run_passes", "sensitivity",
    "verify_ledger",
]  # fmt: skip
