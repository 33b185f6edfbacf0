"""The fast path gives what the features give, or declines."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.features import build_features, fast_path
from penstock.features.parser import Parser
from penstock.features.sections import FeatureConfig, ParsingSection
from penstock.tensors.loader import pack

IDS = [
    {"id_feature": {"feature_name": f"id_{place}", "num_buckets": 10, "embedding_dim": 4}}
    for place in range(3)
]
NUMBERS = [
    {"raw_feature": {"feature_name": "plain"}},
    {"raw_feature": {"feature_name": "filled", "fg_encoded_default_value": "0.5"}},
]


def parser_of(*configs: dict, mode: str = "FG_NONE") -> Parser:
    features = []
    for config in configs:
        kind, options = next(iter(config.items()))
        named = {"expression": f"user:{options['feature_name']}"} | options
        features.append(FeatureConfig.model_validate({kind: named}))
    return Parser(build_features(features, ParsingSection(fg_mode=mode)), file_paths=["a.parquet"])


def batch_of(ids: list[list[int]], numbers: list[float], nullable: list[float | None]) -> pa.RecordBatch:
    columns = {f"id_{place}": pa.array(values, pa.int64()) for place, values in enumerate(ids)}
    columns |= {"plain": pa.array(numbers, pa.float32()), "filled": pa.array(nullable, pa.float32())}
    return pa.RecordBatch.from_pydict(columns)


@pytest.fixture(autouse=True)
def small_batches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_path, "_MIN_ROWS", 1)


FLOATS = st.floats(-5, 5, width=32)


@settings(max_examples=30)
@given(num_rows=st.integers(1, 100), start=st.integers(0, 20), data=st.data())
def test_the_lane_packs_the_same_batch(num_rows: int, start: int, data: st.DataObject) -> None:
    def values(strategy: st.SearchStrategy) -> list:
        size = num_rows + start
        return data.draw(st.lists(strategy, min_size=size, max_size=size))

    ids = [values(st.integers(0, 9)) for _ in range(3)]
    batch = batch_of(ids, values(FLOATS), values(st.none() | FLOATS)).slice(start)
    parser = parser_of(*IDS, *NUMBERS)
    fast = parser.parse(batch)
    parser.fast_path = None
    slow = parser.parse(batch)

    assert fast.plain is not None
    assert not fast.features
    one, other = pack(fast).to_dict(), pack(slow).to_dict()
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name].numpy(), other[name].numpy()) for name in one)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id_1": pa.array([1, 10], pa.int64())}, r"row 1: column 'id_1': value 10 is outside 0 to 9"),
        ({"plain": pa.array([1.0, None], pa.float32())}, r"column 'plain'.*it is missing"),
    ],
    ids=["too large", "null without a default"],
)
def test_what_is_wrong_is_told_as_ever(change: dict, problem: str) -> None:
    batch = batch_of([[1, 2], [3, 4], [5, 6]], [0.5, 1.5], [None, 2.5])
    columns = dict(zip(batch.schema.names, batch.columns, strict=True)) | change
    parser = parser_of(*IDS, *NUMBERS)

    with pytest.raises(DataError, match=problem):
        parser.parse(pa.RecordBatch.from_pydict(columns))


def test_nulls_in_other_rows_of_a_column_do_not_matter() -> None:
    parser = parser_of(*IDS, *NUMBERS)
    batch = batch_of([[None, 1, 2, None], [3] * 4, [5] * 4], [0.5] * 4, [None, 2.5] * 2)

    assert parser.parse(batch).plain is None
    assert parser.parse(batch.slice(1, 2)).plain.ids[:2].tolist() == [1, 2]
