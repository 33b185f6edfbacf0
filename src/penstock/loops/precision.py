"""What a model computes in: float32, or where that is enough 16 bits."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from penstock.config.errors import ConfigError
from penstock.loops.sections import TrainConfig

PRECISIONS = {"BF16": torch.bfloat16, "FP16": torch.float16}
"""What autocast computes in, by the name in the run file."""

_CURES = {
    torch.bfloat16: "leave it out, or set the environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16",
    torch.float16: "leave it out, or use BF16",
}
"""What to do where a processor has no arithmetic for a precision, though torch thinks so."""


@contextmanager
def computing_in(precision: torch.dtype | None, device: torch.device) -> Iterator[None]:
    """Autocast, or nothing; what a processor cannot do in this precision is told as what it is."""
    try:
        with torch.autocast(device.type, precision, enabled=precision is not None):
            yield
    except RuntimeError as error:
        if precision is None or "could not create a primitive" not in str(error):
            raise
        name = next(name for name, dtype in PRECISIONS.items() if dtype is precision)
        raise ConfigError.at(
            "train_config.mixed_precision",
            f"torch cannot compute this model in {name} on this processor; {_CURES[precision]}",
        ) from error


@contextmanager
def tensor_float_32(train: TrainConfig | None) -> Iterator[None]:
    """Inside, a GPU computes float32 products in TF32 where the run file lets it; CPUs have no such thing."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    if train is not None:
        _allow_tf32(train.cudnn_allow_tf32, train.cuda_matmul_allow_tf32)
    try:
        yield
    finally:
        _allow_tf32(*before)


def _allow_tf32(in_convolutions: bool, in_products: bool) -> None:
    torch.backends.cudnn.allow_tf32 = in_convolutions
    torch.backends.cuda.matmul.allow_tf32 = in_products
