"""The preprocessing section."""

import pytest
from pydantic import ValidationError

from penstock.prep.sections import Preprocessing


def test_splits_add_up():
    assert Preprocessing.model_validate({"splits": {}}).splits.train == 0.8
    with pytest.raises(ValidationError, match=r"add up to 1\.1; they must add up to 1"):
        Preprocessing.model_validate({"splits": {"train": 0.9}})


def test_splits_by_group_need_a_key():
    with pytest.raises(ValidationError, match="by: group needs group_key"):
        Preprocessing.model_validate({"splits": {"by": "group"}})


def test_a_schema_may_be_declared():
    section = Preprocessing.model_validate({"schema": {"labels": {"action": "int16"}}})

    assert section.sample_schema.labels == {"action": "int16"}


def test_a_type_that_is_not_there():
    with pytest.raises(ValidationError, match=r"there is no type 'int17'; did you mean 'int16'\?"):
        Preprocessing.model_validate({"schema": {"labels": {"action": "int17"}}})
