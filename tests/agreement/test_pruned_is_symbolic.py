"""A pruned decoder costs what the ledger of its smaller shape says, exactly."""

from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import cached_flops, transformer
from costmodel.lab.pruning import prune
from tests.agreement.test_counted_is_symbolic import SWITCHES, WHOLE, pair, shapes, symbolic_switches


@settings(max_examples=80)
@given(shape=shapes(), switches=SWITCHES, data=st.data())
def test_counted_work_parameters_and_cache_of_what_is_left(shape: dict, switches: dict, data: st.DataObject) -> None:
    decoder, _ = pair(shape, switches)

    def fewer(size: int) -> list[int]:
        return sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1)))

    layers, heads, neurons = fewer(shape["L"]), fewer(shape["K"]), fewer(shape["F"])
    channels = fewer(shape["D"]) if switches["norm_gain"] else range(shape["D"])
    smaller = prune(
        decoder, layers=layers, heads=[heads] * shape["L"], neurons=[neurons] * shape["L"], channels=channels
    )
    left = {"L": len(layers), "K": len(heads), "F": len(neurons), "D": len(channels)}
    left["N"] = shape["N"] // shape["K"] * left["K"]
    model = transformer(**(shape | left), **symbolic_switches(switches))
    prompt, generated = [0, 1, 0, 1], 5
    assert smaller.params == model.params
    assert smaller.generate(prompt, generated).flops == cached_flops(model, len(prompt), generated, **WHOLE)
    cache = smaller.new_cache(capacity=7)
    assert cache.nbytes == model.cache_bytes(7, 8)  # float64
