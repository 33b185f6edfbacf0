"""A store that is already where a merge goes."""

import re

import numpy as np
import pytest

from penstock.config.errors import ConfigError
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions, SplitShares
from penstock.readers.batch_files import save_batch
from tests.prep.merge.inputs import all_bytes, write_batches
from tests.readers.batch_files.samples import game_arrays


@pytest.fixture
def merged(tmp_path):
    """Batch files, and the store of them."""
    write_batches(tmp_path / "in")
    first = merge(tmp_path / "in", tmp_path / "out")
    assert (first.was_whole, first.replaced) == (False, None)
    return tmp_path


def test_the_same_is_left_as_it_is(merged):
    again = merge(merged / "in", merged / "out", replace=False)

    assert (again.was_whole, again.replaced, again.num_samples) == (True, None, {"train": 28})


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        (MergeOptions(splits=SplitShares()), "other splits"),
        (MergeOptions(shuffle=True, seed=3), "other shuffle, seed"),
        (
            MergeOptions(target="parquet", level=3, compression="zstd"),
            "other target, compression, compression_level",
        ),
    ],
)
def test_other_options_are_told(merged, options, difference):
    before = all_bytes(merged / "out")
    refusal = (
        f"out: holds a store with {difference}; write over it with replace=True, or choose another output_dir"
    )

    with pytest.raises(ConfigError, match=re.escape(refusal)):
        merge(merged / "in", merged / "out", options=options, replace=False)
    assert all_bytes(merged / "out") == before

    assert merge(merged / "in", merged / "out", options=options).replaced == difference


@pytest.mark.parametrize(
    ("more", "difference"), [({}, "other samples"), ({"weights": np.ones(5)}, "other arrays")]
)
def test_other_batch_files_are_told(merged, more, difference):
    (merged / "other").mkdir()
    save_batch(merged / "other" / "batch_0.batch", {**game_arrays(5, 9), **more})

    assert merge(merged / "other", merged / "out").replaced == difference


def test_a_file_that_is_gone_is_written_again_and_nothing_is_replaced(merged):
    whole = all_bytes(merged / "out")
    (merged / "out" / "labels_train.npz").unlink()

    again = merge(merged / "in", merged / "out", replace=False)

    assert (again.was_whole, again.replaced) == (False, None)
    assert all_bytes(merged / "out") == whole
