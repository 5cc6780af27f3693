"""What other people's software counted, from committed tables: costmodel still says the same."""

import csv
from pathlib import Path

import pytest

from costmodel import load, model_from_config
from costmodel.passes import ForwardPass
from tests.oracles.tiny_sizes import SIZES, expanded, given

ORACLES = Path(__file__).parent / "oracles"
KNOWN_TO_DIFFER = {"qwen3_5_moe_text"}  # torch runs the delta rule in chunks, costmodel token by token


def table(name: str) -> list[dict[str, str]]:
    with (ORACLES / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", table("recount.csv"), ids=lambda row: row["name"])
def test_parameters_and_cache_as_transformers_instantiates_them(row: dict[str, str]) -> None:
    model = load(row["name"])
    assert row["verdict"] == "equal"
    assert model.params == int(row["transformers_params"])
    assert model.text_params == int(row["transformers_text_params"])
    assert model.active_params == int(row["transformers_active_params"])
    assert model.cache_elements(1024) == int(row["transformers_cache_1024"])
    assert model.tied_head == (row["transformers_tied_head"] == "yes")


@pytest.mark.parametrize("row", table("torch_flops.csv"), ids=lambda row: f"{row['family']}: {row['pass']}")
def test_flops_as_torch_counts_them(row: dict[str, str]) -> None:
    family, (batch, tokens, context) = row["family"], (int(row[n]) for n in ("batch", "tokens", "context"))
    model = expanded(model_from_config({"model_type": family.split()[0], **given(SIZES[family])}, family))
    ours = model.forward(ForwardPass(batch, tokens, context, causal=False, head="all")).flops
    assert (ours == int(row["torch"])) == (family not in KNOWN_TO_DIFFER)


def test_the_tables_cover_every_family_they_name() -> None:
    assert {row["family"] for row in table("torch_flops.csv")} == set(SIZES)
    assert len(table("recount.csv")) == 41
