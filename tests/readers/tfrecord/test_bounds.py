"""What reading holds stays inside its share."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB
from penstock.prep.tfrecord.write import write_tfrecord
from penstock.readers.reading import read_blocks
from penstock.runtime.budget import Share
from tests.readers.tfrecord.wire_samples import survey_of

NUM_ROWS = 20_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    numbers = np.arange(NUM_ROWS)
    table = pa.table(
        {
            "n": numbers,
            "text": [f"text {n}" for n in range(NUM_ROWS)],
            "small": pa.array([[n % 100] * (n % 40) for n in range(NUM_ROWS)]),
            "fixed": pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(numbers, 3), pa.float32()), 3),
        }
    )
    return Path(write_tfrecord(tmp_path / "a.tfrecord", table)[0])


@pytest.mark.parametrize("ample", [False, True], ids=["the least share", "an ample share"])
def test_a_share_that_a_survey_names_is_enough(path: Path, ample: bool):
    survey = survey_of(path)
    share = Share("reading", survey.ample_bytes if ample else survey.least_bytes)
    batches = list(read_blocks(survey, share))

    assert [n for batch in batches for n in batch["n"].to_pylist()] == list(range(NUM_ROWS))
    assert 0 < share.peak_bytes <= share.limit_bytes
    assert max(batch.nbytes for batch in batches) <= share.limit_bytes // 2
    assert len(batches) == len(survey.blocks) if ample else len(batches) > len(survey.blocks)


def test_what_a_row_and_a_block_take(path: Path):
    survey = survey_of(path)
    batches = list(read_blocks(survey, Share("reading", survey.ample_bytes)))
    taken_bytes = sum(batch.nbytes for batch in batches) / NUM_ROWS

    assert survey.row_bytes == pytest.approx(taken_bytes, rel=0.05)
    assert survey.block_bytes == pytest.approx(max(batch.nbytes for batch in batches), rel=0.2)


def test_arrow_allocates_no_more_than_is_leased(path: Path):
    survey = survey_of(path, {"n": "int32", "small": ["int8"], "text": ("string", (), "none")})
    share = Share("reading", survey.ample_bytes)
    before = pa.total_allocated_bytes()
    for _ in read_blocks(survey, share):
        assert pa.total_allocated_bytes() - before <= share.held_bytes


def test_a_record_that_does_not_fit_is_named(tmp_path: Path):
    write_tfrecord(tmp_path / "a.tfrecord", pa.table({"image": pa.array([b"a", b"b" * 4 * MIB])}))

    with pytest.raises(
        BudgetExceeded, match=r"a\.tfrecord: the record at byte 34 takes 24MiB .* reading may hold 4MiB"
    ):
        list(read_blocks(survey_of(tmp_path / "a.tfrecord"), Share("reading", 4 * MIB)))
