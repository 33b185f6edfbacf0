"""What a processor cannot compute in 16 bits is told with its cure; other errors stay what they are."""

import pytest
import torch

from penstock.config.errors import ConfigError
from penstock.training.precision import computing_in, tensor_float_32
from tests.training.test_sections import train_config

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("precision", "told"),
    [
        (torch.bfloat16, "in BF16 on this processor; .* ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"),
        (torch.float16, "in FP16 on this processor; leave it out, or use BF16"),
    ],
)
def test_a_processor_without_the_kernel_is_told_what_to_set(precision: torch.dtype, told: str) -> None:
    with pytest.raises(ConfigError, match=rf"mixed_precision: .* {told}"), computing_in(precision, CPU):
        raise RuntimeError("could not create a primitive")


@pytest.mark.parametrize(
    ("precision", "problem"), [(None, "could not create a primitive"), (torch.bfloat16, "size mismatch")]
)
def test_other_errors_stay_what_they_are(precision: torch.dtype | None, problem: str) -> None:
    with pytest.raises(RuntimeError, match=problem), computing_in(precision, CPU):
        raise RuntimeError(problem)


@pytest.mark.parametrize(
    ("precision", "found"),
    [(torch.bfloat16, torch.bfloat16), (torch.float16, torch.float16), (None, torch.float32)],
)
def test_products_are_of_the_precision(precision: torch.dtype | None, found: torch.dtype) -> None:
    ones = torch.ones(2, 2)
    with computing_in(precision, CPU):
        assert (ones @ ones).dtype == found


def test_tf32_is_allowed_where_the_run_file_says_so_and_only_there() -> None:
    def allowed() -> tuple[bool, bool]:
        return torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32

    before = allowed()
    with tensor_float_32(train_config(num_steps=1, cudnn_allow_tf32=False, cuda_matmul_allow_tf32=True)):
        assert allowed() == (False, True)
    assert allowed() == before == (True, False)
    with tensor_float_32(None):
        assert allowed() == before
