"""Every target under a fixed seed: nothing but answers and refusals by name, and memory that does not grow.

5,000 inputs each; fewer where one costs milliseconds: deployments (1,000), evidence (2,000), command lines (80).
"""

import pytest

from tests.fuzz.harness import Target, numbered, run
from tests.fuzz.targets import TARGETS

COUNTS = {"deployment": 1_000, "evidence": 2_000, "command": 80}
ANSWERS = {"config": "counted", "gguf": "counted", "safetensors": "counted", "azure": "read", "mooncake": "read",
           "evidence": "judged", "deployment": "answered", "command": "answered"}  # fmt: skip
GROWTH = 48 * 2**20  # bytes: caches fill up to here, and no further


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_is_answered_or_refused(name: str) -> None:
    count = COUNTS.get(name, 5_000)
    found = run(TARGETS[name], count)
    assert found.inputs == count
    assert found.ends[ANSWERS[name]] > count / 25, found  # the damage leaves some inputs whole
    assert found.ends[ANSWERS[name]] < count * 0.9, found
    assert found.peak - found.settled < GROWTH, found


def test_a_fault_is_printed_with_what_reproduces_it() -> None:
    def tried(number: int) -> str:
        return f"{1 / (number - 3):g}"

    target = Target("division", lambda rng: rng.randrange(6), tried)
    with pytest.raises(AssertionError, match="division, seed 5, input ") as fault:
        run(target, 100, seed=5)
    number = int(str(fault.value).split("input ")[1].split(":")[0])
    assert numbered(target, 5, number) == 3
    assert str(fault.value).endswith("input: 3")
