"""The schema that the first sample tells, in whichever form it comes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.prep.extract import Extraction
from penstock.prep.schema import feature_types, found_in
from penstock.prep.sections import Preprocessing, SampleSchema
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection

LABELS: list[Any] = []


def samples(path: str) -> Iterator[Any]:
    for label in LABELS:
        yield {"features": [1.0], "labels": {"a": label, "b": 1}}


def arrays(path: str) -> Iterator[Any]:
    yield {
        "features": np.ones((len(LABELS), 1)),
        "labels": {"a": np.array(LABELS), "b": np.ones(len(LABELS), int)},
    }


def batches(path: str) -> Iterator[Any]:
    ones = np.ones(len(LABELS))
    yield pa.record_batch({"x": ones, "labels_a": np.array(LABELS), "labels_b": ones.astype(int)})


def label_types(form: str, labels: list[Any], **declared: str) -> tuple[str, str]:
    LABELS[:] = labels
    schema = SampleSchema(labels=declared)
    extraction = Extraction(f"{__name__}:{form}", schema, ReadingSection())
    found = found_in(DataFile("game", 1), extraction, {"strategic_features": "float32"})
    assert found is not None
    return str(found[1].spec("labels_a").dtype), str(found[1].spec("labels_b").dtype)


@pytest.mark.parametrize("form", ["samples", "arrays", "batches"])
def test_labels_have_the_declared_type_or_the_one_that_the_first_sample_needs(form: str):
    for labels, dtype in (
        ([3, 70_000], "int16"),
        ([70_000], "int64"),
        ([0.5], "float32"),
        ([1e9 + 0.5], "float64"),
    ):
        assert label_types(form, labels) == (dtype, "int16")
    assert label_types(form, [70_000, 1], a="uint32") == ("uint32", "int16")
    assert label_types(form, [70_000, 1], b="float64") == ("int64", "float64")


def preprocessing(**keys: Any) -> Preprocessing:
    return Preprocessing.model_validate(keys)


def test_groups_of_features_have_types_of_their_own():
    section = preprocessing(
        use_float32=False,
        schema={"features_name": "seen", "feature_groups": {"board": 9, "prices": ["price_*"]}},
        feature_dtypes={"prices": "float16"},
    )

    assert feature_types(section) == {"seen": "float64", "seen_board": "float64", "seen_prices": "float16"}
