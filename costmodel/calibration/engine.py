"""Serving software by family: the few traits of it that change how long a step takes."""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from costmodel.common.errors import CostModelError, unknown_name

AVERAGE = "average"  # software of no known family: every offset is 1
TRAITS = {"batching": ("continuous", "static"), "launch": ("fused", "eager"), "split": ("tensor", "layers")}


@dataclass(frozen=True)
class Engine:
    """What is known of the software: its family, and three traits (see data/software.toml).

    Attributes
    ----------
    family : whose fitted offsets apply; "average" has none
    batching : "continuous" (prompts of newcomers are prefilled between the steps of the others) or "static"
    launch : "fused" (few launches per layer, or one graph of them) or "eager" (many, from Python)
    split : how devices share a model: "tensor" (every layer over all) or "layers" (one device after the other)

    Raises
    ------
    UnknownNameError
        for another family or trait

    Examples
    --------
    >>> Engine()
    Engine(family='average', batching='continuous', launch='fused', split='tensor')
    """

    family: str = AVERAGE
    batching: str = "continuous"
    launch: str = "fused"
    split: str = "tensor"

    def __post_init__(self) -> None:
        if self.family not in families():
            raise unknown_name("family of software", self.family, families())
        for trait, known in TRAITS.items():
            if getattr(self, trait) not in known:
                raise unknown_name(trait, getattr(self, trait), known)


@lru_cache(maxsize=1)
def _families() -> dict[str, dict[str, Any]]:
    import tomllib  # only when a forecast is asked for: `import costmodel` stays light

    return tomllib.loads((files("costmodel") / "data" / "software.toml").read_text(encoding="utf-8"))


def families() -> tuple[str, ...]:
    """Every family on record, and "average".

    Returns
    -------
    tuple of names that `engine` knows

    Examples
    --------
    >>> {"average", "vllm", "llama-cpp"} <= set(families())
    True
    """
    return (AVERAGE, *_families())


def engine(software: str = AVERAGE) -> Engine:
    """The family a software's name belongs to; an unknown name is average software.

    Parameters
    ----------
    software : a family, or a name with or without a version that contains one of a family's words, in any case

    Returns
    -------
    Engine

    Raises
    ------
    CostModelError
        for what is no name

    Examples
    --------
    >>> engine("vLLM 0.12.0").family, engine("Hugging Face transformers").launch, engine("a new server").family
    ('vllm', 'eager', 'average')
    """
    if not isinstance(software, str):
        raise CostModelError(f"software must be a name, such as 'vllm', got {software!r}")
    for family, record in _families().items():
        if family == software or any(word in software.lower() for word in record["words"]):
            return Engine(family, **{trait: value for trait, value in record.items() if trait != "words"})
    return Engine()
