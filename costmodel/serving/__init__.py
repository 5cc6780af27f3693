"""Serving: real traffic on a deployment, event by event, with step times from the cost model."""

from costmodel.serving.costs import PassCosts
from costmodel.serving.interval import interval_formulas
from costmodel.serving.policy import Policy, Slo
from costmodel.serving.results import ServingResult
from costmodel.serving.simulate import simulate
from costmodel.serving.trace import Trace, block_hit_ratio

__all__ = ["PassCosts", "Policy", "ServingResult", "Slo", "Trace", "block_hit_ratio", "interval_formulas", "simulate"]
