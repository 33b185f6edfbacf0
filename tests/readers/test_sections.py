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
    ("text", "message"),
    [
        ("a", "has 'a'; expected name:TYPE, separated by ';'"),
        ("a:BIGIN", "has the unknown type 'BIGIN'"),
    ],
)
def test_a_column_that_cannot_be_read_is_told(text, message):
    with pytest.raises(ValidationError, match=message):
        ReadingSection.model_validate({"input_fields_str": text})


def test_both_ways_to_declare_columns_are_joined():
    section = ReadingSection.model_validate(
        {"input_fields": [{"input_name": "a"}], "input_fields_str": "b:STRING"}
    )

    assert [field.input_name for field in section.resolved_input_fields()] == ["a", "b"]


def test_a_column_is_declared_once():
    with pytest.raises(ValidationError, match="name 'a' more than once"):
        ReadingSection.model_validate({"input_fields": [{"input_name": "a"}], "input_fields_str": "a:STRING"})


def test_the_old_name_of_odps_tables_is_the_same():
    assert ReadingSection.model_validate({"dataset_type": "OdpsDatasetV1"}).dataset_type == "OdpsDataset"


def test_kafka_is_refused_by_name():
    with pytest.raises(ValidationError, match="KafkaDataset is not supported"):
        ReadingSection.model_validate({"dataset_type": "KafkaDataset"})


def test_a_delimiter_is_one_character():
    assert ReadingSection.model_validate({"delimiter": "\t"}).delimiter == "\t"
    with pytest.raises(ValidationError, match="is '::'; columns are separated by one character"):
        ReadingSection.model_validate({"delimiter": "::"})
