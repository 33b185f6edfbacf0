"""Rewriting: the same rows, in well-sized files, in the same or in a random order; whole, or not there at all."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import BudgetExceeded, ConfigError, DataError
from penstock.config.sizes import GIB, KIB, MIB
from penstock.prep import external_shuffle
from penstock.prep import rewrite as rewriting
from penstock.prep.external_shuffle import ShuffleSizes
from penstock.prep.rewrite import RewriteOptions, RewriteSummary, rewrite
from penstock.readers.files import list_files
from penstock.readers.scan import ReadRequest, scan_files
from penstock.readers.sections import ReadingSection
from penstock.runtime.budget import Share


def write_input(folder: Path, rows_per_file: Sequence[int], row_group_size: int = 1000) -> Path:
    """Consecutive numbers with values of several types, over several files."""
    folder.mkdir(exist_ok=True)
    start = 0
    for index, num_rows in enumerate(rows_per_file):
        numbers = range(start, start + num_rows)
        texts = [None if number % 7 == 0 else f"text {number % 5}" for number in numbers]
        columns = {
            "number": pa.array(numbers, pa.int64()),
            "text": pa.array(texts, pa.string()),
            "list": pa.array([[number] * (number % 3) for number in numbers], pa.list_(pa.int64())),
            "map": pa.array([[("k", number)] for number in numbers], pa.map_(pa.string(), pa.int64())),
        }
        pq.write_table(pa.table(columns), folder / f"part-{index}.parquet", row_group_size=row_group_size)
        start += num_rows
    return folder


def scan_of(path: Path):
    return scan_files(ReadingSection(), list_files(str(path)), ReadRequest())


def rewritten(path: Path, out: Path, overwrite: bool = False, **options: Any) -> RewriteSummary:
    chosen = RewriteOptions(**{"memory_bytes": 4 * GIB} | options)
    return rewrite(scan_of(path), out, chosen, overwrite=overwrite)


def rows(path: Path) -> list[dict[str, Any]]:
    return [row for file in list_files(str(path)) for row in pq.read_table(file.path).to_pylist()]


def numbers(path: Path) -> list[int]:
    return [row["number"] for row in rows(path)]


def multiset(found: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(row) for row in found)


@pytest.fixture
def small_buckets(monkeypatch):
    """Shuffle as if a few KiB were all the memory there is; gives a way to say how few."""

    def hold(bucket_bytes: int, waiting_bytes: int = 2 * KIB, piece_rows: int = 7) -> None:
        sizes = ShuffleSizes(bucket_bytes, waiting_bytes, piece_rows)
        monkeypatch.setattr(rewriting, "share_memory", lambda *_: (Share("the reader", MIB), sizes))

    return hold


@settings(max_examples=12)
@given(
    rows_per_file=st.lists(st.integers(0, 90), min_size=1, max_size=4),
    row_group_size=st.integers(1, 60),
    num_files=st.integers(1, 5),
    seed=st.one_of(st.none(), st.integers(0, 3)),
    bucket_bytes=st.integers(200, 20_000),
)
def test_exactly_the_same_rows(
    tmp_path_factory, small_buckets, rows_per_file, row_group_size, num_files, seed, bucket_bytes
):
    folder = tmp_path_factory.mktemp("rewrite")
    path = write_input(folder / "in", rows_per_file, row_group_size)
    small_buckets(bucket_bytes)

    summary = rewritten(
        path,
        folder / "out",
        shuffle=seed is not None,
        seed=seed or 0,
        num_files=num_files,
        row_group_bytes=64 * KIB,
        verify=True,
    )

    assert multiset(rows(folder / "out")) == multiset(rows(path))
    assert summary.num_rows == sum(rows_per_file)
    assert sorted(entry.name for entry in folder.iterdir()) == ["in", "out"]


def test_the_order_depends_on_the_seed_and_not_on_the_memory_or_the_files(tmp_path, small_buckets):
    path = write_input(tmp_path / "in", [500, 500])
    other_files = write_input(tmp_path / "same", [1, 900, 99], row_group_size=13)
    summary = rewritten(path, tmp_path / "ample", shuffle=True, seed=7)
    kept = json.loads((tmp_path / "ample" / "_rewrite.json").read_text())
    assert (kept["num_rows"], kept["seed"], kept["checksum"]) == (1000, 7, summary.checksum)
    assert rewritten(path, tmp_path / "seed", shuffle=True, seed=8).checksum == summary.checksum
    small_buckets(1000)
    rewritten(other_files, tmp_path / "tight", shuffle=True, seed=7, num_files=3)

    assert numbers(tmp_path / "tight") == numbers(tmp_path / "ample")
    assert numbers(tmp_path / "seed") != numbers(tmp_path / "ample")


def test_buckets_that_come_out_too_large_are_scattered_again(tmp_path, small_buckets, monkeypatch):
    path = write_input(tmp_path / "in", [1000])
    rewritten(path, tmp_path / "ample", shuffle=True)
    monkeypatch.setattr(external_shuffle, "_MAX_BUCKETS", 2)
    small_buckets(1000)

    rewritten(path, tmp_path / "deep", shuffle=True)

    assert numbers(tmp_path / "deep") == numbers(tmp_path / "ample")


def test_files_and_row_groups_are_even(tmp_path):
    path = write_input(tmp_path / "in", [10_000])

    summary = rewritten(path, tmp_path / "out", num_files=3, row_group_bytes=64 * KIB)

    footers = [pq.read_metadata(file) for file in sorted((tmp_path / "out").glob("*.parquet"))]
    groups = [
        footer.row_group(index).num_rows for footer in footers for index in range(footer.num_row_groups)
    ]
    assert [footer.num_rows for footer in footers] == [3334, 3333, 3333]
    assert max(groups) - min(groups) <= 1
    assert summary.num_row_groups == len(groups) > 6


def test_there_are_no_more_files_than_rows_and_always_one(tmp_path):
    few = write_input(tmp_path / "few", [3])
    none = write_input(tmp_path / "none", [0])

    assert rewritten(few, tmp_path / "a", num_files=8, shuffle=True).num_files == 3
    assert rewritten(none, tmp_path / "b", num_files=8, shuffle=True).num_files == 1
    assert pq.read_table(tmp_path / "b").schema.names == ["number", "text", "list", "map"]


def test_rows_that_change_on_the_way_are_noticed(tmp_path, monkeypatch):
    path = write_input(tmp_path / "in", [100])
    gather = external_shuffle.ExternalShuffle.gather
    monkeypatch.setattr(
        external_shuffle.ExternalShuffle,
        "gather",
        lambda self, buckets: (batch.take([0] * batch.num_rows) for batch in gather(self, buckets)),
    )

    with pytest.raises(DataError, match="the rows of the temporary files are not those that were read"):
        rewritten(path, tmp_path / "out", shuffle=True)

    assert not (tmp_path / "out").exists()


def test_too_little_memory_is_told_before_anything_is_written(tmp_path):
    path = write_input(tmp_path / "in", [100])

    with pytest.raises(
        BudgetExceeded, match=r"rewriting needs at least .*; raise --memory, or lower --row-group"
    ):
        rewritten(path, tmp_path / "out", memory_bytes=MIB)

    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


@pytest.fixture
def path(tmp_path):
    return write_input(tmp_path / "in", [100])


def test_only_what_an_older_rewrite_wrote_is_replaced(tmp_path, path):
    rewritten(path, tmp_path / "out")
    (tmp_path / "file").write_text("")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.txt").write_text("years of work")

    for source, out, overwrite, problem in (
        (path, "out", False, "is not empty; choose another directory, or replace rewritten data with"),
        (path, "file", False, "is a file; the output is a directory"),
        (path, "thesis", True, r"has no _rewrite\.json, so it is not rewritten data and is not overwritten"),
        (tmp_path / "out", "out", True, r"holds the input part-00000\.parquet; choose another folder"),
    ):
        with pytest.raises(ConfigError, match=f"{out}: {problem}"):
            rewritten(source, tmp_path / out, overwrite=overwrite)
    assert (tmp_path / "thesis" / "thesis.txt").exists()

    rewritten(path, tmp_path / "out", overwrite=True, num_files=5)
    rewritten(path, tmp_path / "out", overwrite=True)
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["_rewrite.json", "part-00000.parquet"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "in", "out", "thesis"]


def test_a_disk_without_room_is_told_before_the_start(tmp_path, path, monkeypatch):
    usage = type("Usage", (), {"free": 100})
    monkeypatch.setattr(rewriting.shutil, "disk_usage", lambda folder: usage)

    expected = (
        r"the disk has 100B free but rewriting needs about .*KiB \(output .*KiB, temporary files .*KiB\)"
    )
    with pytest.raises(DataError, match=expected):
        rewritten(path, tmp_path / "out", shuffle=True)

    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_a_rewrite_at_work_is_noticed(tmp_path, path):
    staging = tmp_path / ".out.partial"
    staging.mkdir()
    descriptor = os.open(staging, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    with pytest.raises(ConfigError, match="out: another penstock is writing it; wait for it"):
        rewritten(path, tmp_path / "out")

    os.close(descriptor)
    rewritten(path, tmp_path / "out")


SLOW_REWRITE = """
import sys, time
from pathlib import Path
from penstock.prep import rewrite as rewriting
from penstock.prep.rewrite import RewriteOptions, rewrite
from tests.prep.test_rewrite import scan_of

def sync_slowly(path):
    print("wrote", flush=True)
    time.sleep(600)
rewriting.sync_path = sync_slowly
options = RewriteOptions(shuffle=True, num_files=10, memory_bytes=4 << 30)
rewrite(scan_of(Path(sys.argv[1])), Path(sys.argv[2]), options)
"""


def test_killed_it_leaves_nothing_that_looks_whole_and_runs_again(tmp_path, path):
    out = tmp_path / "out"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_REWRITE, str(path), str(out)], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"wrote\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    assert not out.exists()
    assert list((tmp_path / ".out.partial").glob("*.parquet"))

    rewritten(path, out, shuffle=True)
    assert multiset(rows(out)) == multiset(rows(path))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in", "out"]
