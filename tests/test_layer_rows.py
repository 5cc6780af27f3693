"""Every row of every kind of layer, worked out by hand for sizes no two of which are alike.

A row is its name, how often it occurs, its FLOPs, and the elements it moves between memory and chip, by role.
"""

from dataclasses import replace

import pytest
from sympy import Symbol

import costmodel.layers
from costmodel.common.errors import CostModelError
from costmodel.layers import (
    Attention,
    Embedding,
    GatedDelta,
    LatentAttention,
    LinearAttention,
    Mamba,
    Mamba2,
    Mlp,
    Moe,
    Norm,
    Unembedding,
)
from costmodel.layers._layer import Layer
from costmodel.layers.stated import StatedCache, StatedWeights
from costmodel.passes import ForwardPass

B, T, S = 2, 3, 7
PASS = ForwardPass(B, T, S, causal=False, head="all", elementwise=True)
D, F, N, K, H, V = 11, 13, 6, 2, 5, 23
C, R, U, Q = 17, 4, 9, 19  # latent, rotary part, value width, query latent
I, n, k = 29, 8, 4  # inner width, state, taps
E, A = 10, 3  # experts, and those of one token
X, BT = B * T * D, B * T


def moved(weight: float = 0, activation: float = 0, cache: float = 0, state: float = 0) -> dict[str, float]:
    roles = {"weight": weight, "activation": activation, "cache": cache, "state": state}
    return {role: elements for role, elements in roles.items() if elements}


def attention_rows() -> list:
    return [
        ("query", 1, 2 * BT * D * N * H, moved(D * N * H, X + BT * N * H)),
        ("output gate", 1, 2 * BT * D * N * H, moved(D * N * H, BT * N * H)),
        ("key", 1, 2 * BT * D * K * H, moved(D * K * H, cache=BT * K * H)),
        ("value", 1, 2 * BT * D * K * H, moved(D * K * H, cache=BT * K * H)),
        ("query bias", 1, BT * N * H, moved(N * H)),
        ("key bias", 1, BT * K * H, moved(K * H)),
        ("value bias", 1, BT * K * H, moved(K * H)),
        ("query norm", 1, 4 * BT * N * H, moved(H)),
        ("key norm", 1, 4 * BT * K * H, moved(H)),
        ("query RoPE", 1, 3 * BT * N * H, {}),
        ("key RoPE", 1, 3 * BT * K * H, {}),
        ("sinks", 1, 0, moved(N)),
        ("scores", 1, 2 * BT * S * N * H, moved(activation=BT * N * H, cache=B * S * K * H)),
        ("softmax", 1, 5 * BT * S * N, {}),
        ("values", 1, 2 * BT * S * N * H, moved(activation=BT * N * H, cache=B * S * K * H)),
        ("output", 1, 2 * BT * N * H * D, moved(N * H * D, BT * N * H + X)),
        ("output bias", 1, X, moved(D)),
    ]


def borrowing_rows() -> list:
    without = {"output gate", "key", "value", "key bias", "value bias", "query bias", "key norm", "key RoPE", "sinks"}
    return [row for row in attention_rows() if row[0] not in without | {"output bias"}]


def latent_ends() -> list:
    return [
        ("latent", 1, 2 * BT * D * (C + R), moved(D * (C + R), cache=BT * (C + R))),
        ("latent norm", 1, 4 * BT * C, moved(C)),
        ("query RoPE", 1, 3 * BT * N * R, {}),
        ("key RoPE", 1, 3 * BT * R, {}),
    ]


def latent_output() -> tuple:
    return ("output", 1, 2 * BT * N * U * D, moved(N * U * D, BT * N * U + X))


def absorbed_rows() -> list:
    return [
        ("query down", 1, 2 * X * Q, moved(D * Q, X + BT * Q)),
        ("query norm", 1, 4 * BT * Q, moved(Q)),
        ("query up", 1, 2 * BT * Q * N * (H + R), moved(Q * N * (H + R), BT * Q + BT * N * (H + R))),
        *latent_ends(),
        ("key up, absorbed", 1, 2 * BT * N * H * C, moved(N * H * C, BT * N * C)),
        ("scores", 1, 2 * BT * S * N * (C + R), moved(activation=BT * N * (C + R), cache=B * S * (C + R))),
        ("softmax", 1, 5 * BT * S * N, {}),
        ("values", 1, 2 * BT * S * N * C, moved(activation=BT * N * C)),
        ("value up, absorbed", 1, 2 * BT * N * C * U, moved(N * C * U, BT * N * U)),
        latent_output(),
    ]


def expanded_rows() -> list:
    return [
        ("query", 1, 2 * X * N * (H + R), moved(D * N * (H + R), X + BT * N * (H + R))),
        *latent_ends(),
        ("key up", 1, 2 * B * S * C * N * H, moved(C * N * H, B * S * N * H, B * S * C)),
        ("value up", 1, 2 * B * S * C * N * U, moved(C * N * U, B * S * N * U)),
        ("scores", 1, 2 * BT * S * N * (H + R), moved(activation=(BT + B * S) * N * (H + R))),
        ("softmax", 1, 5 * BT * S * N, {}),
        ("values", 1, 2 * BT * S * N * U, moved(activation=(BT + B * S) * N * U)),
        latent_output(),
    ]


def mlp_rows(hidden: int = F, *, gated: bool = True, bias: bool = True) -> list:
    gate = [("gate", 1, 2 * X * hidden, moved(D * hidden, BT * hidden))] if gated else []
    biases = [("up bias", hidden), *([("gate bias", hidden)] if gated else []), ("down bias", D)]
    return [
        ("up", 1, 2 * X * hidden, moved(D * hidden, X + BT * hidden)),
        *gate,
        ("activation", 1, (5 if gated else 1) * BT * hidden, {}),
        ("down", 1, 2 * X * hidden, moved(D * hidden, X)),
        *([(name, 1, BT * wide, moved(wide)) for name, wide in biases] if bias else []),
    ]


def moe_rows() -> list:
    read = E * (1 - (1 - A / E) ** BT)
    router = [("router", 1, 2 * X * E, moved(D * E, X + BT * E)), ("router bias", 1, BT * E, moved(E))]
    experts = [
        (f"experts: {name}", 1, A * flops, moved(read * tensors.get("weight", 0), A * tensors.get("activation", 0)))
        for name, _, flops, tensors in mlp_rows(bias=False)
    ]
    shared = [(f"shared: {name}", *rest) for name, *rest in mlp_rows(V, bias=False)]
    return [*router, *experts, *shared, ("shared gate", 1, 2 * X, moved(D, BT))]


def mamba_rows() -> list:
    small = I * (k + 1 + n + 2) + (2 * I + D) + (R + 2 * n)  # taps, their bias, A, D, step bias; biases; inner norms
    return [
        ("in", 1, 2 * X * 2 * I, moved(D * 2 * I, X + BT * 2 * I)),
        ("selection", 1, 2 * BT * I * (R + 2 * n), moved(I * (R + 2 * n), BT * (I + R + 2 * n))),
        ("step size", 1, 2 * BT * R * I, moved(R * I, BT * I)),
        ("convolution and scan", 1, 0, moved(small)),
        ("read-out", 1, 2 * BT * I * n, {}),
        ("state", 1, 0, moved(state=2 * B * I * (n + k))),
        ("out", 1, 2 * BT * I * D, moved(I * D, BT * I + X)),
    ]


def mamba2_rows() -> list:
    mixed = N * H + 2 * K * n
    wide = mixed + N * H + N
    return [
        ("in", 1, 2 * X * wide, moved(D * wide, X + BT * wide)),
        ("convolution, scan, norm", 1, 0, moved(mixed * (k + 1) + 3 * N + N * H + wide + D)),
        ("state", 1, 0, moved(state=2 * B * (N * H * n + k * mixed))),
        ("out", 1, 2 * BT * N * H * D, moved(N * H * D, BT * N * H + X)),
    ]


def delta_rows() -> list:
    mixed = 2 * K * H + N * U
    return [
        ("query, key, value", 1, 2 * X * mixed, moved(D * mixed, X + BT * mixed)),
        ("gate", 1, 2 * X * N * U, moved(D * N * U, BT * N * U)),
        ("decay and step", 1, 2 * X * 2 * N, moved(D * 2 * N, BT * 2 * N)),
        ("convolution, decay, norm", 1, 0, moved(mixed * k + 2 * N + U)),
        ("memory", 3, 2 * BT * N * H * U, {}),
        ("state", 1, 0, moved(state=2 * B * (N * H * U + k * mixed))),
        ("out", 1, 2 * BT * N * U * D, moved(N * U * D, BT * N * U + X)),
    ]


def linear_rows() -> list:
    made = 2 * X * N * H
    return [
        ("query", 1, made, moved(D * N * H, X + BT * N * H)),
        ("key", 1, made, moved(D * N * H, BT * N * H)),
        ("value", 1, made, moved(D * N * H, BT * N * H)),
        ("memory", 2, 2 * BT * N * H * H, {}),
        ("state", 1, 0, moved(state=2 * B * N * H * H)),
        ("output", 1, made, moved(D * N * H, BT * N * H + X)),
    ]


EVERYTHING = dict.fromkeys(("qkv_bias", "out_bias", "qk_norm", "sinks", "output_gate"), True)
LATENT = {"latent": C, "rotary": R, "key_width": H, "value_width": U}
KINDS = {
    "attention": (Attention(D, N, K, H, **EVERYTHING), attention_rows()),
    "attention that borrows": (Attention(D, N, K, H, qk_norm=True, borrows_kv=True), borrowing_rows()),
    "latent, absorbed": (LatentAttention(D, N, **LATENT, query_latent=Q, absorbed=True), absorbed_rows()),
    "latent, expanded": (LatentAttention(D, N, **LATENT, absorbed=False), expanded_rows()),
    "mlp": (Mlp(D, F, bias=True), mlp_rows()),
    "plain mlp": (Mlp(D, F, gated=False, bias=True), mlp_rows(gated=False)),
    "mixture": (Moe(Mlp(D, F), E, A, Mlp(D, V), shared_gate=True, router_bias=True), moe_rows()),
    "mamba": (Mamba(D, I, n, k, R, bias=True, inner_norms=True), mamba_rows()),
    "mamba 2": (Mamba2(D, N, H, n, K, k, bias=True), mamba2_rows()),
    "gated delta": (GatedDelta(D, K, N, H, U, k), delta_rows()),
    "linear": (LinearAttention(D, N, H), linear_rows()),
    "norm": (Norm(D, bias=True), [("norm", 1, 4 * X, moved(D, 2 * X)), ("norm bias", 1, X, moved(D))]),
    "embedding": (Embedding(V, D), [("embedding", 1, 0, moved(X, X))]),
    "head": (
        Unembedding(V, D, bias=True),
        [("unembedding", 1, 2 * X * V, moved(D * V, X + BT * V)), ("unembedding bias", 1, BT * V, moved(V))],
    ),
    "stated weights": (StatedWeights(1000), [("weights", 1, 2 * 1000 * BT, moved(1000))]),
    "stated cache": (StatedCache(K, H), [("cache", 1, 0, moved(cache=2 * B * (S + T) * K * H))]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_row(kind: str) -> None:
    layer, rows = KINDS[kind]
    found = layer.ledger(PASS).rows
    assert [row.name for row in found] == [name for name, *_ in rows]
    for row, (_, times, flops, elements) in zip(found, rows, strict=True):
        tensors = [t for t in (*row.op.reads, *row.op.writes) if not t.on_chip]
        assert (row.count, row.op.flops) == (times, pytest.approx(flops, rel=1e-12)), row.name
        sums = {role: sum(t.elements for t in tensors if t.role == role) for role in {t.role for t in tensors}}
        assert sums == pytest.approx(elements, rel=1e-12), row.name


ELEMENTWISE = ("norm", "bias", "RoPE", "softmax", "activation")


@pytest.mark.parametrize("kind", KINDS)
def test_unless_asked_elementwise_work_is_not_counted(kind: str) -> None:
    layer, _ = KINDS[kind]
    quiet, counted = (layer.ledger(ForwardPass(B, T, S, elementwise=on)).rows for on in (False, True))
    assert [row.name for row in quiet] == [row.name for row in counted]
    for row, same in zip(quiet, counted, strict=True):
        assert row.op.flops == (0 if row.name.endswith(ELEMENTWISE) else same.op.flops), row.name
        assert row.op.bytes == same.op.bytes, row.name


PAIRS = {  # of 3 queries at the end of a context of 7: keys 1 to 5, 1 to 6, 1 to 7
    "all": ({}, 5 + 6 + 7, 7),
    "a window of 4": ({"window": 4}, 4 * 3, 6),  # keys 2 to 7
    "a window of 6": ({"window": 6}, 5 + 6 + 6, 7),
    "chunks of 3": ({"chunk": 3}, 2 + 3 + 1, 4),  # positions 4, 5 | 4, 5, 6 | 7
}


@pytest.mark.parametrize("seen", PAIRS)
def test_only_pairs_that_the_mask_leaves_cost_work(seen: str) -> None:
    options, pairs, keys = PAIRS[seen]
    rows = Attention(D, N, K, H, **options).ledger(ForwardPass(B, T, S, elementwise=True))
    assert rows["scores"].flops == rows["values"].flops == 2 * B * pairs * N * H
    assert rows["softmax"].flops == 5 * B * pairs * N
    for row in ("scores", "values"):
        assert sum(t.elements for t in rows[row].op.reads if t.role == "cache") == B * keys * K * H


@pytest.mark.parametrize(("absorbed", "scored", "summed"), [(True, C + R, C), (False, H + R, U)])
def test_latents_leave_out_the_same_pairs(absorbed: bool, scored: int, summed: int) -> None:
    rows = LatentAttention(D, N, **LATENT, absorbed=absorbed).ledger(ForwardPass(B, T, S))
    pairs = 5 + 6 + 7
    assert (rows["scores"].flops, rows["values"].flops) == (2 * B * pairs * N * scored, 2 * B * pairs * N * summed)


def test_experts_where_the_tokens_of_several_devices_meet() -> None:
    alone, met = (Moe(Mlp(D, F), E, A, gathered=devices).ledger(PASS) for devices in (1, 3))
    assert met["experts: up"].flops == 3 * alone["experts: up"].flops
    read = sum(t.elements for t in met["experts: up"].op.reads if t.role == "weight")
    assert read == pytest.approx(D * F * E * (1 - (1 - A / E) ** (3 * BT)))
    with pytest.raises(CostModelError, match=r"^experts per token \(11\) exceed the experts \(10\)$"):
        Moe(Mlp(D, F), E, 11)


MATRICES = {
    "attention": [(D, N * H), (D, N * H), (D, K * H), (D, K * H), (N * H, D)],
    "latent, expanded": [(D, N * (H + R)), (D, C + R), (C, N * H), (C, N * U), (N * U, D)],
    "mlp": [(D, F), (D, F), (F, D)],
    "mamba": [(D, 2 * I), (I, R + 2 * n), (R, I), (I, D)],
    "mamba 2": [(D, 2 * N * H + 2 * K * n + N), (N * H, D)],
    "gated delta": [(D, 2 * K * H + N * U), (D, N * U), (D, 2 * N), (N * U, D)],
    "linear": [(D, N * H)] * 3 + [(N * H, D)],
    "norm": [],
    "head": [(D, V)],
}


@pytest.mark.parametrize("kind", MATRICES)
def test_matrices_are_the_weights_with_two_sides(kind: str) -> None:
    layer: Layer = KINDS[kind][0]
    assert layer.matrices() == [(inputs, outputs, 1) for inputs, outputs in MATRICES[kind]]


def test_matrices_of_a_mixture_are_those_of_its_experts_and_of_the_shared_one() -> None:
    experts, shared = ([(D, w, times), (D, w, times), (w, D, times)] for w, times in ((F, E), (V, 1)))
    assert KINDS["mixture"][0].matrices() == experts + shared
    assert Moe(Mlp(D, F), E, A).matrices() == experts


def test_what_is_stored_and_kept() -> None:
    kept = {name: layer.cache_elements(S) for name, (layer, _) in KINDS.items()}
    states = {
        "mamba": I * (n + k),
        "mamba 2": N * H * n + k * (N * H + 2 * K * n),
        "gated delta": N * H * U + k * (2 * K * H + N * U),
        "linear": N * H * H,
    }
    caches = {
        "attention": 2 * K * H * S,
        "stated cache": 2 * K * H * S,
        "latent, absorbed": (C + R) * S,
        "latent, expanded": (C + R) * S,
    }
    assert {name: elements for name, elements in kept.items() if elements} == states | caches
    assert {name: layer.state_elements for name, (layer, _) in KINDS.items() if layer.state_elements} == states


def test_what_names_its_operands() -> None:
    assert StatedWeights(1000).ledger(PASS)["weights"].op.operands == ("params", "")
    assert StatedCache(K, H).ledger(PASS)["cache"].op.operands == ("B S K H", "B T K H")
    assert LinearAttention(D, N, H).ledger(PASS)["state"].op.operands == ("state", "state")
    assert Embedding(V, D).ledger(PASS)["embedding"].op.operands == ("B T D", "B T D")
    assert KINDS["attention"][0].ledger(PASS)["sinks"].op.operands == ("N", "")
    assert KINDS["mixture"][0].ledger(PASS)["router bias"].op.operands == ("[B T E], E", "[B T E]")
    assert KINDS["mamba"][0].ledger(PASS)["convolution and scan"].op.operands == ("convolution and scan", "")


def test_kinds_are_imported_when_asked_for() -> None:
    for name in costmodel.layers.__all__:
        assert getattr(costmodel.layers, name).__name__ == name
        assert costmodel.layers.__getattr__("Moe") is Moe
    with pytest.raises(AttributeError, match=r"^module 'costmodel.layers' has no attribute 'Nothing'$"):
        costmodel.layers.Nothing  # noqa: B018


def test_latents_store_the_same_matrices_whichever_way_they_are_used() -> None:
    stored = [LatentAttention(D, N, **LATENT, query_latent=Q, absorbed=way).matrices() for way in (None, True, False)]
    assert stored[0] == stored[1] == stored[2]
    assert (
        sum(a * b * count for a, b, count in stored[0]) == LatentAttention(D, N, **LATENT, query_latent=Q).matrix_params
    )


def test_latents_turn_what_is_rotated_and_nothing_else() -> None:
    named = lambda rotary: [  # noqa: E731
        row.name for row in LatentAttention(D, N, **LATENT | {"rotary": rotary}).ledger(PASS).rows if "RoPE" in row.name
    ]
    assert (named(0), named(1), named(R)) == ([], ["query RoPE", "key RoPE"], ["query RoPE", "key RoPE"])


def test_latents_are_kept_where_that_takes_as_many_flops() -> None:
    """pairs·(2·C − H − U) = (S − T)·C·(H + U) to the FLOP: 6·6 against 1·6·6."""
    layer = LatentAttention(D, N, latent=6, rotary=R, key_width=3, value_width=3)
    tie = ForwardPass(1, 2, 3, causal=False)
    assert layer.absorbs(tie)
    assert layer.absorbs(ForwardPass(1, 6, Symbol("S", positive=True)))  # taken as long: 6·6 against 36
    assert not layer.absorbs(ForwardPass(1, 7, Symbol("S", positive=True)))
    letters = {"latent": Symbol("C", positive=True)}
    assert not replace(layer, **letters).absorbs(tie)
    assert not replace(layer, key_width=Symbol("H", positive=True)).absorbs(tie)


def test_a_shared_expert_with_and_without_a_gate() -> None:
    gated, bare = (Moe(Mlp(D, F), E, A, shared=Mlp(D, 7), shared_gate=gate) for gate in (True, False))
    routed = 3 * D * F
    assert bare.active_matrix_params == A * routed + D * E + 3 * D * 7
    assert gated.active_matrix_params == bare.active_matrix_params + D
    assert gated.matrix_params == E * routed + D * E + 3 * D * 7 + D
