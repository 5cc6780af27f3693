"""Parallelism: what devices hold adds up to the whole, what they send follows the textbook, one device is no device."""

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import simplify

from costmodel import Deployment, accelerator, load
from costmodel.common.errors import CostModelError
from costmodel.layers import Attention, GatedDelta, LatentAttention, LinearAttention, Mamba, Mamba2, Mlp, Moe
from costmodel.layers._layer import Layer
from costmodel.model import transformer
from costmodel.parallel import Parallel
from costmodel.parallel.collectives import all_gather, all_to_all, collective, ring_all_reduce, tree_all_reduce
from costmodel.parallel.device import device_pass, device_share
from costmodel.parallel.shard import kv_heads_per_device, part_of
from costmodel.passes import ForwardPass
from costmodel.symbols import B, D, K, L, S, devices

H100 = accelerator("h100-sxm")
LLAMA, LLAMA_70B = load("llama-3-8b"), load("llama-3-70b")


def test_what_a_collective_sends_is_the_textbooks() -> None:
    n, payload = devices, B * D
    ring = collective("ring", "B D", payload, ring_all_reduce(n))
    assert simplify(ring.sent - 2 * (2 * (n - 1) / n * payload)) == 0  # two bytes an element
    assert simplify(collective("gather", "B D", payload, all_gather(n)).sent - 2 * (n - 1) / n * payload) == 0
    assert simplify(collective("all", "B D", payload, all_to_all(n)).sent - 2 * (n - 1) / n * payload) == 0
    assert collective("tree", "B D", payload, tree_all_reduce(n)).sent == 4 * payload
    for several in range(2, 20):
        assert ring_all_reduce(several)[1] == 2 * (several - 1)
        assert tree_all_reduce(several)[1] == 2 * ceil(log2(several))


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_a_ring_sends_what_playing_it_sends(n: int) -> None:
    """A ring all-reduce played out, chunk by chunk: the sums are right, and each device sent what the formula says."""
    values = [[float(device * n + chunk) for chunk in range(n)] for device in range(n)]
    wanted = [sum(values[device][chunk] for device in range(n)) for chunk in range(n)]
    sent = [0] * n
    for step in range(2 * (n - 1)):
        moved = [(d, (d - step) % n, values[d][(d - step) % n]) for d in range(n)]
        for device, chunk, value in moved:
            neighbour = (device + 1) % n
            values[neighbour][chunk] = value + (values[neighbour][chunk] if step < n - 1 else 0)
            sent[device] += 1
    assert all(row == wanted for row in values)
    share, messages = ring_all_reduce(n)
    assert sent == [messages] * n
    assert messages == share * n


WHOLE_BY_EVERY_DEVICE = {  # parameters that every device keeps; everything else is divided
    "attention": (Attention(64, 8, 4, 16, qkv_bias=True, qk_norm=True), 2 * 16),
    "few heads": (Attention(64, 8, 2, 16), 0),
    "mlp": (Mlp(64, 96), 0),
    "latent": (LatentAttention(64, 8, 32, 4, 16, 16), 64 * 36 + 32),
    "experts": (Moe(Mlp(64, 96), 8, 2, Mlp(64, 32)), 64 * 8),
    "mamba": (Mamba(64, 128, 16, 4, 8, inner_norms=True), 8 + 2 * 16),
    "linear": (LinearAttention(64, 8, 16), 0),
    "delta": (GatedDelta(64, 4, 8, 16, 16), 16),
}


@pytest.mark.parametrize("name", WHOLE_BY_EVERY_DEVICE)
@pytest.mark.parametrize("t", [2, 4])
def test_parts_add_up_to_the_whole(name: str, t: int) -> None:
    layer, kept = WHOLE_BY_EVERY_DEVICE[name]
    part = part_of(layer, Parallel(tensor=t))
    if name == "few heads" and t > 2:
        kept = 2 * 64 * 16  # one key and one value head on each device, so each is kept by two
        assert t * part.params - layer.params == (t - 2) * kept
        return
    assert t * part.params - layer.params == (t - 1) * kept
    if name not in ("latent", "experts"):
        assert t * part.cache_elements(100) == layer.cache_elements(100)


def test_a_latent_is_kept_whole_by_every_device() -> None:
    layer = LatentAttention(64, 8, 32, 4, 16, 16)
    assert part_of(layer, Parallel(tensor=8)).cache_elements(100) == layer.cache_elements(100) == 3600


def test_groups_of_a_state_space_layer_are_shared_when_few() -> None:
    layer = Mamba2(64, 8, 16, 32, 2, 4)
    assert part_of(layer, Parallel(tensor=2)).groups == 1
    assert part_of(layer, Parallel(tensor=8)).groups == 1


@pytest.mark.parametrize("layer", [Attention(64, 8, 8, 16), Mlp(64, 96), LinearAttention(64, 8, 16)])
def test_work_adds_up_too(layer: Layer) -> None:
    forward = ForwardPass(3, 5, 17)
    part = part_of(layer, Parallel(tensor=4))
    assert 4 * part.ledger(forward).flops == layer.ledger(forward).flops


def test_work_of_experts_adds_up_over_data_parallel_groups() -> None:
    layer = Moe(Mlp(64, 96), 8, 2)
    whole, part = layer.ledger(ForwardPass(8, 1, 1)), part_of(layer, Parallel(data=4, expert=4))
    shared = part.ledger(ForwardPass(2, 1, 1))  # each group brings two of the eight sequences
    experts = lambda ledger: sum(row.flops for row in ledger.rows if row.name.startswith("experts"))  # noqa: E731
    weights = lambda ledger: sum(  # noqa: E731
        t.elements for row in ledger.rows if row.name.startswith("experts") for t in row.op.reads if t.role == "weight"
    )
    assert 4 * experts(shared) == experts(whole)
    assert 4 * weights(shared) == pytest.approx(weights(whole), rel=1e-12)


def test_published_cache_per_device_with_fewer_heads_than_devices() -> None:
    """huggingface/transformers#48566: K = 8 over 16 devices is one head each, never none."""
    assert kv_heads_per_device(8, 32) == 1
    one = Deployment(LLAMA_70B, H100, parallel=Parallel(tensor=16)).cache_bytes(1)
    assert one == 40_960
    assert 16 * one == 2 * LLAMA_70B.cache_bytes(1) == 655_360


@given(st.integers(1, 512), st.integers(1, 16_000), st.sampled_from(["llama-3-8b", "mixtral-8x7b", "deepseek-v2"]))
def test_one_device_is_no_parallelism(batch: int, context: int, name: str) -> None:
    plain, one = Deployment(load(name), H100), Deployment(load(name), H100, parallel=Parallel(tensor=1, replicas=1))
    assert plain.decode(batch, context) == one.decode(batch, context)
    assert plain.prefill(context) == one.prefill(context)


def test_replicas_multiply_throughput_and_nothing_else() -> None:
    one, four = (Deployment(LLAMA, H100, parallel=Parallel(replicas=n)).decode(16, 4096) for n in (1, 4))
    assert four.seconds_per_token == one.seconds_per_token
    assert four.tokens_per_s == pytest.approx(4 * one.tokens_per_s, rel=1e-12)
    assert four.memory_bytes == one.memory_bytes


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.integers(1, 64), st.integers(1, 8000))
def test_symbols_then_numbers_is_numbers(t: int, stages: int, batch: int, context: int) -> None:
    spread = Parallel(tensor=t, pipeline=stages)
    d = Deployment(LLAMA, H100, parallel=spread)
    formula = d.decode(B, S).seconds_per_token
    assert float(formula.subs({B: batch, S: context})) == pytest.approx(
        float(d.decode(batch, context).seconds_per_token), rel=1e-12
    )


def test_communication_is_visible_in_rows() -> None:
    d = Deployment(LLAMA, H100, parallel=Parallel(tensor=8))
    ledger = d.part.decode(16, 4096)
    named = {row.name: row for row in ledger.rows if row.sent != 0}
    assert set(named) == {
        "embedding all-reduce", "attention all-reduce", "mlp all-reduce", "logits all-gather"
    }  # fmt: skip
    assert named["mlp all-reduce"].sent == 32 * 2 * 7 * 16 * 4096 * 2 // 8
    assert "sent" in ledger.table().header
    assert "sent" not in LLAMA.decode(1, 1).table().header
    step = d.decode(16, 4096)
    alone = max(step.timing.compute_seconds, step.timing.memory_seconds)
    assert step.seconds_per_token == pytest.approx(alone + ledger.sent / 450e9, rel=1e-12)
    hidden = Deployment(LLAMA, H100, parallel=Parallel(tensor=8, hidden=True)).decode(16, 4096)
    assert hidden.seconds_per_token == pytest.approx(alone, rel=1e-12)


def test_messages_take_time_however_short() -> None:
    slow = Deployment(LLAMA, H100, parallel=Parallel(tensor=8, seconds_per_message=1e-3)).decode(1, 1024)
    assert slow.bound == "communication"
    ring = slow.timing.communication_seconds
    tree = Deployment(LLAMA, H100, parallel=Parallel(tensor=8, seconds_per_message=1e-3, all_reduce="tree"))
    assert tree.decode(1, 1024).timing.communication_seconds < ring


def test_stages_hold_a_share_and_hand_over() -> None:
    whole, split = LLAMA_70B, device_share(LLAMA_70B, Parallel(pipeline=4))
    layers = sum(layer.params * count for block, count in whole.blocks for layer in block.layers)
    assert split.params == layers // 4 + 128_256 * 8192 + 8192  # and the head with its norm
    assert 4 * split.cache_elements(1000) == whole.cache_elements(1000)
    passed = device_pass(whole, Parallel(pipeline=4)).decode(8, 1000)
    assert passed["stage send"].sent == 3 * 8 * 8192 * 2
    assert passed.flops == whole.decode(8, 1000).flops
    assert passed.bytes == whole.decode(8, 1000).bytes


def test_a_tied_head_is_stored_again_in_the_last_stage() -> None:
    tied = transformer(V=1000, D=64, F=96, N=4, K=4, H=16, L=4, tied_head=True)
    assert device_share(tied, Parallel(pipeline=2)).params == (tied.params - 1000 * 64 - 64) // 2 + 1000 * 64 + 64


def test_attention_by_data_keeps_a_latent_once_per_group() -> None:
    deepseek = load("deepseek-v3")
    h200 = accelerator("h200")
    by_tensor = Deployment(deepseek, h200, parallel=Parallel(tensor=8, expert=8))
    by_data = Deployment(deepseek, h200, parallel=Parallel(data=8, expert=8))
    assert by_tensor.cache_bytes(1000) == by_data.cache_bytes(1000)
    cache = [d.memory_bytes(64, 4096) - d.weight_bytes for d in (by_tensor, by_data)]
    assert cache[0] == 8 * cache[1]
    rows = [
        row.name.removeprefix("block: ").removeprefix("moe: ")
        for row in by_data.part.decode(8, 1).rows
        if row.sent != 0
    ]
    assert any("dispatch" in name for name in rows)
    assert any("combine" in name for name in rows)


def test_the_whole_fits_where_one_device_does_not() -> None:
    assert Deployment(LLAMA_70B, H100, weights="bf16").wall(1, 1) == "weights"
    eight = Deployment(LLAMA_70B, H100, weights="bf16", parallel=Parallel(tensor=8))
    assert eight.largest_batch(8192) > 100
    two = Deployment(LLAMA_70B, H100, weights="bf16", parallel=Parallel(data=8, tensor=2))
    assert two.largest_batch(1024) % 8 == 0


@pytest.mark.parametrize(
    ("spread", "message"),
    [
        (lambda: Parallel(tensor=0), "tensor must be a whole number, at least 1, got 0|tensor must be a whole number"),
        (lambda: Parallel(tensor=2, expert=4), "expert must divide the tensor·data = 2 devices"),
        (lambda: Parallel(all_reduce="star"), "star"),
        (lambda: Parallel(seconds_per_message=-1), "seconds_per_message must be at least 0, got -1"),
        (
            lambda: device_pass(LLAMA, Parallel(tensor=3)),
            r"query heads \(32\) must be a multiple of the 3 devices|vocab",
        ),
        (lambda: device_share(LLAMA, Parallel(pipeline=5)), r"layers \(32\) must be a multiple of the 5 devices"),
        (lambda: part_of(Layer(), Parallel(tensor=2)), "no rule"),
        (lambda: device_pass(load("mixtral-8x7b"), Parallel(data=4, expert=2)), "expert must be 1 or tensor"),
        (lambda: collective("sum", "B T D", 8, (-1, 2)), "sum: devices must be at least 1"),
        (lambda: kv_heads_per_device(8, 12), "one must be a multiple of the other"),
        (lambda: Deployment(LLAMA, H100, textbook=True, parallel=Parallel(tensor=2)), "know one device"),
        (
            lambda: Deployment(LLAMA, accelerator("tpu-v4"), parallel=Parallel(tensor=2)).decode(1, 1),
            "^tpu-v4 has no interconnect on record, so devices that share a model cannot be timed$",
        ),
        (
            lambda: Deployment(LLAMA, H100, parallel=Parallel(tensor=6, pad=True)).decode(1, 1),
            "pad=True rounds up other sizes",
        ),
    ],
)
def test_refusals(spread: object, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        spread()


def test_padding_is_explicit() -> None:
    padded = device_share(LLAMA, Parallel(pipeline=5, pad=True))
    assert padded.params
    assert part_of(Mlp(64, 100), Parallel(tensor=8, pad=True)).hidden == 13


def test_a_letter_for_key_value_heads_is_one_head_at_least() -> None:
    assert kv_heads_per_device(K, 16).subs(K, 32) == 2
    assert kv_heads_per_device(K, 16).subs(K, 8) == kv_heads_per_device(8, devices).subs(devices, 16) == 1
    assert kv_heads_per_device(K, 1) == K


def test_with_every_size_a_letter() -> None:
    spread = Parallel(tensor=devices)
    part = device_pass(transformer(norms=False), spread)
    held = part.params.subs(kv_heads_per_device(K, devices), K / devices)  # at least as many heads as devices
    assert simplify(devices * held - transformer(norms=False).params) == 0
    sent = part.decode(B, S)["mlp all-reduce"].sent
    assert simplify(sent - 4 * B * D * L * (devices - 1) / devices) == 0


def test_one_device_holds_and_does_everything() -> None:
    assert device_pass(LLAMA, Parallel()) is LLAMA
    assert device_share(LLAMA, Parallel()) is LLAMA
    assert Parallel(data=2).communication_seconds(LLAMA.decode(1, 1), accelerator("tpu-v4")) == 0


def test_the_parts_of_a_split_layer_count_what_they_do() -> None:
    part = device_pass(load("mixtral-8x7b"), Parallel(tensor=2))
    whole = load("mixtral-8x7b")
    assert part.active_params < part.params
    assert part.matrix_params < part.params
    assert 2 * part.matrix_params - whole.matrix_params == 32 * 4096 * 8  # both devices keep every router


def test_without_expert_parallelism_groups_send_every_token_everywhere() -> None:
    rows = [row.name for row in device_pass(load("mixtral-8x7b"), Parallel(data=2, tensor=2)).decode(4, 1024).rows]
    assert "expert all-gather" in rows
    assert "expert reduce-scatter" in rows
    assert not any("dispatch" in name for name in rows)


def test_the_larger_end_is_what_the_fullest_stage_holds() -> None:
    small = {"V": 100, "D": 64, "F": 128, "N": 4, "K": 4, "H": 16, "L": 4}
    first = device_share(transformer(**small, max_len=512), Parallel(pipeline=2))  # a table of positions comes first
    assert (len(first.before), first.after) == (2, ())
    last = device_share(transformer(**small), Parallel(pipeline=2))
    assert (last.before, len(last.after)) == ((), 3)
