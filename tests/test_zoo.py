import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel import ConfigError, CostModelError, UnknownNameError, load, model_from_config, preset_config, presets
from costmodel.zoo.families import FAMILIES, FOREIGN
from costmodel.zoo.json_file import LARGEST_FILE, parse_object

# name: parameters (all, of the text model, active per token), cache and state elements at 1,024 and 32,768 tokens,
# tied head, stored bytes where they are known.
COUNTS = {
    "llama-2-7b": (6738415616, 6738415616, 6738415616, 268435456, 8589934592, False, 13476831232),
    "llama-2-13b": (13015864320, 13015864320, 13015864320, 419430400, 13421772800, False, 26031728640),
    "llama-2-70b": (68976648192, 68976648192, 68976648192, 167772160, 5368709120, False, 137953296384),
    "llama-3-8b": (8030261248, 8030261248, 8030261248, 67108864, 2147483648, False, 16060522496),
    "llama-3-70b": (70553706496, 70553706496, 70553706496, 167772160, 5368709120, False, 141107412992),
    "llama-3.1-8b": (8030261248, 8030261248, 8030261248, 67108864, 2147483648, False, 16060522496),
    "llama-3.1-405b": (405853388800, 405853388800, 405853388800, 264241152, 8455716864, False, 811706777600),
    "llama-3.2-1b": (1235814400, 1235814400, 1235814400, 16777216, 536870912, True, 2471628800),
    "mistral-7b-v0.1": (7241732096, 7241732096, 7241732096, 67108864, 268435456, False, 14483464192),
    "qwen2.5-3b": (3085938688, 3085938688, 3085938688, 18874368, 603979776, True, 6171877376),
    "qwen2.5-7b": (7615616512, 7615616512, 7615616512, 29360128, 939524096, False, 15231233024),
    "qwen2.5-72b": (72706203648, 72706203648, 72706203648, 167772160, 5368709120, False, 145412407296),
    "qwen3-0.6b": (596049920, 596049920, 596049920, 58720256, 1879048192, True, 1192099840),
    "qwen3-8b": (8190735360, 8190735360, 8190735360, 75497472, 2415919104, False, 16381470720),
    "bloom-176b": (176247271424, 176247271424, 176247271424, 2055208960, 65766686720, True, None),
    "command-r-v01": (34980831232, 34980831232, 34980831232, 671088640, 21474836480, True, 69961662464),
    "deepseek-v2-lite": (15706484224, 15706484224, 2661150208, 15925248, 509607936, False, 31412968448),
    "deepseek-v3": (671026404352, 671026404352, 37552282624, 35979264, 1151336448, False, None),
    "falcon-40b": (41303293952, 41303293952, 41303293952, 62914560, 2013265920, True, 82606587904),
    "falcon-7b": (6921720704, 6921720704, 6921720704, 4194304, 134217728, True, 13843441408),
    "gemma-2-27b": (27227128320, 27227128320, 27227128320, 192937984, 3472883712, True, 54454256640),
    "gemma-2-9b": (9241705984, 9241705984, 9241705984, 176160768, 3170893824, True, 18483411968),
    "gemma-3-1b-it": (999885952, 999885952, 999885952, 7864320, 72876032, True, 1999771904),
    "gemma-3-27b-it": (27432406640, 27009346304, 27009346304, 260046848, 1560281088, True, 54864813280),
    "gpt-j-6b": (6050882784, 6050882784, 6050882784, 234881024, 7516192768, False, None),
    "gpt-neox-20b": (20554567680, 20554567680, 20554567680, 553648128, 17716740096, False, 41109135360),
    "gpt-oss-20b": (20914757184, 20914757184, 4187440704, 14155776, 404226048, False, 13761264768),
    "gpt2": (124439808, 124439808, 124439808, 18874368, 603979776, True, None),
    "jamba-1.5-mini": (51570323328, 51570323328, 12110311296, 12976128, 273022976, False, 103140646656),
    "mamba-2.8b-hf": (2768345600, 2768345600, 2768345600, 6553600, 6553600, True, 11073382400),
    "mixtral-8x7b": (46702792704, 46702792704, 12879925248, 67108864, 2147483648, False, 93405585408),
    "mpt-7b": (6649286656, 6649286656, 6649286656, 268435456, 8589934592, True, 13298573312),
    "opt-6.7b": (6658473984, 6658473984, 6658473984, 268435456, 8589934592, True, 13316947968),
    "phi-3-mini-4k-instruct": (3821079552, 3821079552, 3821079552, 201326592, 402456576, False, 7642159104),
    "qwen2-vl-7b-instruct": (8291375616, 7615616512, 7615616512, 29360128, 939524096, False, 16582751232),
    "qwen2.5-3b-instruct-gptq-int4": (3085938688, 3085938688, 3085938688, 18874368, 603979776, True, 2067623936),
    "qwen2.5-vl-7b-instruct": (8292166656, 7615616512, 7615616512, 29360128, 939524096, False, 16584333312),
    "qwen3-30b-a3b": (30532122624, 30532122624, 3353032704, 50331648, 1610612736, False, 61064245248),
    "qwen3-30b-a3b-fp8": (30532122624, 30532122624, 3353032704, 50331648, 1610612736, False, None),
    "qwen3.5-35b-a3b": (35107181936, 34660610688, 3454988928, 27197440, 352256000, False, 70214363872),
    "starcoder-15b": (15517456384, 15517456384, 15517456384, 10485760, 335544320, True, 62069825536),
    "8b": (8000000000, 8000000000, 8000000000, 67108864, 2147483648, False, 16000000000),
    "7b": (7000000000, 7000000000, 7000000000, 268435456, 8589934592, False, 14000000000),
    "70b": (70000000000, 70000000000, 70000000000, 167772160, 5368709120, False, 140000000000),
    "llama-3.1-70b": (70553706496, 70553706496, 70553706496, 167772160, 5368709120, False, 141107412992),
    "smollm2-135m": (134515008, 134515008, 134515008, 11796480, 377487360, True, 269030016),
}  # fmt: skip
# Known by one figure each: cache elements per token, or stored bytes.
PARTLY = {"mixtral-8x22b": (114_688, None), "qwen3-4b": (73_728, None), "gpt-oss-120b": (None, 65_248_815_744)}
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "vocab_size": 32000,
    "tie_word_embeddings": False, "torch_dtype": "float16",
}  # fmt: skip


def config(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "config.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def varied(**changes: object) -> dict[str, object]:
    changed = LLAMA | changes
    return {k: v for k, v in changed.items() if v is not ...}


def test_every_preset_is_counted() -> None:
    assert set(COUNTS) | set(PARTLY) == set(presets())
    assert len(presets()) >= 45


@pytest.mark.parametrize("name", COUNTS)
def test_presets_are_exact(name: str) -> None:
    params, text, active, short, long, tied, stored = COUNTS[name]
    model = load(name)
    assert (model.params, model.text_params, model.active_params) == (params, text, active)
    assert (model.cache_elements(1024), model.cache_elements(32768), model.tied_head) == (short, long, tied)
    assert stored is None or model.weight_bytes() == stored
    assert isinstance(model.params, int)


@pytest.mark.parametrize("name", PARTLY)
def test_presets_known_by_one_figure(name: str) -> None:
    per_token, stored = PARTLY[name]
    assert per_token is None or load(name).cache_elements(1) == per_token
    assert stored is None or load(name).weight_bytes() == stored


@pytest.mark.parametrize("name", [n for n in (*COUNTS, *PARTLY) if n not in ("8b", "7b", "70b")])
def test_a_preset_written_out_reads_back_the_same(name: str, tmp_path: Path) -> None:
    again = load(config(tmp_path, json.dumps(preset_config(name))))
    ours = load(name)
    assert (again.blocks, again.before, again.after, again.dtype) == (ours.blocks, ours.before, ours.after, ours.dtype)


def test_published_configurations_are_exact(published: Path) -> None:
    with (published / "truth.csv").open() as rows:
        truth = {row["name"]: row for row in csv.DictReader(rows)}
    for path in sorted((published / "models").glob("*.json")):
        row, model = truth.pop(path.stem), load(path)
        assert model.params == int(row["total_params"]), path.stem
        assert model.text_params == int(row["text_params"]), path.stem
        assert model.active_params == int(row["active_params"] or row["text_params"]), path.stem
        for context in (1024, 32768):
            expected = int(row[f"kv_elements_{context}"]) + int(row["state_elements"])
            assert model.cache_elements(context) == expected, path.stem
        assert model.tied_head == (row["tied_head"] == "yes"), path.stem
        assert not row["weight_bytes_stored"] or model.weight_bytes() == int(row["weight_bytes_stored"]), path.stem
    assert not truth


REFUSED = {
    "01": "num_attention_heads must be a positive integer, got -32",
    "02": "num_attention_heads must be a positive integer, got 0",
    "03": "num_attention_heads (32) is not a multiple of num_key_value_heads (5)",
    "05": "hidden_size (4100) is not divisible by num_attention_heads (32) and head_dim is absent: give head_dim",
    "06": "missing required field num_hidden_layers (also looked for n_layer, n_layers, num_layers)",
    "07": "missing required field vocab_size",
    "08": 'hidden_size must be an integer, got the string "4096"',
    "10": "num_hidden_layers must be a whole number, got 32.5",
    "11": "hidden_size is NaN",
    "13": "hidden_size is implausibly large",
    "14": "a number is too long to read",
    "15": "nested too deeply",
    "17": "config must be a JSON object, got a list",
    "18": "file ends early at line 9",
    "19": "file is empty",
    "23": "num_experts_per_tok (16) exceeds num_local_experts (8)",
    "22": "text_config must be an object, got number 7",
    "25": "unknown layer type 'wavelet_attention' at layer 7",
    "26": "sliding_window must be a positive integer or null, got -1",
    "31": "hidden_size is null; required",
    "33": "unsupported model_type 'evil'",
    "36": "missing model_type (and architectures), and hidden_size",
}


def test_published_faults_are_refused_by_name(published: Path) -> None:
    for path in sorted((published / "bad").glob("*.json")):
        number = path.name[:2]
        if number in REFUSED:
            with pytest.raises(ConfigError) as refusal:
                load(path)
            assert str(path) in str(refusal.value)
            assert REFUSED[number] in str(refusal.value)
        elif number == "28":
            with pytest.raises(CostModelError, match="'magic2bit': bytes per weight cannot be known; give the weight"):
                load(path).weight_bytes()
            assert load(path).weight_bytes("int4") == 6738415616 // 2
        elif number == "32":
            assert load(path).params == 6738415616
        else:
            pytest.fail(f"{path.name} has no test")
    assert not (published / "bad" / "CANARY_EXECUTED").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": -1}, "num_attention_heads must be a positive integer, got -1"),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be a positive integer, got 0"),
        ({"vocab_size": 32000.0}, "vocab_size must be a whole number, got 32000.0"),
        ({"vocab_size": True}, "vocab_size must be an integer, got true"),
        ({"intermediate_size": [11008]}, "intermediate_size must be an integer, got a list"),
        ({"intermediate_size": ...}, "missing required field intermediate_size"),
        ({"num_attention_heads": None}, "num_attention_heads is null; required"),
        ({"num_key_value_heads": 3}, "num_attention_heads (32) is not a multiple of num_key_value_heads (3)"),
        ({"num_key_value_heads": 64}, "is not a multiple of num_key_value_heads (64)"),
        ({"hidden_size": 4097}, "head_dim is absent: give head_dim"),
        ({"head_dim": 0}, "head_dim must be a positive integer, got 0"),
        ({"head_dim": "128"}, 'head_dim must be an integer, got the string "128"'),
        ({"num_layers": 31}, "fields disagree: num_hidden_layers is number 32, num_layers is number 31"),
        ({"tie_word_embeddings": "false"}, 'tie_word_embeddings must be true or false, got the string "false"'),
        ({"attention_bias": 1}, "attention_bias must be true or false, got number 1"),
        ({"torch_dtype": "float12"}, "dtype must be one of float32, float16, bfloat16, got 'float12'"),
        ({"torch_dtype": 16}, "torch_dtype must be a string, got number 16"),
        ({"model_type": "rwkv", "architectures": ["RwkvForCausalLM"]}, "unsupported model_type 'rwkv'"),
        ({"model_type": "mamba"}, "intermediate_size (11008) is not expand x hidden_size (8192)"),
        ({"model_type": ["llama"]}, "model_type must be a string, got a list"),
        ({"model_type": ..., "architectures": ["Odd"]}, "no model_type, and architecture 'Odd' is unknown"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "not LlamaForCausalLM: another head"),
        ({"architectures": "LlamaForCausalLM"}, "architectures must be a list of strings"),
        ({"text_config": {}}, "text_config: a nested (multimodal) configuration is not supported for llama"),
        ({"quantization_config": 4}, "quantization_config must be an object, got number 4"),
        ({"sliding_window": 4096.5}, "sliding_window must be a positive integer or null, got 4096.5"),
        ({"layer_types": ["full_attention"]}, "layer_types lists 1 layers but num_hidden_layers is 32"),
        ({"layer_types": ["sliding_attention"] * 32}, "32 sliding_attention layers but no sliding_window"),
        ({"layer_types": [7] * 32}, "layer_types must be a list of strings"),
        *[({name: 4}, f"{name} changes the count and is not understood") for name in FOREIGN],
    ],
)
def test_each_kind_of_fault_is_named(changes: dict, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        model_from_config(varied(**changes), "some/config.json")
    assert "some/config.json" in str(refusal.value)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file is empty"),
        ("  \n", "file is empty"),
        ("{", "file ends early"),
        ('{"hidden_size": 1,}', "not valid JSON"),
        ("[" * 10_000_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "a number is too long"),
        ('{"hidden_size": 1, "hidden_size": 2}', "field 'hidden_size' is given twice"),
        ("7", "config must be a JSON object, got number 7"),
        (b"\xff\xfe{}", "not UTF-8 text"),
        (" " * (LARGEST_FILE + 1), "too large for a configuration"),
        (json.dumps(LLAMA).replace("4096", "1e400"), "hidden_size must be a whole number, got inf"),
        (json.dumps(LLAMA).replace("4096", "-Infinity"), "hidden_size must be a whole number, got -inf"),
        (json.dumps(LLAMA).replace("4096", "NaN"), "hidden_size is NaN"),
        (json.dumps(LLAMA).replace("4096", "1" + "0" * 30), "hidden_size is implausibly large"),
    ],
    ids=range(15),
)
def test_broken_files_are_refused_by_name(text: str | bytes, message: str, tmp_path: Path) -> None:
    path = config(tmp_path, text)
    with pytest.raises(ConfigError) as refusal:
        load(path)
    assert str(path) in str(refusal.value)
    assert message in str(refusal.value)
    assert len(str(refusal.value)) < 1000


def test_directories_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a directory; give the config.json itself"):
        load(tmp_path)
    config(tmp_path, json.dumps(LLAMA))
    with pytest.raises(ConfigError, match=r"is a directory; did you mean .*config.json\?"):
        load(str(tmp_path))
    with pytest.raises(ConfigError, match=r"nowhere.json: cannot be read: No such file"):
        load(str(tmp_path / "nowhere.json"))
    with pytest.raises(ConfigError, match="cannot be read"):
        load("nul\0byte.json")


def test_unknown_presets_suggest_the_near_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown model 'llama-3-9b'; did you mean llama-3-8b"):
        load("llama-3-9b")
    with pytest.raises(UnknownNameError, match=r"unknown model 'zzz'; known: 70b, 7b, 8b"):
        load("zzz")
    with pytest.raises(UnknownNameError, match=r"'llama-3' is ambiguous: it begins llama-3-70b, llama-3-8b"):
        load("llama-3")
    with pytest.raises(CostModelError, match="8b is a rounded model"):
        preset_config("8b")


def test_custom_code_is_never_touched(tmp_path: Path) -> None:
    canary = tmp_path / "configuration_evil.py"
    canary.write_text("raise SystemExit('executed')")
    hostile = {"auto_map": {"AutoConfig": "configuration_evil.Evil"}, "trust_remote_code": True, "custom_pipelines": {}}
    assert load(config(tmp_path, json.dumps(LLAMA | hostile))).params == load("llama-2-7b").params


def test_head_width_that_is_declared_wins() -> None:
    """Public reports: calculators took hidden_size/num_attention_heads although head_dim was declared."""
    qwen = {"model_type": "qwen3", "hidden_size": 2560, "num_attention_heads": 32, "num_key_value_heads": 8}
    sizes = {"num_hidden_layers": 36, "intermediate_size": 9728, "vocab_size": 151936}
    assert model_from_config(qwen | sizes | {"head_dim": 128}, "qwen3-4b").cache_elements(1) == 73_728
    small = {"model_type": "mistral", "hidden_size": 5120, "num_attention_heads": 32, "num_key_value_heads": 8}
    mistral = model_from_config(small | sizes | {"num_hidden_layers": 1, "head_dim": 128}, "mistral-small-24b")
    assert mistral.cache_elements(1) == 2_048


def test_null_head_width_is_as_if_absent() -> None:
    assert model_from_config(varied(head_dim=None), "x").params == model_from_config(LLAMA, "x").params
    with pytest.raises(ConfigError, match="head_dim is null, and neither 128 nor 64 is certain"):
        model_from_config(varied(model_type="qwen3", head_dim=None, hidden_size=2048), "x")


def test_null_head_width_of_a_mixture() -> None:
    """Public reports: `"head_dim": null` crashed calculators."""
    assert model_from_config(preset_config("mixtral-8x22b") | {"head_dim": None}, "x").cache_bytes(1) == 229_376


def test_grouped_heads_shrink_the_cache() -> None:
    """Public reports: decode traffic was computed from the query heads, or from K alone."""
    layer = load("llama-3-8b").blocks[0][0].layers[1]
    assert layer.cache_elements(4096) * 2 == 16_777_216
    assert load("qwen2.5-7b").cache_bytes(1) == 57_344
    read = load("llama-3-8b").decode(1, 4096)
    assert read["scores"].op.reads[1].elements == read["values"].op.reads[1].elements == 8 * 128 * 4096


def test_gigabytes_and_gibibytes() -> None:
    stored = load("llama-3-8b").weight_bytes()
    assert (f"{stored / 1e9:.2f}", f"{stored / 2**30:.2f}") == ("16.06", "14.96")


def test_absent_fields_take_the_familys_own_defaults() -> None:
    assert model_from_config(varied(num_key_value_heads=...), "x").blocks[0][0].layers[1].kv_heads == 32
    mistral = model_from_config(varied(model_type="mistral", num_key_value_heads=...), "x").blocks[0][0].layers[1]
    assert (mistral.kv_heads, mistral.window) == (8, 4096)
    null = model_from_config(varied(model_type="mistral", num_key_value_heads=None, sliding_window=None), "x")
    assert (null.blocks[0][0].layers[1].kv_heads, null.blocks[0][0].layers[1].window) == (32, None)


def test_windows_by_switch_by_layer_and_by_list() -> None:
    qwen = varied(model_type="qwen2", sliding_window=1000)
    full = model_from_config(LLAMA, "x").cache_elements(1)
    assert model_from_config(qwen, "x").cache_elements(5000) == 5000 * full
    on = qwen | {"use_sliding_window": True, "max_window_layers": 24}
    assert model_from_config(on, "x").cache_elements(5000) == full * (24 * 5000 + 8 * 1000) // 32
    listed = on | {"layer_types": ["sliding_attention", "full_attention"] * 16}
    assert model_from_config(listed, "x").cache_elements(5000) == full * (16 * 5000 + 16 * 1000) // 32
    assert len(model_from_config(on | {"max_window_layers": 0}, "x").blocks) == 1


def test_what_is_assumed_is_said() -> None:
    assert model_from_config(varied(torch_dtype=...), "x").notes == ("no dtype is stated: bf16 is assumed",)
    assert model_from_config(varied(torch_dtype=..., dtype="torch.float32"), "x").dtype == "fp32"
    by_class = model_from_config(varied(model_type=...), "x")
    assert by_class.family == "llama"
    assert "because architectures names LlamaForCausalLM" in by_class.notes[0]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
NAMES = st.sampled_from(
    [*LLAMA, "head_dim", "sliding_window", "layer_types", "quantization_config", "text_config", "dtype", *FOREIGN]
)


@given(changes=st.dictionaries(NAMES, VALUES, min_size=1, max_size=4))
def test_any_value_in_any_field_is_counted_or_refused(changes: dict) -> None:
    try:
        model = model_from_config(LLAMA | changes, "fuzzed.json")
        assert model.params > 0
        assert model.cache_elements(10) > 0
    except ConfigError as refusal:
        assert "fuzzed.json" in str(refusal)


@given(text=st.text(max_size=200))
def test_any_text_is_an_object_or_refused(text: str) -> None:
    try:
        assert isinstance(parse_object(text, "text"), dict)
    except ConfigError as refusal:
        assert str(refusal).startswith("text: ")


@pytest.mark.parametrize("field", ["first_k_dense_replace", "n_shared_experts", "q_lora_rank"])
def test_fields_without_a_safe_default_are_required(field: str) -> None:
    """Class defaults differ from what these models are: an absent field would be counted wrongly."""
    config = preset_config("deepseek-v3")
    del config[field]
    with pytest.raises(ConfigError, match=f"missing required field {field}"):
        model_from_config(config, "x")


def test_a_null_query_latent_means_none() -> None:
    assert preset_config("deepseek-v2-lite")["q_lora_rank"] is None
    assert load("deepseek-v2-lite").blocks[0][0].layers[1].query_latent is None


def test_mamba_2_as_transformers_instantiates_it() -> None:
    sizes = {"hidden_size": 64, "num_heads": 8, "head_dim": 16, "state_size": 16, "n_groups": 2, "conv_kernel": 4}
    config = {"model_type": "mamba2", "num_hidden_layers": 1, "vocab_size": 100, "expand": 2} | sizes
    assert model_from_config(config, "x").params == 43_224
    with pytest.raises(ConfigError, match=r"num_heads \(9\) x head_dim \(16\) is not expand x hidden_size \(64\)"):
        model_from_config(config | {"num_heads": 9}, "x")


@pytest.mark.parametrize(
    ("settings", "bits"),
    [
        ({"load_in_8bit": True}, 8 + 32 / 4096),
        ({"load_in_4bit": True}, 4 + 32 / 64),
        ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4 + 8 / 64 + 32 / 64 / 256),
    ],
)
def test_bitsandbytes_counts_its_scales_and_leaves_the_ends_in_16_bit(settings: dict, bits: float) -> None:
    sizes = {"hidden_size": 4096, "intermediate_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 32}
    config = varied(**sizes, quantization_config={"quant_method": "bitsandbytes"} | settings)
    inside = 32 * 7 * 4096**2
    model = model_from_config(config, "x")
    assert model.weight_bytes() == pytest.approx(inside * bits / 8 + 2 * (model.params - inside), rel=1e-12)


@pytest.mark.parametrize(("settings", "spared"), [
    ({"quant_method": "fp8"}, {"modules_to_not_convert": ["lm_head", "model.layers.0", "model.layers.1"]}),
    ({"quant_method": "fp8"}, {"ignored_layers": ["model.layers.3.self_attn.q_proj"]}),
    ({"quant_method": "awq", "bits": 4}, {"modules_to_not_convert": ["model.layers.0.mlp.gate_proj"]}),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, {"llm_int8_skip_modules": ["o_proj", "lm_head"]}),
    ({"quant_method": "mxfp4"}, {"modules_to_not_convert": ["model.layers.0.mlp.experts"]}),
])  # fmt: skip
def test_bytes_are_not_guessed_where_further_matrices_are_spared(settings: dict, spared: dict) -> None:
    first = next(name for names in spared.values() for name in names if name != "lm_head")
    model = model_from_config(varied(quantization_config=settings | spared), "x")
    with pytest.raises(CostModelError, match=rf"^x: quantization_config leaves '{first}'.* unquantized.*--weights"):
        model.weight_bytes()
    assert model.weight_bytes(1) == model.params


@pytest.mark.parametrize("settings", [
    {"modules_to_not_convert": None}, {"modules_to_not_convert": []},
    {"llm_int8_skip_modules": ["lm_head", "vision_tower", "multi_modal_projector", "model.visual.blocks.0.attn.qkv"]},
    {"modules_to_not_convert": [
        "lm_head", "model.embed_tokens", "model.layers.0.input_layernorm", "model.norm", "model.layers.0.mlp.gate",
        "gate", "model.layers.*.mlp.router", "model.layers.0.mlp.shared_expert_gate", "transformer.wte",
        "transformer.h.0.ln_1",
    ]},
])  # fmt: skip
def test_modules_that_are_never_quantized_may_be_listed(settings: dict) -> None:
    plain, listed = (
        model_from_config(varied(quantization_config={"quant_method": "fp8"} | s), "x") for s in ({}, settings)
    )
    assert listed.weight_bytes() == plain.weight_bytes()


def test_the_lists_that_were_published_change_nothing() -> None:
    spared = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    quantized = {"quant_method": "mxfp4", "modules_to_not_convert": spared}
    config = preset_config("gpt-oss-20b") | {"quantization_config": quantized}
    assert model_from_config(config, "x").weight_bytes() == load("gpt-oss-20b").weight_bytes()
    with pytest.raises(ConfigError, match="modules_to_not_convert must be a list of strings, got number 1"):
        model_from_config(config | {"quantization_config": quantized | {"modules_to_not_convert": 1}}, "x")


def test_bitsandbytes_must_say_which() -> None:
    config = varied(quantization_config={"quant_method": "bitsandbytes"})
    with pytest.raises(ConfigError, match="one of load_in_8bit and load_in_4bit must be true"):
        model_from_config(config, "x")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quant_method": "fp8", "weight_block_size": [0, 128]}, "weight_block_size must be a positive integer, got 0"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size must be two sizes, got 1"),
        ({"quant_method": "fp8", "weight_block_size": "128"}, "weight_block_size must be a list of whole numbers"),
        ({"quant_method": "gptq", "bits": 5}, "bits must be one of 2, 3, 4, 8, got 5"),
        ({"quant_method": "awq", "bits": 4, "group_size": 0}, "group_size must be a positive integer, got 0"),
        ({"quant_method": "gptq"}, "missing required field bits"),
    ],
)
def test_impossible_quantization_is_refused_by_name(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        model_from_config(varied(quantization_config=settings), "some/config.json")
    assert "some/config.json: quantization_config" in str(refusal.value)
    assert message in str(refusal.value)


def test_refusals_speak_json() -> None:
    config = varied(model_type="gpt_neox", architectures=["GPTNeoXForCausalLM"], attention_bias=False)
    with pytest.raises(ConfigError, match="attention_bias must be true for model_type 'gpt_neox', got false"):
        model_from_config(config, "x")


def test_falcon_says_how_its_blocks_are_wired() -> None:
    one = preset_config("falcon-7b")
    stacked = model_from_config(one | {"parallel_attn": False}, "here").params
    assert stacked - model_from_config(one, "here").params == 32 * 2 * 4544  # a second norm, gain and bias, per layer
    with pytest.raises(ConfigError, match="parallel_attn must be true or false, got null"):
        model_from_config(one | {"parallel_attn": None}, "here")


def test_a_pooling_head_is_refused() -> None:
    config = preset_config("gemma-3-27b-it")
    config["vision_config"] = config["vision_config"] | {"vision_use_head": True}
    with pytest.raises(ConfigError, match="vision_use_head must be false: a pooling head is not understood"):
        model_from_config(config, "here")


def test_what_a_reader_changes_is_the_readers_own() -> None:
    before = load("gemma-3-27b-it").params
    preset_config("gemma-3-27b-it")["text_config"]["num_hidden_layers"] = 1
    presets()["gemma-3-27b-it"]["config"]["text_config"]["hidden_size"] = 1
    presets().pop("llama-3-8b")
    assert (load("gemma-3-27b-it").params, "llama-3-8b" in presets()) == (before, True)


def test_a_file_that_may_not_be_read_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = tmp_path / "config.json"
    locked.write_text(json.dumps(LLAMA))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(ConfigError, match=r"config\.json: cannot be read: Permission denied$"):
        load(locked)


def test_the_readme_counts_the_families() -> None:
    text = (Path(__file__).parent.parent / "README.md").read_text()
    assert f"A `config.json` of {len(FAMILIES)} families is read" in text
