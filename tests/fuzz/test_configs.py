from tests.fuzz.configs import run


def test_five_thousand_mutated_configurations_are_counted_or_refused() -> None:
    ends, _ = run(5_000)
    assert sum(ends.values()) == 5_000
    assert ends["counted"] > 300
    assert ends["refused"] > 1_000
