"""Speculative decoding as algebra: tokens per pass, cost of a round from the ledgers, when guesses pay."""

from costmodel.speculation.acceptance import (
    best_gamma_formula,
    expected_tokens,
    ideal_best_gamma,
    ideal_speedup,
    implied_alpha,
    implied_cost,
    limits_of_text,
    most_tokens_of_mixtures,
    sensitivity,
)
from costmodel.speculation.cost import Speculation, draft_ledger, run_passes, verify_ledger

__all__ = [
    "Speculation", "best_gamma_formula", "draft_ledger", "expected_tokens", "ideal_best_gamma", "ideal_speedup",
    "implied_alpha", "implied_cost", "limits_of_text", "most_tokens_of_mixtures", "run_passes", "sensitivity",
    "verify_ledger",
]  # fmt: skip
