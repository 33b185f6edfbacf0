"""Parquet files of a store are read in few requests, and inside the share."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.sizes import KIB, MIB
from penstock.readers.reading import BlockStream
from penstock.readers.storage import RemoteFile
from penstock.runtime.budget import Share
from tests.readers.object_store import ObjectStore
from tests.readers.samples import scan_path

NUM_COLUMNS, NUM_ROWS, NUM_GROUPS = 8, 100_000, 4


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all requests from now on."""
    sizes: list[int] = []
    original = RemoteFile._request

    def counted(remote: RemoteFile, offset: int, num_bytes: int) -> bytes:
        data = original(remote, offset, num_bytes)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(RemoteFile, "_request", counted)
    return sizes


@pytest.fixture(scope="module")
def written_bytes(shared_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> int:
    """A file of several row groups with several pages in each column."""
    random = np.random.default_rng(0)
    columns = {f"column_{index}": random.integers(0, 2**62, NUM_ROWS) for index in range(NUM_COLUMNS)}
    path = tmp_path_factory.mktemp("wide") / "wide.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=NUM_ROWS // NUM_GROUPS, data_page_size=64 * KIB)
    shared_store.put_folder("wide", path.parent)
    return path.stat().st_size


@pytest.fixture
def file_bytes(written_bytes: int, object_store: ObjectStore) -> int:
    return written_bytes


def test_a_scan_reads_the_footer_and_no_page(file_bytes: int, requests: list[int]) -> None:
    scanned = scan_path("s3://wide/wide.parquet")

    assert scanned.num_rows == NUM_ROWS
    assert len(requests) == 2  # to read the footer, and for its checksum
    assert sum(requests) <= MIB


def test_every_byte_is_fetched_once_where_a_row_group_fits(file_bytes: int, requests: list[int]) -> None:
    scanned = scan_path("s3://wide/wide.parquet")
    share = Share("reading", scanned.ample_bytes)
    requests.clear()

    assert sum(batch.num_rows for batch in BlockStream(scanned, share)) == NUM_ROWS
    assert len(requests) == 1 + NUM_GROUPS
    assert sum(requests) <= file_bytes + MIB
    assert share.held_bytes == 0


def test_a_row_group_that_does_not_fit_is_read_through_windows(file_bytes: int, requests: list[int]) -> None:
    scanned = scan_path("s3://wide/wide.parquet")
    share = Share("reading", scanned.min_bytes)
    requests.clear()

    assert sum(batch.num_rows for batch in BlockStream(scanned, share)) == NUM_ROWS
    assert len(requests) > 1 + NUM_GROUPS
    assert share.peak_bytes <= scanned.min_bytes
