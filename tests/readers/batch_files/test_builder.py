"""A builder gives one batch after the other out of the same memory."""

import tracemalloc

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.readers.samples import BatchBuilder, arrays_to_samples
from penstock.readers.store_schema import ArraySpec, StoreSchema, sample_schema
from tests.readers.batch_files.samples import assert_same, game_arrays

SCHEMA = sample_schema(6, ["action_type", "target"], {"action_type": 4, "target": 3})


def test_batches_are_views_of_the_same_arrays():
    arrays = game_arrays(5)
    builder = BatchBuilder(SCHEMA, batch_size=3)
    batches = []
    for sample in arrays_to_samples(arrays):
        builder.add(sample)
        if builder.full:
            batches.append(builder.take())
    first_room = batches[0]["strategic_features"].base
    rest = builder.take()

    assert len(builder) == 0
    assert rest["strategic_features"].base is first_room
    assert_same(rest, {name: array[3:] for name, array in arrays.items()})


@pytest.mark.parametrize("kind", [list, np.float64])
def test_memory_does_not_grow_with_the_number_of_batches(kind):
    schema = sample_schema(1000, [], {})
    features = [0.5] * 1000 if kind is list else np.full(1000, 0.5, kind)
    builder = BatchBuilder(schema, batch_size=50)
    fill_and_take(builder, features)

    tracemalloc.start()
    for _ in range(10):
        fill_and_take(builder, features)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 100_000


def fill_and_take(builder, features):
    while not builder.full:
        builder.add({"features": features})
    return builder.take()


def test_numbers_of_samples_go_on_over_batches_or_are_given():
    builder = BatchBuilder(sample_schema(1, [], {}), batch_size=1)
    builder.add({"features": [1]})
    with pytest.raises(
        ValueError, match=r"^the batch is full with 1 samples; take it before another is added$"
    ):
        builder.add({"features": [2]})
    assert builder.take()["strategic_features"].tolist() == [[1]]

    with pytest.raises(DataError, match=r"^sample 1: features: has 2 values, not 1$"):
        builder.add({"features": [1, 2]})
    with pytest.raises(DataError, match=r"^b\.rep: sample 7: features: has 2 values, not 1$"):
        builder.add({"features": [1, 2]}, file="b.rep", number=7)


def test_a_refused_sample_leaves_no_trace():
    builder = BatchBuilder(sample_schema(1, ["move"], {}), batch_size=3)
    good, bad = {"features": np.array([1]), "labels": {"move": 1}}, {"features": np.array([9]), "labels": {}}
    for sample in (good, bad, {"features": [2], "labels": {"move": 2}}, good):
        try:
            builder.add(sample)
        except DataError:
            assert sample is bad

    assert builder.take()["strategic_features"].tolist() == [[1], [2], [1]]


def test_other_arrays_of_the_schema_come_by_their_names():
    schema = StoreSchema((*sample_schema(1, [], {}).arrays, ArraySpec("groups", np.dtype(np.uint64))))
    builder = BatchBuilder(schema, batch_size=1)
    builder.add({"features": [1], "groups": (1 << 64) - 1})

    assert builder.take()["groups"].tolist() == [(1 << 64) - 1]
    with pytest.raises(DataError, match="sample 1: has no 'groups'"):
        builder.add({"features": [1]})


def test_whole_arrays_fill_batches_too():
    arrays = game_arrays(7)
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    builder = BatchBuilder(SCHEMA, batch_size=4)

    assert builder.add_arrays(wide) == 4
    assert_same(builder.take(), {name: array[:4] for name, array in arrays.items()})
    assert builder.add_arrays(wide, first=4) == 3
    assert builder.add_arrays(wide) == 1
    assert builder.full


def test_whole_arrays_that_do_not_fit():
    builder = BatchBuilder(SCHEMA, batch_size=4)
    arrays = game_arrays(3)

    with pytest.raises(DataError, match=r"^a\.npy: array 'labels_target' is missing$"):
        builder.add_arrays({key: arrays[key] for key in arrays if key != "labels_target"}, file="a.npy")
    with pytest.raises(DataError, match=r"^array 'more' is not in the schema$"):
        builder.add_arrays(arrays | {"more": np.zeros(3)})
    with pytest.raises(DataError, match=r"sample 0: array 'masks_target': has 2 values, not 3"):
        builder.add_arrays(arrays | {"masks_target": np.zeros((3, 2))})
    with pytest.raises(DataError, match=r"array 'masks_target' has 2 samples, but others have 3"):
        builder.add_arrays(arrays | {"masks_target": np.zeros((2, 3))})
    for label, problem in {32768: "32768 does not fit int16", 0.5: "0.5 is no whole number"}.items():
        with pytest.raises(
            DataError, match=f"sample 2: array 'labels_target': {problem}.*; declare another type"
        ):
            builder.add_arrays(arrays | {"labels_target": np.array([0, 1, label])}, file="a.npy")
    assert builder.add_arrays(arrays, first=3) == 0
    assert builder.add_arrays(arrays) == 3
    assert_same(builder.take(), arrays)


def test_float16_reports_its_largest_error():
    schema = sample_schema(2, [], {}, feature_dtype=np.float16)
    builder = BatchBuilder(schema, batch_size=3)
    builder.add({"features": [1.0, 2049.0]})
    builder.add({"features": np.array([0.5, 0.25])})

    assert builder.take()["strategic_features"].tolist() == [[1.0, 2048.0], [0.5, 0.25]]
    assert builder.largest_errors == {"strategic_features": 1.0}
    with pytest.raises(
        DataError, match=r"a\.rep: sample 2: features\[1\]: 65520\.0 does not fit float16 \(at most 65504\)"
    ):
        builder.add({"features": [1.0, 65520.0]}, file="a.rep")


def test_features_that_no_array_takes_are_not_lost_in_silence():
    builder = BatchBuilder(StoreSchema((ArraySpec("elo", np.dtype("float32")),)), 4)
    builder.add({"elo": 1.5, "features": []})

    with pytest.raises(DataError, match=r"^sample 1: features: has 2 that no array of the schema takes$"):
        builder.add({"elo": 1.5, "features": [1, 2]})
