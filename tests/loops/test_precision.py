"""What a processor cannot compute in 16 bits is told with its cure; other errors stay what they are."""

import pytest
import torch

from penstock.config.errors import ConfigError
from penstock.loops.step import computing_in

CPU = torch.device("cpu")


def test_a_processor_without_the_kernel_is_told_what_to_set() -> None:
    with (
        pytest.raises(ConfigError, match=r"mixed_precision: .* ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"),
        computing_in(torch.bfloat16, CPU),
    ):
        raise RuntimeError("could not create a primitive")


@pytest.mark.parametrize(
    ("precision", "problem"), [(None, "could not create a primitive"), (torch.bfloat16, "size mismatch")]
)
def test_other_errors_stay_what_they_are(precision: torch.dtype | None, problem: str) -> None:
    with pytest.raises(RuntimeError, match=problem), computing_in(precision, CPU):
        raise RuntimeError(problem)


def test_products_are_of_the_precision() -> None:
    ones = torch.ones(2, 2)
    with computing_in(torch.bfloat16, CPU):
        assert (ones @ ones).dtype == torch.bfloat16
    with computing_in(None, CPU):
        assert (ones @ ones).dtype == torch.float32
