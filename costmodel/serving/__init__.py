"""Serving: real traffic on a deployment, event by event, with step times from the cost model."""

from costmodel.serving.arrivals import burst_arrivals, poisson_arrivals, synthetic_trace
from costmodel.serving.costs import PassCosts
from costmodel.serving.interval import interval_formulas
from costmodel.serving.policy import Policy, Slo
from costmodel.serving.readers import read_azure, read_mooncake, read_trace
from costmodel.serving.results import ServingResult
from costmodel.serving.simulate import simulate
from costmodel.serving.study import Point, serving_study
from costmodel.serving.trace import Trace, block_hit_ratio

__all__ = [
    "PassCosts", "Point", "Policy", "ServingResult", "Slo", "Trace", "block_hit_ratio", "burst_arrivals",
    "interval_formulas", "poisson_arrivals", "read_azure", "read_mooncake", "read_trace", "serving_study", "simulate",
    "synthetic_trace",
]  # fmt: skip
