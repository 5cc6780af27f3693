import json
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costmodel import ConfigError, load

CONFIG = {
    "model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1,
    "vocab_size": 10, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}  # fmt: skip
PARAMS = 10 * 8 + 4 * 8 * 8 + 3 * 8 * 16 + 3 * 8


def checkpoint(
    folder: Path, tensors: dict[str, list[int]], data: int | None = None, config: dict | None = CONFIG
) -> Path:
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        size = 2
        for n in shape:
            size *= n
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at if data is None else data))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return path


def test_bytes_come_from_the_header(tmp_path: Path) -> None:
    model = load(checkpoint(tmp_path, {"all": [PARAMS]}))
    assert (model.params, model.weight_bytes(), model.notes) == (PARAMS, 2 * PARAMS, ())


def test_a_file_that_holds_more_than_its_model_says_so(tmp_path: Path) -> None:
    model = load(str(checkpoint(tmp_path, {"all": [PARAMS], "lm_head": [10, 8]})))
    assert model.weight_bytes() == 2 * (PARAMS + 80)
    assert f"holds {PARAMS + 80} numbers where the configuration counts {PARAMS}" in model.notes[0]


def test_an_index_gives_the_total(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1234}, "weight_map": {}}))
    assert load(index).weight_bytes() == 1234
    index.write_text(json.dumps({"metadata": {"total_size": "1234"}}))
    with pytest.raises(ConfigError, match=r'total_size must be a positive integer, got the string "1234"'):
        load(index)


def test_faults_are_named(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, {"all": [PARAMS]}, data=3)
    with pytest.raises(
        ConfigError, match=r"model.safetensors: tensor 'all' lies at 0 to .*, outside the 3 bytes of data"
    ):
        load(path)
    for content in (
        b"",
        b"1234567",
        struct.pack("<Q", 2**40),
        struct.pack("<Q", 9) + b'{"a": [1]',
        struct.pack("<Q", 2) + b"\xff\xff",
    ):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=r"model.safetensors: "):
            load(path)
    path.write_bytes(struct.pack("<Q", 2) + b"{}")
    with pytest.raises(ConfigError, match="no tensors in it"):
        load(path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"no config.json beside it"):
        load(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entry=st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda x: st.lists(x, max_size=3)))
def test_any_header_entry_is_read_or_refused(tmp_path: Path, entry: object) -> None:
    path = checkpoint(tmp_path, {"all": [PARAMS]})
    text = json.dumps({"a": {"dtype": "BF16", "shape": entry, "data_offsets": entry}}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(ConfigError, match=r"model\.safetensors"):
        load(path)
