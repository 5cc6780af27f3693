"""Mutated configurations: each is counted or refused by name.

A mutation sets, drops, renames or nests fields of a real configuration, or damages its text.
"""

import copy
import json
import random

from costmodel import ConfigError, CostModelError, preset_config, presets
from costmodel.zoo import model_from_config
from costmodel.zoo.families import FAMILIES, FOREIGN
from costmodel.zoo.json_file import parse_object
from tests.fuzz.harness import Target

BASES = [preset_config(name) for name, record in presets().items() if "config" in record]
FIELDS = sorted({name for base in BASES for name in base} | set(FOREIGN) | {"layer_types", "head_dim", "text_config"})
SCALARS = (
    0, 1, -1, 2, 3, 7, 64, 4096, 2**31, 2**31 + 1, 10**30, 1.0, 32.5, float("nan"), float("inf"), True, False, None, "",
    "64",
    "auto", "llama", [], {}, [1], ["full_attention"], ["sliding_attention"] * 32, {"quant_method": "gptq", "bits": 4},
    {"quant_method": "fp8"},
    {"quant_method": "fp8", "weight_block_size": [0, 1]}, [0, 0], [-1, 128],
    {"quant_method": "mxfp4"}, {"quant_method": 3}, {"alibi": True}, [[]], {"hidden_size": 8},
)  # fmt: skip


def mutated(rng: random.Random) -> dict[str, object]:
    """One configuration with one to four fields changed."""
    config = json.loads(json.dumps(rng.choice(BASES)))
    for _ in range(rng.randint(1, 4)):
        place = config
        nested = [value for value in config.values() if isinstance(value, dict)]
        if nested and rng.random() < 0.3:
            place = rng.choice(nested)
        action, name = rng.random(), rng.choice([*place, rng.choice(FIELDS)])
        if action < 0.2:
            place.pop(name, None)
        elif action < 0.3:
            place["model_type"] = rng.choice([*FAMILIES, "evil"])
        elif action < 0.5 and isinstance(place.get(name), int):
            place[name] = place[name] * rng.choice((2, 3, -1)) + rng.choice((0, 1, 0.5))
        else:
            place[name] = copy.deepcopy(rng.choice(SCALARS))
    return config


def made(rng: random.Random) -> dict[str, object] | str:
    """A mutated configuration, one in ten as damaged text."""
    config = mutated(rng)
    if rng.random() >= 0.1:
        return config
    text = json.dumps(config)
    cut = rng.randrange(len(text))
    return text[:cut] + rng.choice(("", "x", "[[", "9" * 5000)) + text[cut:]


def tried(given: dict[str, object] | str) -> str:
    """Read it and count it."""
    try:
        model = model_from_config(parse_object(given, "fuzzed") if isinstance(given, str) else given, "fuzzed")
        assert model.params >= model.text_params >= model.active_params > 0
        assert model.cache_elements(1) >= 0
        assert model.decode(1, 100).flops > 0
        model.weight_bytes()
    except ConfigError as refusal:
        assert "fuzzed" in str(refusal)
        return "refused"
    except CostModelError as refusal:
        assert "weight format" in str(refusal) or "multiple" in str(refusal), refusal
        return "needs a weight format"
    return "counted"


CONFIG = Target("config", made, tried)
