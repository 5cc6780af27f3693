import pytest
from sympy import limit, oo, simplify

from costmodel import attention, mlp, transformer
from costmodel.common.errors import CostModelError
from costmodel.layers import Attention, Embedding, Mlp, Norm, Unembedding
from costmodel.passes import ForwardPass
from costmodel.symbols import B, D, F, H, K, N, S, T, V, W, b_a, b_kv, b_w


def equal(a: object, b: object) -> bool:
    return simplify(a - b) == 0


def test_gated_mlp() -> None:
    assert mlp().flops == 6 * B * T * D * F
    assert equal(mlp().bytes, 4 * B * T * D + 4 * B * T * F + 6 * D * F)
    assert limit(limit(mlp().intensity, D, oo), F, oo) == B * T


def test_plain_mlp() -> None:
    assert mlp(gated=False).flops == 4 * B * T * D * F
    assert equal(mlp(gated=False).bytes, 4 * B * T * D + 2 * B * T * F + 4 * D * F)


def test_multi_head_attention() -> None:
    assert attention().flops == 4 * B * S * T * D
    assert equal(attention().bytes, 4 * B * S * D + 4 * B * T * D)
    assert equal(attention().intensity, S * T / (S + T))
    assert equal(attention().at(T=1).intensity, S / (S + 1))
    assert equal(attention().subs({T: S}).intensity, S / 2)
    assert B not in attention().intensity.free_symbols


def test_grouped_attention_intensity_tends_to_2n_over_k_bytes() -> None:
    decode = attention(kv_heads=K, head_width=H).at(T=1).sized()
    assert equal(limit(decode.intensity, S, oo), 2 * N / (K * b_kv))
    assert limit(attention(kv_heads=K, head_width=H).at(T=1).intensity, S, oo) == N / K


def test_grouped_with_k_equal_n_is_multi_head_and_k_1_is_multi_query() -> None:
    grouped = attention(kv_heads=K, head_width=H)
    multi_head = attention(head_width=H)
    assert equal(grouped.subs({K: N}).bytes, multi_head.bytes)
    assert equal(grouped.subs({K: N}).flops, multi_head.flops)
    assert equal(grouped.at(K=1).bytes, 4 * B * H * S + 4 * B * H * N * T)


def test_scores_never_leave_the_chip() -> None:
    rows = attention()
    assert rows["softmax"].bytes == 0
    assert rows["scores"].op.operands[1] == "[B K G T S]"
    assert all("S" not in t.axes.split() or t.on_chip or t.role == "cache" for t in rows["values"].op.reads)


def test_causal_pairs() -> None:
    causal = attention(causal=True)
    assert equal(causal.flops, 4 * B * D * (T * S - T * (T - 1) / 2))
    assert equal(causal.at(T=1).flops, attention().at(T=1).flops)
    half = causal.subs({T: S}).flops / attention().subs({T: S}).flops
    assert limit(half, S, oo) == pytest.approx(0.5)
    assert equal(causal.bytes, attention().bytes)


@pytest.mark.parametrize("context", range(1, 12))
@pytest.mark.parametrize("window", [1, 2, 3, 5, 100])
def test_window_pairs_equal_a_mask_that_is_counted(context: int, window: int) -> None:
    for tokens in range(1, context + 1):
        mask = [[q - window < k <= q for k in range(context)] for q in range(context - tokens, context)]
        seen = ForwardPass(1, tokens, context)
        assert seen.pairs(window) == sum(map(sum, mask))
        assert seen.keys(window) == sum(map(any, zip(*mask, strict=True)))


@pytest.mark.parametrize("context", range(1, 14))
@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 100])
def test_chunk_pairs_equal_a_mask_that_is_counted(context: int, chunk: int) -> None:
    for tokens in range(1, context + 1):
        queries = range(context - tokens, context)
        mask = [[k <= q and k // chunk == q // chunk for k in range(context)] for q in queries]
        seen = ForwardPass(1, tokens, context)
        assert seen.pairs(chunk=chunk) == sum(map(sum, mask))
        assert seen.keys(chunk=chunk) == sum(map(any, zip(*mask, strict=True)))
        letters = ForwardPass().pairs(chunk=chunk)
        assert letters.subs({T: tokens, S: context}) == seen.pairs(chunk=chunk)


def test_chunks_cap_the_cache_and_the_reads() -> None:
    layer = Attention(64, 4, 2, 16, chunk=8)
    assert layer.cache_elements(50) == 2 * 2 * 16 * 8
    assert layer.ledger(ForwardPass(1, 1, 50)).elements("cache") == 2 * 2 * 16 * (50 - 48) + 2 * 2 * 16


def test_window_wider_than_the_context_is_full_attention() -> None:
    full, windowed = Attention(64, 4, 2, 16), Attention(64, 4, 2, 16, window=1000)
    for forward in (ForwardPass(2, 1, 50), ForwardPass(2, 50, 50), ForwardPass(2, 7, 50)):
        assert windowed.ledger(forward).flops == full.ledger(forward).flops
        assert windowed.ledger(forward).bytes == full.ledger(forward).bytes
    assert windowed.cache_elements(50) == full.cache_elements(50)


def test_window_caps_the_cache() -> None:
    assert str(Attention(window=W).cache_elements(S)) == "2*H*K*Min(S, W)"
    assert Attention(64, 4, 2, 16, window=8).cache_elements(50) == 2 * 2 * 16 * 8


def test_parameters_of_each_layer() -> None:
    assert equal(Attention().params, 2 * D * N * H + 2 * D * K * H)
    assert equal(Attention(qkv_bias=True).params - Attention().params, (N + 2 * K) * H)
    assert equal(Attention(out_bias=True).params - Attention().params, D)
    assert equal(Attention(qk_norm=True).params - Attention().params, 2 * H)
    assert equal(Attention(qkv_bias=True, out_bias=True, qk_norm=True).matrix_params, Attention().params)
    assert Mlp().params == 3 * D * F
    assert Mlp(gated=False).params == 2 * D * F
    assert equal(Mlp(bias=True).params, 3 * D * F + 2 * F + D)
    assert equal(Mlp(gated=False, bias=True).params, 2 * D * F + F + D)
    assert Mlp(bias=True).matrix_params == 3 * D * F
    assert (Norm().params, Norm().matrix_params) == (D, 0)


def test_embedding_is_gathered_and_the_head_streamed() -> None:
    decode = ForwardPass(tokens=1)
    assert Embedding().params == V * D
    assert Embedding().ledger(decode).flops == 0
    assert Embedding().ledger(decode).sized()["embedding"].bytes == B * D * b_w + B * D * b_a
    assert Unembedding().ledger(decode).elements("weight") == V * D
    assert Unembedding(tied=True).params == 0


def test_head_on_the_last_token_or_on_all() -> None:
    last, every = (Unembedding().ledger(ForwardPass(head=head)) for head in ("last", "all"))
    assert last.flops == 2 * B * D * V
    assert every.flops == 2 * B * T * D * V


def test_elementwise_work_counts_only_when_asked() -> None:
    for layer in (Norm(), Mlp(bias=True), Attention(qkv_bias=True, qk_norm=True)):
        quiet, counted = layer.ledger(ForwardPass()), layer.ledger(ForwardPass(elementwise=True))
        assert quiet.bytes == counted.bytes
        assert (counted.flops - quiet.flops).subs(dict.fromkeys((B, T, S, D, F, N, K, H), 8)) > 0
    assert Norm().ledger(ForwardPass()).flops == 0


def test_query_heads_must_be_a_multiple() -> None:
    with pytest.raises(CostModelError, match=r"query heads \(32\) must be a multiple of key/value heads \(5\)"):
        Attention(heads=32, kv_heads=5)


@pytest.mark.parametrize(("options", "message"), [
    ({"kv_heads": 0, "heads": 4}, "kv_heads must be a whole number, at least 1, got 0"),
    ({"window": -4}, "window must be a whole number, at least 1, got -4"),
    ({"chunk": 2.5}, r"chunk must be a whole number, at least 1, got 2\.5"),
    ({"window": 4, "chunk": 8}, "a layer has a window or a chunk, got both: 4 and 8"),
])  # fmt: skip
def test_impossible_attention(options: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=f"^{message}$"):
        Attention(**options)


def test_impossible_windows() -> None:
    with pytest.raises(CostModelError, match="window must be a whole number, at least 1, got -4"):
        transformer(windows=[(-4, 2)])
    with pytest.raises(CostModelError, match="layers must be a whole number, at least 0, got -2"):
        transformer(windows=[(4, -2)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "first"}, "head must be 'last' or 'all', got 'first'"),
        ({"batch": 0}, "batch must be positive, got 0"),
        ({"tokens": 9, "context": 8}, r"tokens \(9\) are part of the context \(8\)"),
    ],
)
def test_impossible_passes(options: dict, message: str) -> None:
    with pytest.raises(CostModelError, match=message):
        ForwardPass(**options)
