"""Arrays -> samples -> arrays, and samples -> a batch file -> samples: whatever is in them, nothing changes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from penstock.readers.batch_files import load_batch, save_batch
from penstock.readers.samples import arrays_to_samples, samples_to_arrays
from penstock.readers.store_schema import ArrayNames, ArraySpec, StoreSchema
from tests.readers.batch_files.samples import assert_same

NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">i2", ">f4"]
NAMES = st.sampled_from([ArrayNames(), ArrayNames(features="board", labels="y_", masks="legal_")])
HEADS = st.sets(st.sampled_from(["move", "unit", "labels_", "features", "é"]), max_size=3)


@st.composite
def stored_arrays(draw):
    """Features, labels, masks and other arrays, any of them absent, with their names."""
    names, num_samples = draw(NAMES), draw(st.integers(0, 4))
    one = [names.label(head) for head in draw(HEADS)] + ["turn"] * draw(st.booleans())
    row = [names.mask(head) for head in draw(HEADS)] + ["elo"] * draw(st.booleans())
    row += [names.features] * draw(st.booleans())
    arrays = {}
    for name in draw(st.permutations(one + row)):
        shape = (num_samples,) if name in one else (num_samples, draw(st.integers(0, 4)))
        arrays[name] = draw(st_numpy.arrays(draw(st.sampled_from(NUMBERS)), shape))
    return arrays, names


def schema_of(arrays, names):
    specs = (ArraySpec.of_shape(name, array.dtype, array.shape, "") for name, array in arrays.items())
    return StoreSchema(tuple(specs), names)


def as_numpy(value):
    """The same sample with NumPy's arrays and numbers."""
    if isinstance(value, dict):
        return {key: as_numpy(item) for key, item in value.items()}
    # NumPy makes floats of a small number beside one that only uint64 has.
    whole = np.array(value, object)
    return np.array(
        value, np.uint64 if any(type(item) is int and item >= 1 << 63 for item in whole.flat) else None
    )


@settings(max_examples=50)
@given(stored_arrays())
def test_arrays_come_back_out_of_samples_of_lists_and_of_numpy_arrays(stored):
    arrays, names = stored
    schema = schema_of(arrays, names)

    samples = list(arrays_to_samples(arrays, names=names))

    if arrays:
        assert_same(samples_to_arrays(samples, schema), arrays)
        assert_same(samples_to_arrays([as_numpy(sample) for sample in samples], schema), arrays)


def rows_of(dtype, width):
    limits = np.iinfo(dtype)
    return st.lists(st.integers(int(limits.min), int(limits.max)), min_size=width, max_size=width)


@st.composite
def samples_of_one_form(draw):
    """As a schema is found from them: features, and heads with labels or masks or both."""
    num_features = draw(st.integers(0, 4))
    labels, masks = draw(HEADS), {head: draw(st.integers(0, 4)) for head in draw(HEADS)}
    features = st.lists(st.floats(width=32, allow_nan=False), min_size=num_features, max_size=num_features)
    sample = st.fixed_dictionaries(
        {
            "features": features,
            "labels": st.fixed_dictionaries({head: rows_of("i2", 1).map(min) for head in labels}),
            "masks": st.fixed_dictionaries({head: rows_of("i1", width) for head, width in masks.items()}),
        }
    )
    return draw(st.lists(sample, min_size=1, max_size=4))


@settings(max_examples=50)
@given(samples_of_one_form(), st.sampled_from(["native", "npz"]))
def test_samples_come_back_out_of_a_batch_file(tmp_path_factory, samples, layout):
    path = tmp_path_factory.mktemp("round") / "batch"
    save_batch(path, samples_to_arrays(samples), layout=layout)

    assert list(arrays_to_samples(load_batch(path))) == samples
