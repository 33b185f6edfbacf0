"""The preprocessing section."""

from typing import Any

import pytest
from pydantic import ValidationError

from penstock.prep.sections import Preprocessing


def test_splits_add_up():
    assert Preprocessing.model_validate({"splits": {}}).splits.train == 0.8
    with pytest.raises(ValidationError, match=r"add up to 1\.1; they must add up to 1"):
        Preprocessing.model_validate({"splits": {"train": 0.9}})

    with pytest.raises(ValidationError, match="by: group needs group_key"):
        Preprocessing.model_validate({"splits": {"by": "group"}})


def test_masks_may_be_of_bool_and_labels_not():
    section = Preprocessing.model_validate({"schema": {"mask_dtype": "bool"}})

    assert section.sample_schema.mask_dtype == "bool"
    with pytest.raises(ValidationError, match="there is no type 'bool'"):
        Preprocessing.model_validate({"schema": {"labels": {"action": "bool"}}})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"compression_level": 3}, "compression_level without compression changes nothing; leave it out"),
        (
            {"layout": "npz", "compression": "zstd"},
            "layout npz cannot have compression zstd: NumPy reads none and",
        ),
        (
            {"target": "ipc", "compression": "zlib"},
            "target ipc cannot have compression zlib; choose zstd, lz4 or",
        ),
    ],
)
def test_compression_that_means_nothing(keys: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        Preprocessing.model_validate(keys)


def test_types_are_for_groups_that_there_are():
    with pytest.raises(
        ValidationError, match=r"no group 'price' in schema\.feature_groups; a single type for all"
    ):
        Preprocessing.model_validate({"feature_dtypes": {"price": "float16"}})
    declared = {"schema": {"feature_groups": {"prices": 2}}, "feature_dtypes": {"price": "float16"}}
    with pytest.raises(ValidationError, match=r"no group 'price' in .*; did you mean 'prices'\?"):
        Preprocessing.model_validate(declared)
    with pytest.raises(ValidationError, match="should match pattern"):
        Preprocessing.model_validate({"schema": {"feature_groups": {"a/b": 2}}})


@pytest.mark.parametrize("given", [[0, 3], [], 0, True])
def test_a_group_is_a_count_or_names(given: Any):
    with pytest.raises(ValidationError) as error:
        Preprocessing.model_validate({"schema": {"feature_groups": {"economy": given}}})

    [problem] = error.value.errors()
    assert problem["msg"] == (
        f"Value error, is {given!r}; give how many features, from the first on, or a list of names of columns"
    )
