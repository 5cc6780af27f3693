"""Typed access to the fields of a configuration: a wrong one is refused by file, name, value and what would do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from costmodel.common.errors import ConfigError
from costmodel.zoo.json_file import describe

LARGEST = 2**31  # no dimension of a real model comes near
MOST_LAYERS = 100_000
MISSING = object()

# Other names under which the same size is published.
ALIASES = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "hidden_size": ("n_embd", "n_embed", "d_model"),
    "num_attention_heads": ("n_head", "n_heads"),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size"),
    "num_experts": ("num_local_experts",),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length"),
}


@dataclass(frozen=True)
class Fields:
    """The fields of one configuration object, and the name errors give it."""

    values: Mapping[str, object]
    source: str

    def refuse(self, problem: str) -> ConfigError:
        """An error that names the source."""
        return ConfigError(f"{self.source}: {problem}")

    def get(self, name: str, default: object = MISSING) -> object:
        """The value under `name` or one of its aliases; two that disagree are refused."""
        found = {n: self.values[n] for n in (name, *ALIASES.get(name, ())) if n in self.values}
        if len({repr(v) for v in found.values()}) > 1:
            raise self.refuse("fields disagree: " + ", ".join(f"{n} is {describe(v)}" for n, v in found.items()))
        return next(iter(found.values()), default)

    def count(self, name: str, *, default: Any = MISSING, null: Any = MISSING) -> int:
        """A positive whole number.

        Parameters
        ----------
        name : the field
        default, null : what an absent or a null field stands for; without them it is required

        Raises
        ------
        ConfigError
        """
        value = self.get(name)
        if value is MISSING or value is None:
            fallback = default if value is MISSING else null
            if fallback is not MISSING:
                return fallback
            aliases = f" (also looked for {', '.join(ALIASES[name])})" if name in ALIASES else ""
            raise self.refuse(
                f"{name} is null; required" if value is None else f"missing required field {name}{aliases}"
            )
        return self.positive(name, value)

    def positive(self, name: str, value: object) -> int:
        """Check that a value is a positive whole number of plausible size."""
        if isinstance(value, float) and value != value:
            raise self.refuse(f"{name} is NaN, not a finite integer")
        if isinstance(value, bool) or not isinstance(value, int):
            kind = "a whole number" if isinstance(value, float) else "an integer"
            shown = value if isinstance(value, float) else describe(value)
            raise self.refuse(f"{name} must be {kind}, got {shown}")
        if value <= 0:
            raise self.refuse(f"{name} must be a positive integer, got {value}")
        if value > (limit := MOST_LAYERS if name == "num_hidden_layers" else LARGEST):
            raise self.refuse(
                f"{name} is implausibly large: {describe(value).removeprefix('number ')} exceeds {limit:,}"
            )
        return value

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number, 0 included; an absent or null field takes the default, and is refused without one."""
        value = self.get(name)
        if value is MISSING or value is None:
            if default is None:
                raise self.refuse(f"{name} is null; required" if value is None else f"missing required field {name}")
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise self.refuse(f"{name} must be a whole number, at least 0, got {describe(value)}")
        return value

    def numbers(self, name: str) -> list[int]:
        """A list of whole numbers; none when absent or null."""
        value = self.get(name, None) or []
        if not isinstance(value, list) or not all(isinstance(n, int) and not isinstance(n, bool) for n in value):
            raise self.refuse(f"{name} must be a list of whole numbers, got {describe(value)}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """True or false; an absent or null field takes the default."""
        value = self.get(name)
        if value is MISSING or value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(f"{name} must be true or false, got {describe(value)}")
        return value

    def text(self, name: str) -> str | None:
        """A string, or None when absent or null."""
        value = self.get(name, None)
        if value is not None and not isinstance(value, str):
            raise self.refuse(f"{name} must be a string, got {describe(value)}")
        return value

    def section(self, name: str) -> "Fields | None":
        """A nested object, or None when absent or null."""
        value = self.get(name, None)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.refuse(f"{name} must be an object, got {describe(value)}")
        return Fields(value, f"{self.source}: {name}")

    def strings(self, name: str) -> list[str] | None:
        """A list of strings, or None when absent or null."""
        value = self.get(name, None)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refuse(f"{name} must be a list of strings, got {describe(value)}")
        return value
