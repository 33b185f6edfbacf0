import pyarrow as pa
import pytest

from penstock.config.errors import ConfigError
from penstock.readers.sections import parse_fields as parse_field_texts
from penstock.readers.tfrecord.features import Feature, parse_fields, parse_schema


def test_a_schema_in_python():
    features = parse_schema(
        {
            "label": "int64",
            "features": ("float32", 10),
            "shape": ("float32", (10,)),
            "ids": ["int64"],
            "age": ("int64", (), -1),
            "tags": Feature("string", "any"),
        }
    )

    assert [feature.arrow_type for feature in features.values()] == [
        pa.int64(),
        pa.list_(pa.float32(), 10),
        pa.list_(pa.float32(), 10),
        pa.list_(pa.int64()),
        pa.int64(),
        pa.list_(pa.string()),
    ]
    assert features["age"].default == -1


def test_all_problems_of_a_schema_are_told_at_once():
    with pytest.raises(ConfigError) as error:
        parse_schema(
            {
                "a": "int46",
                "b": ("float32", 0),
                "c": ("float32", (2, 3)),
                "d": [],
                "e": ("int64", (), "zero"),
                "fine": "int64",
            }
        )

    advice = 'write "int64", ("float32", 10), ["int64"] or ("int64", (), 0) with a default'
    assert str(error.value).splitlines() == [
        "5 problems:",
        "  schema['a']: the type 'int46' is unknown; did you mean 'int64'?",
        "  schema['b']: the length 0 is neither a number above 0 nor \"any\"",
        "  schema['c']: the shape (2, 3) has several dimensions; give the number of values, and reshape",
        f"  schema['d']: [] is not a type; {advice}",
        "  schema['e']: the default 'zero' is no int64",
    ]


def test_the_fields_of_a_run_file():
    fields = parse_field_texts("a:BIGINT;b:FLOAT;c:STRING;d:ARRAY<INT>;e:MAP<STRING,DOUBLE>")

    assert parse_fields(fields) == {
        "a": Feature("int64"),
        "b": Feature("float32"),
        "c": Feature("string"),
        "d": Feature("int32", "any"),
        "e": Feature("string"),
    }
