"""How the memory that is left is divided among the stages that carry a run's training rows."""

from collections.abc import Mapping

from penstock.data.memory_plan import data_path_bytes, share_data_path, share_workers, shuffle_bytes_of
from penstock.readers.survey import Survey
from penstock.run.data import DataSource
from penstock.run.run_config import DataConfig
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.cores import available_cores


def plan_data_path(
    budget: MemoryBudget,
    data: DataConfig,
    source: DataSource,
    num_shuffle_rows: int,
    others: Mapping[str, Survey] | None = None,
) -> int:
    """Shares of all stages; gives how many workers fit beside them. `others` are data sets that are read on the way."""
    streams = {"": source.survey, **(others or {})}
    shuffle_bytes = shuffle_bytes_of(source.survey, num_shuffle_rows)
    by_cost = source.cutting.cost is not None
    bytes_left = budget.unshared_bytes - data_path_bytes(streams, shuffle_bytes, data.prefetch, by_cost)
    batch_bytes = batch_rows(data) * source.survey.row_bytes
    num_workers = share_workers(budget, data.num_workers or 0, available_cores(), bytes_left, batch_bytes)
    share_data_path(
        budget,
        streams,
        shuffle_bytes=shuffle_bytes,
        prefetch_bytes=data.prefetch,
        by_cost=by_cost,
    )
    return num_workers


def batch_rows(data: DataConfig) -> int:
    """Rows of a batch; where cost decides, as many as it may have at most, or as many as the file says otherwise."""
    return data.max_batch_rows or data.batch_size if data.batch_cost_size else data.batch_size
