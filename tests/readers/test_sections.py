"""The part of data_config about reading files."""

import pytest
from pydantic import ValidationError

from penstock.readers.sections import Field, FieldType, ReadingSection, parse_fields


def test_columns_may_be_declared_in_one_text():
    assert parse_fields("a:BIGINT;b:ARRAY<STRING>; c:INT ;d:MAP<STRING,DOUBLE>;e:ARRAY<ARRAY<FLOAT>>") == [
        Field(input_name="a", input_type=FieldType.INT64),
        Field(input_name="b", input_type=FieldType.ARRAY_STRING),
        Field(input_name="c", input_type=FieldType.INT32),
        Field(input_name="d", input_type=FieldType.MAP_STRING_DOUBLE),
        Field(input_name="e", input_type=FieldType.ARRAY_ARRAY_FLOAT),
    ]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"input_fields_str": "a"}, "has 'a'; expected name:TYPE, separated by ';'"),
        ({"input_fields_str": "a:BIGIN"}, "has the unknown type 'BIGIN'"),
        ({"input_fields": [{"input_name": "a"}], "input_fields_str": "a:STRING"}, "name 'a' more than once"),
        ({"delimiter": "::"}, "is '::'; columns are separated by one character"),
    ],
)
def test_what_is_refused(section, message):
    with pytest.raises(ValidationError, match=message):
        ReadingSection.model_validate(section)


def test_both_ways_to_declare_columns_are_joined():
    section = ReadingSection.model_validate(
        {"input_fields": [{"input_name": "a"}], "input_fields_str": "b:STRING"}
    )

    assert [field.input_name for field in section.resolved_input_fields()] == ["a", "b"]


def test_the_old_name_of_odps_tables_is_the_same():
    section = ReadingSection.model_validate({"dataset_type": "OdpsDatasetV1"})

    assert section.dataset_type == "OdpsDataset"
