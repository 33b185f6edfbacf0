"""What the footers of Parquet files add to a look at some rows: nulls and extremes of all of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq

from penstock.prep.profile.column import ColumnFacts, is_number
from penstock.prep.profile.dataset import DataProfile
from penstock.readers.files import DataFile
from penstock.readers.parquet_files import OpenParquet


def with_footers(profile: DataProfile, files: Sequence[DataFile]) -> DataProfile:
    """The profile, with what the statistics of all row groups tell exactly."""
    chunks: dict[str, list[Any]] = {column.name: [] for column in profile.columns}
    for file in files:
        with OpenParquet(file) as opened:
            _collect(opened.metadata, chunks)
    return replace(
        profile,
        columns=tuple(_with_chunks(column, chunks[column.name], profile) for column in profile.columns),
    )


def _collect(metadata: pq.FileMetaData, chunks: dict[str, list[Any]]) -> None:
    """The statistics of each column chunk by the column's name; nested columns have names of their own kind."""
    for group_index in range(metadata.num_row_groups):
        group = metadata.row_group(group_index)
        for index in range(group.num_columns):
            chunk = group.column(index)
            if chunk.path_in_schema in chunks:
                chunks[chunk.path_in_schema].append(chunk.statistics)


def _with_chunks(column: ColumnFacts, statistics: Sequence[Any], profile: DataProfile) -> ColumnFacts:
    if not statistics or any(found is None for found in statistics):
        return column
    if all(found.has_null_count for found in statistics):
        num_nulls = sum(found.null_count for found in statistics)
        column = replace(column, num_nulls=num_nulls, num_rows=profile.num_rows)
    extremes = [found for found in statistics if found.has_min_max]
    if (
        is_number(column.type)
        and extremes
        and all(found.has_min_max or not found.num_values for found in statistics)
    ):
        column = replace(
            column, least=min(found.min for found in extremes), most=max(found.max for found in extremes)
        )
    return column
