"""The memory section."""

import pytest
from pydantic import ValidationError

from penstock.config.sizes import GIB
from penstock.runtime.sections import MemorySection, OnExceed


def test_a_limit_is_a_size():
    section = MemorySection.model_validate({"limit": "4GiB", "on_exceed": "warn"})

    assert section.limit == 4 * GIB
    assert section.on_exceed is OnExceed.warn


def test_a_limit_without_a_unit_is_likely_a_mistake():
    with pytest.raises(ValidationError, match="is 4 bytes; a run needs at least 16MiB"):
        MemorySection.model_validate({"limit": 4})
