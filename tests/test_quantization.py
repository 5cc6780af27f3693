"""What fewer bits buy, as algebra: bytes with scales, and a speed-up that is never more than the bytes saved."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel import Deployment, accelerator, load
from costmodel.common.errors import CostModelError
from costmodel.common.formats import number_format
from costmodel.lab.quantization import Scheme
from costmodel.quantization import byte_ratio, effective_bits, weight_width
from costmodel.symbols import bits, group, scale_bits

LLAMA, H100 = load("llama-3-8b"), accelerator("h100-sxm")


def test_effective_bits() -> None:
    assert effective_bits() == bits + scale_bits / group
    assert effective_bits(4, 128, 16) == Fraction(33, 8)
    assert effective_bits(4, 32, 32) == 5  # Q4_1, and gpt-fast's groups of 32 with scale and zero
    assert weight_width(4, 32, 8) == number_format("mxfp4").bytes == Fraction(17, 32)
    assert weight_width(4, 16, 8) == number_format("nvfp4").bytes
    assert weight_width() == (bits + scale_bits / group) / 8
    for sizes, refused in (((4, 0, 16), "group"), ((-4, 128, 16), "bits"), ((4, 128, -16), "scale_bits")):
        with pytest.raises(CostModelError, match=f"^{refused} must be a "):
            effective_bits(*sizes)


@given(st.integers(1, 8), st.integers(1, 300), st.integers(1, 40))
def test_the_lab_counts_the_same_bits(width: int, size: int, groups: int) -> None:
    scheme = Scheme(width, size, scale_bits=16)
    assert scheme.effective_bits(columns=size * groups) == effective_bits(width, size, 16)
    lopsided = Scheme(width, size, symmetric=False, scale_bits=16)
    assert lopsided.effective_bits(columns=size * groups) == effective_bits(width, size, 16 + width)


@given(
    st.sampled_from(["int8", "int4", "int3", "fp8", "mxfp4", weight_width(4, 128, 16)]),
    st.integers(1, 2000),
    st.integers(1, 32_000),
)
def test_the_speed_up_is_at_most_the_byte_ratio(weights: object, batch: int, context: int) -> None:
    wide, narrow = (Deployment(LLAMA, H100, weights=w) for w in ("bf16", weights))
    ledgers = [LLAMA.decode(batch, context).sized(d.widths) for d in (wide, narrow)]
    speed_up = wide.decode(batch, context).seconds_per_token / narrow.decode(batch, context).seconds_per_token
    assert speed_up * (1 + 1e-12) >= 1
    assert speed_up <= float(byte_ratio(*ledgers)) * (1 + 1e-12)
    assert byte_ratio(*ledgers) <= wide.weight_bytes / narrow.weight_bytes * (1 + 1e-12)


def test_more_bytes_slow_down_by_at_most_the_byte_ratio() -> None:
    for batch in (1, 200, 4096):
        narrow, wide = (Deployment(LLAMA, H100, weights=w) for w in ("int4", "bf16"))
        times = narrow.decode(batch, 16).seconds_per_token / wide.decode(batch, 16).seconds_per_token
        ratio = float(byte_ratio(*(LLAMA.decode(batch, 16).sized(d.widths) for d in (narrow, wide))))
        assert ratio * (1 - 1e-12) <= times <= 1


def test_a_full_batch_gains_nothing() -> None:
    wide, narrow = (Deployment(LLAMA, H100, weights=w).decode(4096, 16) for w in ("bf16", "int4"))
    assert wide.bound == narrow.bound == "compute"
    assert wide.seconds_per_token == narrow.seconds_per_token
    lone, quick = (Deployment(LLAMA, H100, weights=w).decode(1, 16) for w in ("bf16", "int4"))
    assert lone.seconds_per_token / quick.seconds_per_token == pytest.approx(4, rel=0.01)


def test_different_work_is_refused() -> None:
    with pytest.raises(CostModelError, match="the same work"):
        byte_ratio(LLAMA.decode(1, 10), LLAMA.decode(2, 10))
