"""Figures in one call each; `make images` writes them all to images/."""

from costmodel.plotting.architectures import (
    cache_per_sequence,
    capacity_against_traffic,
    local_and_global,
    who_shares_keys_and_values,
)
from costmodel.plotting.batching import slots_over_time, use_against_slots, waiting_against_load
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
from costmodel.plotting.paging import blocks_of_four, where_memory_goes
from costmodel.plotting.prompt_caching import cost_against_requests, hits_against_capacity
from costmodel.plotting.pruning import depth_against_width, loss_before_and_after_repair, what_each_part_adds
from costmodel.plotting.quantization import (
    measured_against_bytes,
    output_error_against_bits,
    ruler_per_row,
    what_fewer_bits_buy,
)
from costmodel.plotting.sampling import temperature_and_top_p, top_k_against_top_p
from costmodel.plotting.serving import goodput_against_load
from costmodel.plotting.speculation import (
    measured_against_estimate,
    speedup_against_batch,
    speedup_against_gamma,
    tokens_per_pass,
    where_draft_and_target_agree,
)
from costmodel.plotting.whatif import elasticity_bars, pareto_front, plan_costs, solved_batch, spread_over_devices

FIGURES = {
    figure.__name__: figure
    for figure in (
        prefill_and_decode, cache_against_no_cache, sampling_pipeline, draft_verify_replace, prompt_order, block_table,
        static_against_continuous, intensity_against_batch, roofline, where_the_work_goes, attention_against_mlp,
        naive_against_cached, latency_and_throughput, memory_against_capacity, trade_off,
        cumulative_flops, cache_against_context, conversations_that_fit, temperature_and_top_p, top_k_against_top_p,
        who_shares_keys_and_values, capacity_against_traffic, local_and_global, cache_per_sequence,
        cache_against_state, recall_against_pairs, steps_that_cost_the_same, what_a_sequence_keeps,
        solved_batch, elasticity_bars, pareto_front, spread_over_devices, plan_costs,
        where_draft_and_target_agree, tokens_per_pass, speedup_against_gamma, speedup_against_batch,
        measured_against_estimate,
        slots_over_time, use_against_slots, waiting_against_load, where_memory_goes, blocks_of_four,
        goodput_against_load, cost_against_requests, hits_against_capacity,
        what_each_part_adds, loss_before_and_after_repair, depth_against_width,
        ruler_per_row, output_error_against_bits, what_fewer_bits_buy, measured_against_bytes,
        measured_against_bound, utilisation_by_software_and_hardware, forecast_held_out, where_the_time_goes,
    )
}  # fmt: skip

__all__ = ["FIGURES", *FIGURES]
