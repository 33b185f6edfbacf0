"""Splits that are not what was asked for are told, one line each."""

import pytest

from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions, SplitShares
from tests.prep.merge.inputs import write_batches

NO_INPUTS = "splits by file: no manifest.json tells which input files samples are of: each batch file is one"


def warnings(folder, caplog, sizes, splits, groups=False):
    write_batches(folder / "in", sizes, groups=groups)
    merge(folder / "in", folder / "out", options=MergeOptions(splits=splits))
    return [record.message for record in caplog.records]


def test_three_files_are_too_few(tmp_path, caplog):
    assert warnings(tmp_path, caplog, [20, 20, 20], SplitShares(by="file")) == [
        NO_INPUTS,
        "split test is empty: there are too few input files (3); give more, or split by sample",
        "shares by file are train 0.67, val 0.33, test 0.00, not 0.8, 0.1, 0.1: too few files to come nearer",
    ]


def test_fewer_files_than_splits(tmp_path, caplog):
    _, empty, far = warnings(tmp_path, caplog, [20, 20], SplitShares(by="file"))

    assert empty == "split test is empty: there are too few input files (2); give more, or split by sample"
    assert far.startswith("shares by file are train 0.50, val 0.50, test 0.00, not 0.8, 0.1, 0.1: ")


def test_a_share_of_less_than_one_sample(tmp_path, caplog):
    assert warnings(tmp_path, caplog, [4], SplitShares(0.9, 0.05, 0.05)) == [
        "split val is empty: its share of 4 samples is less than one",
        "split test is empty: its share of 4 samples is less than one",
        "shares by sample are train 1.00, val 0.00, test 0.00, not 0.9, 0.05, 0.05: too few samples to come nearer",
    ]


def test_few_groups(tmp_path, caplog):
    lines = warnings(tmp_path, caplog, [50, 50], SplitShares(by="group"), groups=True)

    assert lines[-1].endswith("not 0.8, 0.1, 0.1: too few groups to come nearer")


def test_batch_files_of_unknown_inputs_count_as_files(tmp_path, caplog):
    assert warnings(tmp_path, caplog, [20, 20], SplitShares(0.5, 0.5, 0, by="file")) == [NO_INPUTS]


@pytest.mark.parametrize("splits", [None, SplitShares()])
def test_shares_that_are_met_are_not_spoken_of(tmp_path, caplog, splits):
    assert warnings(tmp_path, caplog, [20, 20], splits) == []


def test_nothing_can_be_said_of_no_samples(tmp_path, caplog):
    assert warnings(tmp_path, caplog, [0], SplitShares()) == []


@pytest.mark.parametrize("splits", [None, SplitShares()])
def test_groups_that_nobody_asks_for_are_not_dropped_in_silence(tmp_path, caplog, splits):
    assert warnings(tmp_path, caplog, [20, 20], splits, groups=True) == [
        "array 'groups' is left out: it only tells splits by group which samples stay together"
    ]
