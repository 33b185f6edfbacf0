"""What a run file says of a merge, in the terms of the store."""

from typing import Any

import pytest

from penstock.config.errors import ConfigError
from penstock.config.sizes import MIB
from penstock.pipeline.merging import merge_options
from penstock.pipeline.run_config import RunConfig
from penstock.store.merge import MergeOptions


def options_of(limit: str = "1GiB", **keys: Any) -> MergeOptions:
    return merge_options(RunConfig.model_validate({"memory": {"limit": limit}, "preprocessing": keys}))


@pytest.mark.parametrize("target", ["parquet", "ipc"])
def test_compression_is_also_that_of_parquet_and_arrow_files(target: str):
    options = options_of(target=target, compression="zstd", compression_level=3)

    assert (options.compression, options.level) == ("zstd", 3)


@pytest.mark.parametrize("target", ["npy", "hdf5"])
def test_arrays_that_are_mapped_are_not_compressed(target: str):
    options = options_of(target=target, compression="zstd", compression_level=3)

    assert (options.compression, options.level) == ("none", None)


@pytest.mark.parametrize(
    ("limit", "workers", "shuffle_mib"),
    [("16MiB", 1, 4), ("1GiB", 1, 256), ("64GiB", 1, 256), ("64GiB", 4, 1024), ("1GiB", 4, 256)],
)
def test_a_shuffle_holds_a_quarter_of_the_limit_and_no_more_than_is_of_use(
    limit: str, workers: int, shuffle_mib: int
):
    assert options_of(limit, merge_workers=workers).memory_bytes == shuffle_mib * MIB


def test_what_cannot_be_merged_is_told_before_anything_is_prepared():
    with pytest.raises(ConfigError, match=r"^merge_strategy: accumulative is for target npy only"):
        options_of(target="parquet", merge_strategy="accumulative")
    with pytest.raises(ConfigError, match=r"compression level is 40; zstd has 1 to 22"):
        options_of(target="parquet", compression="zstd", compression_level=40)
