"""Features in arrays of their own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.prep.extract import split_features
from penstock.prep.merge.merging import merge
from penstock.prep.prepare import prepare
from penstock.prep.sections import SampleSchema
from penstock.prep.tasks import FileFailed
from tests.prep.raw import prepared_arrays, section, write_games


def declared(**groups: Any) -> SampleSchema:
    return SampleSchema(features_name="seen", feature_groups=groups)


def test_groups_of_columns_need_columns():
    with pytest.raises(DataError) as error:
        split_features({"features": [1]}, "features", declared(prices=["price_*"]), "game.txt: sample 3", 0)

    assert str(error.value) == (
        "game.txt: sample 3: preprocessing.schema.feature_groups: 'prices' names columns, but there are none here; "
        "say how many features it has"
    )


GROUPS = {"schema": {"feature_groups": {"place": 2}}, "feature_dtypes": {"place": "float16"}}


@pytest.mark.parametrize("function", ["samples", "arrays", "nested", "batches"])
def test_each_group_has_its_file_and_its_type(desk: Path, function: str):
    write_games(desk / "raw", [3, 6])

    summary = prepare(section(desk, extract=f"rawgame:{function}", **GROUPS))
    merge(desk / "batches", desk / "store")

    place, rest = (np.load(desk / "store" / name) for name in ("X_place_train.npy", "X_train.npy"))
    assert (place.dtype, rest.dtype) == ("float16", "float32")
    assert place[:4].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0]]
    assert rest[:4].tolist() == [[0.5], [1.5], [2.5], [1000.5]]
    assert summary.largest_errors == {"strategic_features_place": 0.0}


def test_a_number_too_large_for_the_type_of_its_group_is_told(desk: Path):
    (desk / "raw").mkdir()
    (desk / "raw" / "game_0.txt").write_text("0 1 1 99999\n1 1 99999 1\n")

    with pytest.raises(FileFailed, match=r"game_0\.txt: sample 1: strategic_features_place\[1\]: .*float16"):
        prepare(section(desk, **GROUPS))


def test_a_sample_with_other_features_is_told(desk: Path):
    (desk / "raw").mkdir()
    (desk / "raw" / "game_0.txt").write_text("0 1 1\n1 1 2 3\n")

    with pytest.raises(FileFailed, match=r"sample 1: features: has 1 that no array of the schema takes"):
        prepare(section(desk, **GROUPS))
    (desk / "raw" / "game_0.txt").write_text("0 1 1 1\n1 1\n")
    with pytest.raises(FileFailed, match=r"sample 1: features: has 1, but the groups of .*groups are 2"):
        prepare(section(desk, **GROUPS), restart=True)


def test_columns_in_groups(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("price_2,x,price_10,action\n1.5,2,3.5,1\n4,5,6,0\n")
    schema = {"feature_groups": {"prices": ["price_*"]}, "labels": {"action": "int16"}}

    prepare(section(tmp_path, extract=None, schema=schema, feature_dtypes={"prices": "float16"}))

    assert {name: array.tolist() for name, array in prepared_arrays(tmp_path / "batches").items()} == {
        "strategic_features": [[2], [5]],
        "strategic_features_prices": [[1.5, 3.5], [4, 6]],
        "labels_action": [1, 0],
    }
