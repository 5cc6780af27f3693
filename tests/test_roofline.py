import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Max, Min

from costmodel import accelerator, attainable, load, overlapped_seconds, serial_seconds, timing, transformer
from costmodel.common.errors import CostModelError
from costmodel.hardware import SYMBOLIC_ACCELERATOR
from costmodel.roofline import Timing, model_flops_utilisation
from costmodel.symbols import B, S, memory_bandwidth, peak

H100 = accelerator("h100-sxm")


def test_symbolic_seconds_are_one_maximum() -> None:
    ledger = transformer().decode()
    seconds = overlapped_seconds(ledger, SYMBOLIC_ACCELERATOR)
    assert seconds == Max(ledger.flops / peak, ledger.bytes / memory_bandwidth)


@given(batch=st.integers(1, 4096), context=st.integers(1, 100_000))
def test_overlap_never_takes_longer_than_none(batch: int, context: int) -> None:
    ledger = load("llama-3-8b").decode(batch, context)
    overlapped, serial = overlapped_seconds(ledger, H100), serial_seconds(ledger, H100)
    assert overlapped <= serial * (1 + 1e-12)
    assert serial <= ledger.flops / H100.peak() + ledger.bytes / H100.bandwidth


def test_mixed_bounds_tell_the_two_apart() -> None:
    ledger = load("llama-2-13b").decode(1024, 256)  # projections wait for compute, attention for memory
    assert serial_seconds(ledger, H100) > 1.2 * overlapped_seconds(ledger, H100)


def test_bound_at_and_around_the_ridge() -> None:
    assert Timing(flops=99, bytes=1, peak=100, bandwidth=1).bound == "memory"
    assert Timing(flops=100, bytes=1, peak=100, bandwidth=1).bound == "compute"
    assert Timing(flops=101, bytes=1, peak=100, bandwidth=1).bound == "compute"


def test_bound_of_symbols_is_refused() -> None:
    with pytest.raises(CostModelError, match=r"what binds depends on \['B', 'S'\]"):
        _ = timing(load("llama-3-8b").decode(B, S), H100).bound


def test_communication_waits_or_hides_and_can_bind() -> None:
    after = Timing(flops=6, bytes=8, peak=2, bandwidth=2, communication_seconds=5)
    beside = Timing(flops=6, bytes=8, peak=2, bandwidth=2, communication_seconds=5, hidden=True)
    assert (after.compute_seconds, after.memory_seconds, after.ridge, after.intensity) == (3, 4, 1, 0.75)
    assert (after.seconds, beside.seconds) == (4 + 5, 5)
    assert after.bound == beside.bound == "communication"
    short = Timing(flops=6, bytes=8, peak=2, bandwidth=2, communication_seconds=4, hidden=True)
    assert (short.seconds, short.bound) == (4, "memory")


def test_symbolic_communication_does_not_claim_to_bind() -> None:
    assert Timing(flops=9, bytes=1, peak=1, bandwidth=1, communication_seconds=B).bound == "compute"


def test_rates_are_those_of_the_dtype() -> None:
    ledger = load("llama-3-8b").prefill(1, 8192)
    gain = H100.peak("fp8") / H100.peak()
    assert timing(ledger, H100).compute_seconds == pytest.approx(gain * timing(ledger, H100, "fp8").compute_seconds)
    assert overlapped_seconds(ledger, H100, "fp8") == timing(ledger, H100, "fp8").seconds
    assert serial_seconds(ledger, H100) > serial_seconds(ledger, H100, "fp8")
    assert attainable(10**6, H100, "fp8") == H100.peak("fp8")
    used = {"params": 10**9, "tokens": 1000, "seconds": 0.1, "accelerator": H100}
    assert model_flops_utilisation(**used) == pytest.approx(gain * model_flops_utilisation(**used, dtype="fp8"))


def test_efficiencies_scale_their_own_rate() -> None:
    ledger = load("llama-3-8b").prefill(1, 8192)
    whole, half = timing(ledger, H100), timing(ledger, H100, compute_efficiency=0.5)
    assert half.compute_seconds == pytest.approx(2 * whole.compute_seconds)
    assert half.memory_seconds == whole.memory_seconds
    assert overlapped_seconds(ledger, H100, compute_efficiency=0.5) == half.seconds
    slower = serial_seconds(ledger, H100, compute_efficiency=0.5, bandwidth_efficiency=0.5)
    assert slower == pytest.approx(2 * serial_seconds(ledger, H100))
    for name, value in (("compute_efficiency", 0), ("bandwidth_efficiency", 0), ("compute_efficiency", 2)):
        with pytest.raises(CostModelError, match=f"^{name} must be above 0 and at most 1, got {value}"):
            serial_seconds(ledger, H100, **{name: value})


def test_attainable_rate_has_a_knee() -> None:
    assert attainable(1, H100) == H100.bandwidth
    assert attainable(10**6, H100) == H100.peak()
    assert attainable(B, SYMBOLIC_ACCELERATOR) == Min(peak, B * memory_bandwidth)


def test_efficiency_is_explicit_and_bounded() -> None:
    ledger = load("llama-3-8b").decode(1, 1024)
    whole, half = timing(ledger, H100), timing(ledger, H100, bandwidth_efficiency=0.5)
    assert half.seconds == pytest.approx(2 * whole.seconds)
    with pytest.raises(CostModelError, match=r"bandwidth_efficiency must be above 0 and at most 1, got 1.2"):
        timing(ledger, H100, bandwidth_efficiency=1.2)


@pytest.mark.parametrize(
    ("tokens", "seconds", "percent"),
    [(2048, 0.29, 43), (64, 0.0284, 14), (512 * 2048, 85.2, 76), (512 * 64, 6.0, 33)],
    ids=["prefill-latency", "decode-latency", "prefill-throughput", "decode-throughput"],
)
def test_palm_540b_utilisation_as_published(tokens: int, seconds: float, percent: int) -> None:
    """R-palm: Pope et al., 2211.05102, table 2: 64 TPU v4; the decode step at batch 64 takes 28.4 ms."""
    chips = accelerator("tpu-v4").times(64)
    found = model_flops_utilisation(params=540 * 10**9, tokens=tokens, seconds=seconds, accelerator=chips)
    assert round(100 * found) == pytest.approx(percent, abs=1)
