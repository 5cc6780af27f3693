"""Published measurements of speculative decoding, to stand beside the formulas; nothing here is fitted."""

from dataclasses import dataclass

from costmodel.speculation.acceptance import limits_of_text, most_tokens_of_mixtures
from costmodel.speculation.ideal import ideal_speedup, implied_cost


@dataclass(frozen=True)
class LeviathanRow:
    """T5-XXL (11B) with a smaller T5 as draft, batch 1 on one TPU v4, wall time against T5X.

    Attributes
    ----------
    task, draft, temperature, gamma, alpha, speedup : as published; alpha is an average, to two digits
    """

    task: str
    draft: str
    temperature: int
    gamma: int
    alpha: float
    speedup: float

    @property
    def estimate(self) -> float:
        """E(α, γ): the speed-up of a draft that costs nothing, if acceptances were independent."""
        return ideal_speedup(self.alpha, self.gamma, 0)

    @property
    def ceiling(self) -> float:
        """1 + α·γ: the most that easy and hard rounds allow, if α is their average."""
        return most_tokens_of_mixtures(self.alpha, self.gamma)

    @property
    def most_of_text(self) -> float:
        """The most that any text allows, if α is the average over its tokens."""
        return limits_of_text(self.alpha, self.gamma)[1]

    @property
    def implied_cost(self) -> float:
        """The c that would explain the measurement under independence."""
        return implied_cost(self.speedup, self.alpha, self.gamma)

    @property
    def beats_estimate(self) -> bool:
        """Whether it is faster than independence allows even a free draft."""
        return self.speedup > self.estimate


LEVIATHAN_SOURCE = "Leviathan, Kalman, Matias, 2211.17192, table 2"
LEVIATHAN = tuple(
    LeviathanRow(*row)
    for row in (
        ("EnDe", "T5-small", 0, 7, 0.75, 3.4),
        ("EnDe", "T5-base", 0, 7, 0.80, 2.8),
        ("EnDe", "T5-large", 0, 7, 0.82, 1.7),
        ("EnDe", "T5-small", 1, 7, 0.62, 2.6),
        ("EnDe", "T5-base", 1, 5, 0.68, 2.4),
        ("EnDe", "T5-large", 1, 3, 0.71, 1.4),
        ("CNNDM", "T5-small", 0, 5, 0.65, 3.1),
        ("CNNDM", "T5-base", 0, 5, 0.73, 3.0),
        ("CNNDM", "T5-large", 0, 3, 0.74, 2.2),
        ("CNNDM", "T5-small", 1, 5, 0.53, 2.3),
        ("CNNDM", "T5-base", 1, 3, 0.55, 2.2),
        ("CNNDM", "T5-large", 1, 3, 0.56, 1.7),
    )
)


@dataclass(frozen=True)
class ChenRow:
    """Chinchilla (70B) with a 4B draft, K = γ = 4, batch 1 on 16 TPU v4.

    Attributes
    ----------
    run, ms_per_token, speedup : as published
    """

    run: str
    ms_per_token: float
    speedup: float

    @property
    def tokens_per_round(self) -> float:
        """(target step + γ draft steps)/(time per token): what the measured times imply."""
        return (CHEN_TARGET_MS + CHEN_GAMMA * CHEN_DRAFT_MS) / self.ms_per_token


CHEN_SOURCE = "Chen et al., 2302.01318, table 1"
CHEN_TARGET_MS, CHEN_DRAFT_MS, CHEN_GAMMA = 14.1, 1.8, 4
CHEN = (
    ChenRow("XSum, nucleus 0.8", 7.52, 1.92),
    ChenRow("XSum, greedy", 7.00, 2.01),
    ChenRow("HumanEval, nucleus 0.95, T = 0.8", 5.73, 2.46),
)

# (system, setting, times as fast, source)
LATER_RESULTS = (
    ("Medusa-1", "Vicuna-7B; 13B", "2.18; 2.33", "Cai et al., 2401.10774"),
    ("Medusa-2", "Vicuna-7B; 13B; 33B", "2.83; 2.83; 2.35", "Cai et al., 2401.10774"),
    ("EAGLE", "LLaMA2-Chat 70B", "2.7 to 3.5", "Li et al., 2401.15077"),
    ("EAGLE", "LLaMA2-Chat 13B, HumanEval, T = 0", "3.76", "Li et al., 2401.15077"),
    ("EAGLE", "Vicuna-7B, batch 1; 2; 3; 4", "2.90; 2.87; 2.65; 2.76", "Li et al., 2401.15077"),
    ("EAGLE", "LLaMA2-Chat 70B, batch 1; 2; 3; 4", "3.01; 2.81; 2.50; 2.40", "Li et al., 2401.15077"),
    ("vLLM, draft model", "Llama-3-70B on 4 H100, 1 request/s", "1.5", "vLLM blog, 17 October 2024"),
    ("vLLM, prompt lookup", "the same, CNN/DM", "2.8", "vLLM blog, 17 October 2024"),
    ("vLLM, draft; lookup", "the same, many requests/s", "1/1.4; 1/1.8", "vLLM blog, 17 October 2024"),
    ("gpt-fast", "CodeLlama-34B with 7B", "2", "PyTorch blog, gpt-fast, 2023"),
)
