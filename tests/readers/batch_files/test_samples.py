"""Samples -> arrays -> samples: types, ranges, widths and heads are enforced, and errors say where."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.readers.samples import (
    BatchBuilder,
    arrays_to_samples,
    inferred_schema,
    label_type,
    samples_to_arrays,
)
from penstock.readers.store_schema import ArrayNames, ArraySpec, StoreSchema, sample_schema
from tests.readers.batch_files.samples import assert_same, game_arrays

SCHEMA = sample_schema(3, ["move"], {"move": 2})
GAME = sample_schema(6, ["action_type", "target"], {"action_type": 4, "target": 3})
CURE = "; declare another type in preprocessing.schema.labels"


def sample(features=(1.0, 2.0, 3.0), label=1, mask=(1, 0)):
    return {"features": features, "labels": {"move": label}, "masks": {"move": mask}}


def test_other_names_and_types():
    names = ArrayNames(features="board", labels="y_", masks="legal_")
    schema = inferred_schema(sample(), names=names, feature_dtype=np.float64, label_dtype="uint8")

    arrays = samples_to_arrays([sample([0.1, 0.2, 0.3], 255)], schema)

    types = [(name, str(array.dtype)) for name, array in arrays.items()]
    assert types == [("board", "float64"), ("y_move", "uint8"), ("legal_move", "int8")]
    assert list(arrays_to_samples(arrays, names=names)) == [sample([0.1, 0.2, 0.3], 255, [1, 0])]


@pytest.mark.parametrize("mask", [[True, False], (1.0, 0.0), np.array([1.0, 0.0]), np.array([1, 0], ">i4")])
@pytest.mark.parametrize("mask_dtype", ["int8", "bool", ">i2"])
def test_whatever_means_the_same_numbers_is_taken(mask, mask_dtype):
    schema = sample_schema(3, ["move"], {"move": 2}, mask_dtype=mask_dtype)

    found = samples_to_arrays([sample(mask=mask)], schema)["masks_move"]

    assert (found.dtype, found.tolist()) == (np.dtype(mask_dtype), [[1, 0]])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (sample(label=40000), f"labels: head 'move': 40000 does not fit int16 (-32768 to 32767){CURE}"),
        (sample(label=1.5), f"labels: head 'move': 1.5 is no whole number; int16 takes only these{CURE}"),
        (sample(label=float("nan")), f"labels: head 'move': nan does not fit int16 (-32768 to 32767){CURE}"),
        (sample(label=None), "labels: head 'move': None is no number"),
        (sample(label=[3]), "labels: head 'move': has shape (1,) but should be one number"),
        (sample(mask=[0, 128]), "masks: head 'move'[1]: 128 does not fit int8 (-128 to 127)"),
        (sample(mask=[0]), "masks: head 'move': has 1 values, not 2"),
        (sample([1.0, 2.0, 1e39]), "features[2]: 1e+39 does not fit float32 (at most 3.40282e+38)"),
        (sample([1 << 70, None, 2.0]), "features[1]: None is no number"),
        (sample([1, "2", 3]), "features[1]: '2' is no number"),
        (sample([1.0, 10**400, 2.0]), f"features[1]: {10**400} does not fit float32 (at most 3.40282e+38)"),
        (sample([1.0, [2.0], 3.0]), "features: has parts of different lengths"),
        ({"labels": {"move": 1}, "masks": {"move": [0, 0]}}, "has no 'features'"),
        ([1, 2, 3], "is no sample; give a dict with 'features', and 'labels' and 'masks' by head"),
        (
            {"features": [0, 0, 0], "labels": [1], "masks": {"move": [0, 0]}},
            "labels: has type list; give a dict from heads to values",
        ),
        (
            {"features": [0, 0, 0], "labels": {"move": 1, "unit": 2}, "masks": {"move": [0, 0]}},
            "labels: head 'unit' is not in the schema (move)",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_file_sample_and_head(bad, message):
    with pytest.raises(DataError) as error:
        samples_to_arrays([sample(), sample(), bad], SCHEMA, file="game.rep")

    assert str(error.value) == f"game.rep: sample 2: {message}"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"strategic_features": np.zeros((2, 2)), "turn": np.zeros(3)},
            "array 'strategic_features' has 2 samples but 'turn' has 3",
        ),
        ({"turn": np.float32(3)}, "array 'turn' is a single value; its first axis must be samples"),
        ({"labels": np.zeros(3)}, "array 'labels' is called like a part of samples"),
        ([np.zeros(3)], "arrays have type list; give a dict from names to arrays"),
    ],
)
def test_arrays_that_are_no_samples_are_refused_at_once(arrays, message):
    with pytest.raises(DataError, match=f"^{message}"):
        arrays_to_samples(arrays)


def test_no_samples_and_one_that_is_no_list():
    with pytest.raises(DataError, match=r"game\.rep: there are no samples to find a schema from; declare"):
        samples_to_arrays([], file="game.rep")
    assert samples_to_arrays([], SCHEMA)["masks_move"].shape == (0, 2)
    with pytest.raises(DataError, match=r"^this is one dict; give a list of samples, or any iterable of"):
        samples_to_arrays(sample())


AROUND_LIMITS = st.sampled_from(
    [
        step + sign * (1 << bits)
        for step in (-1, 0, 1)
        for bits in (7, 8, 15, 31, 32, 63, 64)
        for sign in (-1, 0, 1)
    ]
)
FORMS = [list, np.array, lambda numbers: np.array(numbers, object), lambda numbers: np.array(numbers, float)]


@settings(max_examples=200)
@given(st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u4", "u8"]), AROUND_LIMITS, st.sampled_from(FORMS))
def test_whole_numbers_come_out_as_they_went_in_or_not_at_all(dtype, number, form):
    schema = sample_schema(3, ["move"], {"move": 2}, mask_dtype=dtype)
    mask = form([0, number])
    is_held = np.iinfo(dtype).min <= int(mask[1]) <= np.iinfo(dtype).max

    try:
        found = samples_to_arrays([sample(mask=mask)], schema)["masks_move"]
    except DataError:
        assert not is_held or mask.dtype == object
    else:
        assert is_held
        assert found.tolist() == [[0, int(mask[1])]]


@pytest.mark.parametrize(
    ("label", "dtype"),
    [
        (True, "int16"),
        (np.zeros(1, np.float16), "float32"),
        (2.0**24 + 1, "float64"),
        (np.float32(2.0**30), "float32"),
        (np.uint8(3), "int16"),
        (float("nan"), "int16"),
        ([[1], [2, 3]], "int16"),
        (np.array([1, 2, 40_000]), "int64"),
    ],
)
def test_floats_are_float32_and_whole_numbers_int16_unless_the_first_is_larger(label, dtype):
    assert label_type(label) == dtype


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ({"turn": 1}, "is no sample; give a dict with 'features', and 'labels' and 'masks' by head"),
        ({"feature": [1]}, "has 'feature' but no 'features'; is it that?"),
        (
            {"features": [1], "masks": {"move": 1}},
            "masks: head 'move': has shape () but should be numbers in a row",
        ),
    ],
)
def test_a_first_sample_that_is_none(first, message):
    with pytest.raises(DataError) as error:
        inferred_schema(first, file="a.rep")

    assert str(error.value) == f"a.rep: sample 0: {message}"


def test_numbers_of_samples_go_on_over_batches_or_are_given():
    builder = BatchBuilder(sample_schema(1, [], {}), batch_size=1)
    builder.add({"features": [1]})
    with pytest.raises(ValueError, match=r"^the batch is full with 1 samples; take it before another is"):
        builder.add({"features": [2]})
    assert builder.take()["strategic_features"].tolist() == [[1]]

    with pytest.raises(DataError, match=r"^sample 1: features: has 2 values, not 1$"):
        builder.add({"features": [1, 2]})
    with pytest.raises(DataError, match=r"^b\.rep: sample 7: features: has 2 values, not 1$"):
        builder.add({"features": [1, 2]}, file="b.rep", number=7)


MASKS = st.lists(st.integers(-128, 127), min_size=2, max_size=2)
ANY_MASKS = st.one_of(MASKS, MASKS.map(np.array), MASKS.map(lambda mask: np.array(mask, np.float64)))


@settings(max_examples=50)
@given(st.lists(st.tuples(ANY_MASKS, st.booleans()), max_size=12))
def test_refused_samples_leave_no_trace_whatever_their_types(masks):
    """Masks come before `turn`: they are in the array when a sample is refused for want of it."""
    builder = BatchBuilder(StoreSchema((*SCHEMA.arrays, ArraySpec("turn", np.dtype("i4")))), len(masks))
    for mask, is_refused in masks:
        if is_refused:
            with pytest.raises(DataError, match="has no 'turn'"):
                builder.add(sample(mask=mask))
        else:
            builder.add(sample(mask=mask) | {"turn": 1})

    expected = [np.asarray(mask).tolist() for mask, is_refused in masks if not is_refused]
    assert builder.take()["masks_move"].tolist() == expected


def test_whole_arrays_fill_batches_too():
    arrays = game_arrays(7)
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    builder = BatchBuilder(GAME, batch_size=4)

    assert builder.add_arrays(wide) == 4
    assert_same(builder.take(), {name: array[:4] for name, array in arrays.items()})
    assert builder.add_arrays(wide, first=4) == 3
    assert builder.add_arrays(wide) == 1
    assert builder.full


def test_whole_arrays_that_do_not_fit():
    builder = BatchBuilder(GAME, batch_size=4)
    arrays = game_arrays(3)

    with pytest.raises(DataError, match=r"^a\.npy: array 'labels_target' is missing$"):
        builder.add_arrays({key: arrays[key] for key in arrays if key != "labels_target"}, file="a.npy")
    for change, message in [
        ({"more": np.zeros(3)}, "^array 'more' is not in the schema$"),
        ({"masks_target": np.zeros((3, 2))}, "sample 0: array 'masks_target': has 2 values, not 3"),
        ({"masks_target": np.zeros((2, 3))}, "array 'masks_target' has 2 samples, but others have 3"),
        (
            {"labels_target": np.array([0, 1, 0.5])},
            "sample 2: array 'labels_target': 0.5 is no whole.*; declare",
        ),
    ]:
        with pytest.raises(DataError, match=message):
            builder.add_arrays(arrays | change)
    assert builder.add_arrays(arrays, first=3) == 0
    assert builder.add_arrays(arrays) == 3
    assert_same(builder.take(), arrays)


def test_float16_reports_its_largest_error():
    schema = sample_schema(2, [], {}, feature_dtype=np.float16)
    builder = BatchBuilder(schema, batch_size=3)
    builder.add({"features": [1.0, 2049.0]})
    builder.add({"features": np.array([np.inf, 0.25])})

    assert builder.take()["strategic_features"].tolist() == [[1.0, 2048.0], [np.inf, 0.25]]
    assert builder.largest_errors == {"strategic_features": 1.0}


def test_features_that_no_array_takes_are_not_lost_in_silence():
    builder = BatchBuilder(StoreSchema((ArraySpec("elo", np.dtype("float32")),)), 4)
    builder.add({"elo": 1.5, "features": []})

    with pytest.raises(DataError, match=r"^sample 1: features: has 2 that no array of the schema takes$"):
        builder.add({"elo": 1.5, "features": [1, 2]})
