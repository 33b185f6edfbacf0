import numpy as np
import pyarrow as pa
import pytest

from penstock.features import build_features
from penstock.features.masking import Masking
from penstock.features.parser import Parser
from penstock.features.sections import FeatureConfig, ParsingSection
from penstock.readers.stream import ROW_COLUMN

NUM_ROWS = 2000
ROW_IDS = (3 << 40) + np.arange(NUM_ROWS)


def feature_of(kind="id_feature", name="f", **options):
    if "raw" not in kind:
        options = {"embedding_dim": 4, **options}
    options = {"feature_name": name, "expression": "x", "use_mask": True, **options}
    parsing = ParsingSection.model_validate({"fg_mode": "FG_NORMAL"})
    return build_features([FeatureConfig.model_validate({kind: options})], parsing)[0]


def parsed(features, values, rows=slice(None), share=0.3, seed=0):
    masking = None if share is None else Masking(share, seed)
    batch = pa.record_batch({"x": values, ROW_COLUMN: ROW_IDS})
    return Parser(features, masking=masking).parse(batch.take(pa.array(np.arange(NUM_ROWS)[rows]))).features


def hidden(column, default):
    return np.flatnonzero(column.values.reshape(-1) == default)


@pytest.mark.parametrize(
    ("feature", "values", "default"),
    [
        (feature_of(num_buckets=10, default_value="9"), [1] * NUM_ROWS, 9),
        (feature_of(num_buckets=10, default_value="9"), ["1"] * NUM_ROWS, 9),
        (feature_of(vocab_list=["a"], default_value="none"), [["a"]] * NUM_ROWS, 0),
        (feature_of("raw_feature", default_value="-1"), [2.0] * NUM_ROWS, -1),
        (
            feature_of("expr_feature", expression="x * 2", default_value="-1", embedding_dim=None),
            [2.0] * NUM_ROWS,
            -1,
        ),
    ],
    ids=["integers", "strings", "lists", "numbers", "made"],
)
def test_a_share_of_the_rows_has_the_default(feature, values, default):
    rows = hidden(parsed([feature], values)["f"], default)

    assert 0.25 * NUM_ROWS < len(rows) < 0.35 * NUM_ROWS
    assert not len(hidden(parsed([feature], values, share=None)["f"], default))


def test_without_a_default_such_rows_are_empty():
    column = parsed([feature_of(hash_bucket_size=10)], ["a\x1db"] * NUM_ROWS)["f"]

    assert set(column.lengths.tolist()) == {0, 2}


@pytest.mark.parametrize("values", [["1;2;3"] * NUM_ROWS, [[1, 2, 3]] * NUM_ROWS], ids=["strings", "lists"])
def test_a_sequence_is_hidden_whole(values):
    column = parsed([feature_of("sequence_id_feature", num_buckets=10)], values)["f"]

    # What is left is the step of an empty sequence, without a value.
    assert set(column.steps.tolist()) == {1, 3}
    assert len(column.values) == column.steps[column.steps == 3].sum()


def test_which_rows_depends_on_seed_feature_and_row_alone():
    feature, other = feature_of(num_buckets=10), feature_of(name="g", num_buckets=10)
    values = [1] * NUM_ROWS

    def lengths(name="f", **options):
        return parsed([feature, other], values, **options)[name].lengths.tolist()

    backwards = slice(None, None, -1)
    assert lengths(rows=backwards) == lengths()[::-1]
    assert lengths(rows=slice(100, 400)) == lengths()[100:400]
    assert lengths() != lengths("g")
    assert lengths() != lengths(seed=1)


def test_a_feature_without_use_mask_is_never_hidden():
    column = parsed(
        [feature_of(num_buckets=10, use_mask=None), feature_of(name="g", num_buckets=10)], [1] * NUM_ROWS
    )

    assert "f" not in column or column["f"].lengths.all()
    assert not column["g"].lengths.all()
