"""The preprocessing section."""

from typing import Any

import pytest
from pydantic import ValidationError

from penstock.prep.sections import Preprocessing

PRICES = {"feature_groups": {"prices": 2}}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"splits": {"train": 0.9}}, r"add up to 1\.1; they must add up to 1"),
    ({"splits": {"by": "group"}}, "by: group needs group_key"),
    ({"schema": {"labels": {"action": "bool"}}}, "there is no type 'bool'"),
    ({"schema": {"feature_groups": {"a/b": 2}}}, "should match pattern"),
    ({"compression_level": 3}, "compression_level without compression changes nothing; leave it out"),
    (
        {"layout": "npz", "compression": "zstd"},
        "layout npz cannot have compression zstd: NumPy reads none and",
    ),
    (
        {"target": "ipc", "compression": "zlib"},
        "target ipc cannot have compression zlib; choose zstd, lz4 or",
    ),
    (
        {"feature_dtypes": {"price": "float16"}},
        r"no group 'price' in schema\.feature_groups; a single type for",
    ),
    (
        {"feature_dtypes": {"price": "float16"}, "schema": PRICES},
        r"no group 'price' in .*; did you mean 'prices'\?",
    ),
]


@pytest.mark.parametrize(("keys", "message"), REFUSED)
def test_keys_that_do_not_fit(keys: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        Preprocessing.model_validate(keys)


@pytest.mark.parametrize("given", [[0, 3], [], 0, True])
def test_a_group_is_a_count_or_names(given: Any):
    with pytest.raises(ValidationError) as error:
        Preprocessing.model_validate({"schema": {"feature_groups": {"economy": given}}})

    [problem] = error.value.errors()
    assert problem["msg"] == (
        f"Value error, is {given!r}; give how many features, from the first on, or a list of names of columns"
    )
