"""Which column is what, by the run file and by names."""

from typing import Any

import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.prep.preparing.extraction.column_roles import find_roles
from penstock.prep.sections import SampleSchema
from tests.prep.preparing.extraction.test_columns import LISTS, ROWS


def roles(columns: dict[str, Any], group_key: str | None = None, **declared: Any) -> Any:
    return find_roles(
        pa.table(columns).schema, SampleSchema.model_validate(declared), group_key, "rows.parquet"
    )


def test_names_tell_what_columns_are():
    found = roles(LISTS)

    assert found.features == ("price", "age")
    assert (found.labels, found.masks) == ({"buy": "labels_buy"}, {"buy": "masks_buy"})


def test_the_run_file_tells_what_columns_are():
    columns = {"f_10": [1.0], "f_9": [1.0], "x": [2.0], "bought": [1], "user": ["ann"]}

    found = roles(columns, "user", feature_columns=["x", "f_*"], label_columns={"buy": "bought"})

    assert found.features == ("x", "f_9", "f_10")
    assert found.columns == ("x", "f_9", "f_10", "bought", "user")


@pytest.mark.parametrize(
    ("columns", "declared", "problem"),
    [
        (
            ROWS,
            {"feature_columns": ["prize"]},
            "has no column 'prize', which preprocessing.schema.feature_columns names or the first file has",
        ),
        (
            ROWS,
            {"labels": {"buys": "int16"}},
            "has no column 'buys', which preprocessing.schema.label_columns names or the first file has",
        ),
        (
            ROWS | {"name": ["a"] * 5},
            {},
            "column 'name' holds string, not numbers; name the features in preprocessing.schema.feature_columns",
        ),
        (
            {"labels_buy": [1]},
            {},
            "no column is left for features; name them in preprocessing.schema.feature_columns",
        ),
        (
            ROWS,
            {"feature_columns": ["labels_buy", "age"]},
            "column 'labels_buy' is a feature and a label or mask; leave it out of preprocessing.schema",
        ),
    ],
)
def test_columns_that_are_not_clear(columns: dict, declared: dict, problem: str):
    with pytest.raises(DataError) as error:
        roles(columns, **declared)

    assert str(error.value).startswith(f"rows.parquet: {problem.partition('did you mean')[0]}")


def test_heads_that_are_not_declared_are_heads_too():
    columns = {"price": [1.0], "labels_buy": [1], "labels_sell": [0], "hold": [0], "masks_buy": [[1, 0]]}

    found = roles(columns, labels={"hold": "int32", "sell": "int32"}, masks={})

    assert found.labels == {"hold": "hold", "sell": "labels_sell", "buy": "labels_buy"}
    assert (found.features, found.masks) == (("price",), {"buy": "masks_buy"})


def test_a_label_is_no_feature_though_no_head_has_it():
    columns = {"price": [1.0], "labels_buy": [1], "labels_sell": [0], "masks_buy": [[1, 0]]}

    found = roles(columns, label_columns={"buy": "labels_buy"}, mask_columns={"buy": "masks_buy"})

    assert (found.features, found.labels) == (("price",), {"buy": "labels_buy"})
