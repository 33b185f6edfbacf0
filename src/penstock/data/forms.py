"""In which form elements are given out."""

from enum import Enum
from typing import Any

from penstock.data.chain import Chain
from penstock.data.elements import Finish


class Form(Enum):
    """Dicts of NumPy arrays, Arrow record batches, or dicts of tensors."""

    NUMPY = "numpy"
    ARROW = "arrow"
    TORCH = "torch"


def finish_of(form: Form, chain: Chain) -> Finish | None:
    """What is made of each dict of arrays; None: record batches are given out before they become one."""
    if form is Form.TORCH:
        from penstock.tensors.dataset import tensors_of

        return tensors_of
    if form is Form.NUMPY:
        return _as_it_is
    if not chain.maps:
        return None
    from penstock.data.arrow_numpy import record_batch_of

    return record_batch_of


def _as_it_is(columns: Any) -> Any:
    return columns
