from pathlib import Path

import numpy as np
import pytest

from costmodel import load
from costmodel.common.errors import ConfigError, CostModelError
from costmodel.common.gguf_file import BLOCKS, GGUFFile, GGUFTensor, read_gguf
from costmodel.lab.decoder import TinyDecoder
from costmodel.lab.llama_gguf import decoder_from_gguf
from costmodel.lab.tokenizer import tokenizer_from_gguf
from costmodel.lab.transformer import Decoder

gguf = pytest.importorskip("gguf", reason="the package gguf, of the extra 'lab', is not installed")

OPTIONS = {"vocab": 24, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_len": 40, "n_kv_heads": 2, "d_ff": 64}
SHAPE = TinyDecoder(
    **OPTIONS, gated=True, norm_gain=True, rope_theta=50_000.0, norm_eps=2**-20, dtype=np.float32, tied=False
)
BYTES = ["a", "b", "c", "Ġ", "Ċ"]  # as byte-level BPE writes a, b, c, space and newline


def metadata() -> dict[str, object]:
    return {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.context_length": 40,
        "llama.embedding_length": 32,
        "llama.feed_forward_length": 64,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.attention.layer_norm_rms_epsilon": 2**-20,
        "llama.rope.freq_base": 50_000.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": ["<|end|>", *BYTES, "ab", "abc", "Ġa"],
        "tokenizer.ggml.token_type": [3, 1, 1, 1, 1, 1, 1, 1, 1],
        "tokenizer.ggml.merges": ["a b", "ab c", "Ġ a"],
        "tokenizer.ggml.eos_token_id": 0,
    }


def tensors(decoder: Decoder) -> dict[str, np.ndarray]:
    found = {
        "token_embd.weight": decoder.weights.embedding,
        "output_norm.weight": decoder.weights.final_gain,
        "output.weight": decoder.weights.head.values.T,
    }
    for i, layer in enumerate(decoder.weights.layers):
        parts = {"attn_q": layer.qkv.part("query"), "attn_k": layer.qkv.part("key"), "attn_v": layer.qkv.part("value")}
        parts |= {"attn_output": layer.output.values, "ffn_up": layer.up.part("up"), "ffn_gate": layer.up.part("gate")}
        parts |= {"ffn_down": layer.down.values, "attn_norm": layer.attention_gain, "ffn_norm": layer.mlp_gain}
        found |= {f"blk.{i}.{name}.weight": part.T for name, part in parts.items()}
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def write(path: Path, values: dict[str, object], arrays: dict[str, np.ndarray], kinds: dict | None = None) -> Path:
    """A GGUF file written by the reference implementation."""
    writer = gguf.GGUFWriter(path, str(values["general.architecture"]))
    add = {str: writer.add_string, int: writer.add_uint32, float: writer.add_float32, list: writer.add_array}
    for key, value in values.items():
        if key != "general.architecture":
            add[type(value)](key, value)
    for name, array in arrays.items():
        kind = (kinds or {}).get(name)
        stored = array if kind is None else gguf.quants.quantize(array, kind)
        writer.add_tensor(name, stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "small.gguf", metadata(), tensors(SHAPE))


def test_a_decoder_comes_back_from_its_file(path: Path) -> None:
    decoder = decoder_from_gguf(path)
    assert decoder.shape == SHAPE.shape
    assert decoder.params == SHAPE.params == read_gguf(path).params
    np.testing.assert_array_equal(decoder.weights.memory, SHAPE.weights.memory)
    assert decoder.generate([1, 2], 9).tokens == SHAPE.generate([1, 2], 9).tokens


def test_without_an_output_matrix_the_head_is_tied(tmp_path: Path) -> None:
    arrays = {name: array for name, array in tensors(SHAPE).items() if name != "output.weight"}
    decoder = decoder_from_gguf(write(tmp_path / "tied.gguf", metadata(), arrays))
    assert decoder.shape.tied
    assert decoder.params == SHAPE.params - 24 * 32
    np.testing.assert_array_equal(decoder.weights.head.values, SHAPE.weights.embedding.T)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_1"])
def test_tensors_are_dequantized(tmp_path: Path, kind: str) -> None:
    kind, name = gguf.GGMLQuantizationType[kind], "blk.0.ffn_down.weight"
    array = tensors(SHAPE)[name]
    file = read_gguf(write(tmp_path / "q.gguf", metadata(), tensors(SHAPE), {name: kind}))
    expected = gguf.quants.dequantize(gguf.quants.quantize(array, kind), kind)
    np.testing.assert_array_equal(file.array(name), expected)
    assert file.array(name).dtype == np.float32
    np.testing.assert_allclose(file.array(name), array, atol=0.2)


def test_the_header_is_that_of_the_reference_reader(path: Path) -> None:
    mine, theirs = read_gguf(path), gguf.GGUFReader(path)
    for key, value in mine.metadata.items():
        assert theirs.fields[key].contents() == value
    assert [(t.name, t.data_offset) for t in theirs.tensors] == [(t.name, t.start) for t in mine.tensors.values()]


def test_stored_bytes_are_those_of_the_reference_table(path: Path) -> None:
    for kind, sizes in BLOCKS.items():
        assert sizes == gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
    assert read_gguf(path).weight_bytes == sum(int(t.n_bytes) for t in gguf.GGUFReader(path).tensors)


def test_both_towers_read_the_same_header(path: Path) -> None:
    model, decoder = load(path), decoder_from_gguf(path)
    assert model.params == decoder.params == SHAPE.params
    assert model.weight_bytes() == 4 * SHAPE.params
    assert model.cache_bytes(9, cache="fp32") == decoder.new_cache(capacity=9).nbytes
    assert (model.tied_head, model.positions) == (False, 40)


def test_a_file_is_known_by_its_first_bytes_too(path: Path) -> None:
    assert load(path.rename(path.with_suffix(".bin"))).params == SHAPE.params


def test_a_quantized_file_is_sized_by_what_it_takes(tmp_path: Path) -> None:
    kind, name = gguf.GGMLQuantizationType["Q4_1"], "blk.0.ffn_down.weight"
    quantized = load(write(tmp_path / "q.gguf", metadata(), tensors(SHAPE), {name: kind}))
    saved = 32 * 64 * 4 - 32 * 64 // 32 * 20
    assert quantized.weight_bytes() == 4 * SHAPE.params - saved
    assert quantized.weight_bytes("bf16") == 2 * SHAPE.params


def test_text_becomes_tokens_and_text_again(path: Path) -> None:
    tokenizer = tokenizer_from_gguf(read_gguf(path))
    assert tokenizer.encode("abc ab<|end|>\n") == [7, 4, 6, 0, 5]
    assert tokenizer.decode([7, 4, 6, 0, 5]) == "abc ab\n"
    assert tokenizer.decode([7, 4, 6, 0, 5], markers=True) == "abc ab<|end|>\n"
    assert (tokenizer.end, tokenizer.encode("")) == (0, [])


def changed(**values: object) -> dict[str, object]:
    """The metadata with keys (dots written as two underscores) replaced, or left out for None."""
    found = metadata() | {key.replace("__", "."): value for key, value in values.items()}
    return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (changed(general__architecture="qwen2"), "general.architecture must be 'llama', got 'qwen2'"),
        (changed(llama__block_count=None), "llama.block_count is missing"),
        (changed(llama__block_count=0), "llama.block_count must be a positive integer, got 0"),
        (changed(llama__block_count=3), "tensor 'blk.2.attn_norm.weight' is missing"),
        (changed(llama__block_count=4_000_000_000), "more than there are tensors"),
        (changed(llama__attention__head_count_kv=3), "n_heads must be a multiple of n_kv_heads, got 4 and 3"),
        (changed(llama__attention__head_count_kv=1), r"attn_k.weight' must have shape \(8, 32\), got \(16, 32\)"),
        (changed(llama__rope__dimension_count=4), "must be equal, got 8, 8, 4"),
        (changed(llama__rope__scaling__type="yarn"), "llama.rope.scaling.type = 'yarn' is not supported"),
        (changed(llama__expert_count=8), "llama.expert_count = 8 is not supported"),
        (changed(llama__attention__layer_norm_rms_epsilon=None), "layer_norm_rms_epsilon is missing"),
        (changed(llama__attention__layer_norm_rms_epsilon=-1.0), "must be a positive number, got -1.0"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_is_no_llama_is_refused(tmp_path: Path, values: dict, said: str) -> None:
    file = write(tmp_path / "odd.gguf", values, tensors(SHAPE))
    with pytest.raises(ConfigError, match=said) as refusal:
        decoder_from_gguf(file)
    assert str(file) in str(refusal.value)


def test_foreign_tensors_are_refused(tmp_path: Path) -> None:
    arrays = tensors(SHAPE) | {"blk.0.attn_q.bias": np.zeros(32, np.float32)}
    with pytest.raises(ConfigError, match=r"tensor 'blk.0.attn_q.bias' is not part of a Llama-shaped model"):
        decoder_from_gguf(write(tmp_path / "bias.gguf", metadata(), arrays))


def test_values_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    arrays = tensors(SHAPE)
    arrays["output_norm.weight"] = arrays["output_norm.weight"] * np.float32("nan")
    with pytest.raises(ConfigError, match=r"'output_norm.weight' has values that are not finite"):
        decoder_from_gguf(write(tmp_path / "nan.gguf", metadata(), arrays))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (changed(tokenizer__ggml__model="llama"), "tokenizer.ggml.model must be 'gpt2'"),
        (changed(tokenizer__ggml__pre="other"), "tokenizer.ggml.pre must be one of gpt-2, smollm, got 'other'"),
        (changed(tokenizer__ggml__tokens=["a", "a"]), "must be distinct"),
        (changed(tokenizer__ggml__merges=None), "tokenizer.ggml.merges must be a list of str"),
        (changed(tokenizer__ggml__merges=["a z"]), "merges do not fit the vocabulary"),
        (changed(tokenizer__ggml__eos_token_id=99), "eos_token_id must be 0 to 8, got 99"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_other_tokenizers_are_refused(tmp_path: Path, values: dict, said: str) -> None:
    file = read_gguf(write(tmp_path / "odd.gguf", values, tensors(SHAPE)))
    with pytest.raises(ConfigError, match=said):
        tokenizer_from_gguf(file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a GGUF file"),
        (b"GGML and more", "not a GGUF file"),
        (b"GGUF", "the file ends early"),
        (b"GGUF\x01\0\0\0" + bytes(16), "version 1 is not supported; 2 and 3 are"),
        (b"GGUF\0\0\0\x03" + bytes(16), "version 50331648 is not supported"),  # big-endian
        (b"GGUF\x03\0\0\0" + b"\xff" * 32, "passes the end of the file"),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "foreign.gguf"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as refusal:
        read_gguf(file)
    assert str(file) in str(refusal.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / "absent.gguf", "nul\0byte"):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_gguf(file)


def test_a_tensor_larger_than_the_file_is_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    arrays = {name: array for name, array in tensors(SHAPE).items() if name != "output.weight"}
    path = write(tmp_path / "huge.gguf", metadata(), arrays)
    rows, damaged = (24).to_bytes(8, "little"), bytearray(path.read_bytes())
    at = damaged.index(rows, damaged.index(b"token_embd.weight"))
    damaged[at : at + 8] = (2**40).to_bytes(8, "little")
    path.write_bytes(damaged)
    with pytest.raises(ConfigError, match=r"data of tensor 'token_embd.weight' passes the end of the file"):
        decoder_from_gguf(path)


def test_a_file_cut_anywhere_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 60).astype(int).tolist():
        path.write_bytes(whole[:length])
        with pytest.raises(ConfigError):
            decoder_from_gguf(path)


def test_damage_anywhere_in_the_header_is_refused_or_harmless(path: Path) -> None:
    """No weight is ever another; a constant of the metadata may be (a rotary base), for no header contradicts it."""
    whole, rng, sound = path.read_bytes(), np.random.default_rng(0), read_gguf(path)
    header = min(tensor.start for tensor in sound.tensors.values())
    refused = harmless = constants = 0
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(header)] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            decoder = decoder_from_gguf(path)
        except ConfigError as refusal:
            refused += str(path) in str(refusal)
        else:
            np.testing.assert_array_equal(decoder.weights.memory, SHAPE.weights.memory)
            assert decoder.shape == SHAPE.shape or read_gguf(path).metadata != sound.metadata
            harmless += decoder.shape == SHAPE.shape
            constants += decoder.shape != SHAPE.shape
    assert refused + harmless + constants == 300
    assert refused > 100
    assert harmless > constants


def test_tensors_that_overlap_or_leave_gaps_are_refused(path: Path) -> None:
    """Moved by one bit, a tensor would be read from another's data; a narrower type would leave a gap behind it."""
    whole, found = path.read_bytes(), read_gguf(path).tensors
    name = b"blk.0.attn_q.weight"
    at = whole.index(name) + len(name) + 4 + 2 * 8  # behind it: how many dimensions, two of them, type, offset
    start, behind = found["blk.0.attn_q.weight"].start, found["blk.0.attn_k.weight"]
    for place, bit, said in (
        (
            at + 5,
            2,
            f"attn_q.weight' begin at byte {start + 1024:,}; what comes before them ends at {start:,}, padding",
        ),
        (at + 5, 3, f"attn_q.weight' begin at byte {start - 2048:,}; what comes before them ends at "),
        (
            at,
            0,
            f"attn_k.weight' begin at byte {behind.start:,}; what comes before them ends at {behind.start - 2048:,}, ",
        ),
    ):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        with pytest.raises(ConfigError, match=said) as refusal:
            read_gguf(path)
        assert str(path) in str(refusal.value)


def test_an_unknown_tensor_or_type_is_refused(path: Path) -> None:
    with pytest.raises(ConfigError, match="no tensor 'nope'"):
        read_gguf(path).array("nope")


def test_a_missing_package_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("gguf", "gguf.quants", "tokenizers"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    file = read_gguf(path)  # the header needs neither
    with pytest.raises(CostModelError, match=r"needs the package 'gguf': pip install 'costmodel\[lab\]'"):
        decoder_from_gguf(file)
    with pytest.raises(CostModelError, match=r"needs the package 'tokenizers': pip install 'costmodel\[lab\]'"):
        tokenizer_from_gguf(file)


def test_damaged_headers_are_named(tmp_path: Path) -> None:
    def key(name: bytes, number: int) -> bytes:
        return len(name).to_bytes(8, "little") + name + (4).to_bytes(4, "little") + number.to_bytes(4, "little")

    start = b"GGUF\x03\0\0\0" + bytes(8) + (2).to_bytes(8, "little")
    file = tmp_path / "twice.gguf"
    file.write_bytes(start + 2 * key(b"size", 1))
    with pytest.raises(ConfigError, match="key 'size' is given twice"):
        read_gguf(file)
    file.write_bytes(start + key(b"general.alignment", 0) + key(b"size", 1))
    with pytest.raises(ConfigError, match=r"general\.alignment must be a positive integer, got 0"):
        read_gguf(file)


def test_a_type_that_is_not_on_record_has_no_size() -> None:
    odd = GGUFTensor("odd", (2, 33), 8, 0)
    with pytest.raises(ConfigError, match=r"tensor 'odd' of shape \(2, 33\) cannot be stored as ggml type 8"):
        _ = odd.nbytes
    with pytest.raises(ConfigError, match=r"some\.gguf: tensor 'odd'"):
        _ = GGUFFile(Path("some.gguf"), {}, {"odd": odd}).weight_bytes
