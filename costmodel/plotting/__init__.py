"""Figures in one call each; `make images` writes them all to images/."""

from costmodel.plotting.architectures import (
    cache_per_sequence,
    capacity_against_traffic,
    local_and_global,
    who_shares_keys_and_values,
)
from costmodel.plotting.beyond import (
    cache_against_state,
    recall_against_pairs,
    steps_that_cost_the_same,
    what_a_sequence_keeps,
)
from costmodel.plotting.cache import cumulative_flops
from costmodel.plotting.counting import attention_against_mlp, naive_against_cached, where_the_work_goes
from costmodel.plotting.diagrams import (
    cache_against_no_cache,
    draft_verify_replace,
    prefill_and_decode,
    sampling_pipeline,
)
from costmodel.plotting.diagrams_serving import block_table, prompt_order, static_against_continuous
from costmodel.plotting.evidence import (
    forecast_held_out,
    measured_against_bound,
    utilisation_by_software_and_hardware,
    where_the_time_goes,
)
from costmodel.plotting.intensity import intensity_against_batch, roofline
from costmodel.plotting.latency import latency_and_throughput, memory_against_capacity, trade_off
from costmodel.plotting.memory import cache_against_context, conversations_that_fit
from costmodel.plotting.sampling import temperature_and_top_p, top_k_against_top_p

FIGURES = {
    figure.__name__: figure
    for figure in (
        prefill_and_decode, cache_against_no_cache, sampling_pipeline, draft_verify_replace, prompt_order, block_table,
        static_against_continuous, intensity_against_batch, roofline, where_the_work_goes, attention_against_mlp,
        naive_against_cached, latency_and_throughput, memory_against_capacity, trade_off,
        cumulative_flops, cache_against_context, conversations_that_fit, temperature_and_top_p, top_k_against_top_p,
        who_shares_keys_and_values, capacity_against_traffic, local_and_global, cache_per_sequence,
        cache_against_state, recall_against_pairs, steps_that_cost_the_same, what_a_sequence_keeps,
        measured_against_bound, utilisation_by_software_and_hardware, forecast_held_out, where_the_time_goes,
    )
}  # fmt: skip

__all__ = ["FIGURES", *FIGURES]
