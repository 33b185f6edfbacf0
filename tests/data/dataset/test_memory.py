"""The bytes that a Dataset may hold, and who is told when they are too few."""

import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.config.sizes import MIB
from penstock.data.chain import Chain, Shuffling
from penstock.data.passes import share_memory
from penstock.data.sources import Files
from penstock.readers.files import list_files
from penstock.readers.sections import ReadingSection


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file of 200,000 rows of 24 bytes in memory, in one row group."""
    path = tmp_path_factory.mktemp("data") / "wide.parquet"
    numbers = np.random.default_rng(0).normal(size=(2, 200_000))
    pq.write_table(pa.table({"a": numbers[0], "b": numbers[1]}), path)
    return path


def chain_of(path, **said):
    section = ReadingSection(dataset_type="ParquetDataset")
    return Chain(Files(path.name, section, list_files(str(path))), **said)


def shares_of(chain):
    shares = share_memory(chain, chain.scan()).shares
    return {name: share.limit_bytes for name, share in shares.items()}


def test_all_shares_fit_the_limit(path):
    chain = chain_of(path, shuffling=Shuffling(MIB, 0), prefetch_bytes=MIB, memory_bytes=12 * MIB)

    assert sum(shares_of(chain).values()) <= 12 * MIB
    dataset = penstock.read_parquet(path).shuffle("1MiB").batch(1000).prefetch("1MiB").memory("12MiB")
    assert sum(len(batch["a"]) for batch in dataset) == 200_000


def test_rows_that_cost_nothing_cannot_fill_the_memory():
    free = penstock.from_arrays({"x": np.zeros((500_000, 8)), "cost": np.zeros(500_000, np.int64)})

    with pytest.raises(
        penstock.BudgetExceeded, match=r"do not fill a batch yet.*set \.batch\(max_rows=\), or lower"
    ):
        list(free.batch(cost="cost", limit=10).memory("16MiB"))
    assert len(list(free.batch(cost="cost", limit=10, max_rows=10_000).memory("16MiB"))) == 50


def test_a_background_thread_ends_with_its_loop():
    before = {*threading.enumerate()}
    dataset = penstock.from_arrays({"x": np.zeros(10_000)}).batch(10).prefetch("1KiB")
    for _ in dataset:
        assert {*threading.enumerate()} > before
        break
    assert [thread.name for thread in threading.enumerate() if thread not in before] == []
