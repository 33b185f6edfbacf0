"""What is said of a batch file that cannot be merged: how it comes back."""

import pytest

from penstock.config.errors import DataError
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions
from penstock.readers.batch_files import read_header, save_batch
from penstock.readers.store_manifest import Manifest
from tests.prep.merge.inputs import write_batches
from tests.prep.merge.test_continuing import damage
from tests.readers.batch_files.samples import game_arrays


@pytest.fixture
def prepared(tmp_path):
    """A folder of two batch files with their manifest."""
    records = [save_batch(tmp_path / f"batch_{number}.batch", game_arrays(3, number)) for number in range(2)]
    schema = read_header(tmp_path / "batch_0.batch").schema()
    Manifest((), tuple(records), schema, {}).write(tmp_path)
    return tmp_path


@pytest.mark.parametrize("options", [MergeOptions(), MergeOptions(workers=2, part_bytes=1)])
def test_a_damaged_file_has_to_go_so_that_prep_writes_it_again(prepared, options):
    damage(prepared / "batch_1.batch")

    with pytest.raises(
        DataError, match=r"batch_1.batch: array 'masks_target' is damaged: its checksum is "
    ) as told:
        merge(prepared, prepared / "out", options=options)

    assert str(told.value).endswith("; delete that file and run penstock prep, which writes it again")


def test_a_file_that_was_cut_short(prepared):
    (prepared / "batch_1.batch").write_bytes((prepared / "batch_1.batch").read_bytes()[:-1])

    with pytest.raises(DataError, match=r"; delete that file and run penstock prep, which writes it again$"):
        merge(prepared, prepared / "out")


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_file(prepared, number):
    path = prepared / f"batch_{number}.batch"
    path.unlink()

    with pytest.raises(DataError) as told:
        merge(prepared, prepared / "out")

    assert str(told.value) == f"{path}: is missing; run penstock prep, which writes it again"


def test_files_that_nobody_prepared_are_written_again_by_whoever_wrote_them(tmp_path):
    write_batches(tmp_path)
    damage(tmp_path / "batch_0004.batch")

    with pytest.raises(DataError, match=r"; write the file again$"):
        merge(tmp_path, tmp_path / "out")


@pytest.mark.parametrize(("content", "found"), [(b"", "it is empty"), (b"noise", "it begins with b'noise'")])
def test_a_file_that_is_none(prepared, content, found):
    path = prepared / "batch_1.batch"
    path.write_bytes(content)

    with pytest.raises(DataError) as told:
        merge(prepared, prepared / "out")

    assert str(told.value) == (
        f"{path}: is no batch file, neither native nor .npz: {found}; delete that file and run penstock prep, which "
        "writes it again"
    )


def test_a_file_that_is_none_among_those_that_nobody_prepared(tmp_path):
    write_batches(tmp_path)
    (tmp_path / "batch_0004.batch").write_bytes(b"")

    with pytest.raises(DataError, match=r": it is empty; write it again, or take it away$"):
        merge(tmp_path, tmp_path / "out")
