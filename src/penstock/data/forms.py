"""In which form elements are given out."""

from enum import Enum
from importlib import import_module
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
        # By name: data stands below the first package that knows torch.
        finish: Finish = import_module("penstock.tensors.dataset").tensors_of
        return finish
    if form is Form.NUMPY:
        return _as_it_is
    if not chain.maps:
        return None
    from penstock.data.arrow_numpy import record_batch_of

    return record_batch_of


def _as_it_is(columns: Any) -> Any:
    return columns
