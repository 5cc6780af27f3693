"""Speculative decoding in NumPy: the rule, drafts of several kinds, rounds over tables and decoders, a simulator."""

from costmodel.lab.speculation.drafts import LookupDraft, ModelDraft, Proposal, bigram_table
from costmodel.lab.speculation.expectation import long_run, tokens_per_round
from costmodel.lab.speculation.features import FeatureDraft
from costmodel.lab.speculation.generate import (
    SpeculativeRun,
    speculative_batch,
    speculative_generate,
    speculative_round,
)
from costmodel.lab.speculation.models import CachedDecoder, Filters, TableModel
from costmodel.lab.speculation.rule import (
    acceptance_rate,
    expected_tokens_per_round,
    keep_probabilities,
    residual,
    verify,
)
from costmodel.lab.speculation.simulate import RoundSimulator
from costmodel.lab.speculation.tree import MedusaHeads, medusa_generate, tree_nodes, tree_paths

__all__ = [
    "CachedDecoder", "FeatureDraft", "Filters", "LookupDraft", "MedusaHeads", "ModelDraft", "Proposal",
    "RoundSimulator", "SpeculativeRun", "TableModel", "acceptance_rate", "bigram_table", "expected_tokens_per_round",
    "keep_probabilities", "long_run", "medusa_generate", "residual", "speculative_batch", "speculative_generate",
    "speculative_round", "tokens_per_round", "tree_nodes", "tree_paths", "verify",
]  # fmt: skip
