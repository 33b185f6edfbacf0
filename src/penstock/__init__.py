"""Penstock carries training data from disk to a trained model inside a memory limit that you declare.

The names below are the public surface. Each is imported when it is first asked for: `import penstock` takes
milliseconds and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.config.errors import BudgetExceeded, CheckpointError, ConfigError, DataError, PenstockError
    from penstock.optim.schedules import preview_schedule
    from penstock.pipeline.dataloader import create_dataloader
    from penstock.pipeline.dataset.dataset import Dataset
    from penstock.pipeline.dataset.ragged import Ragged
    from penstock.pipeline.dataset.reading import (
        from_arrays,
        read_arrow,
        read_csv,
        read_json,
        read_numpy,
        read_parquet,
        read_store,
        read_tfrecord,
    )
    from penstock.pipeline.evaluation import evaluate
    from penstock.pipeline.folder_merging import merge
    from penstock.pipeline.parts import build_batch, build_model
    from penstock.pipeline.prediction import predict
    from penstock.pipeline.preparing import PrepResult, prepare
    from penstock.pipeline.run_config import RunConfig
    from penstock.pipeline.run_files import load_run
    from penstock.pipeline.training import TrainResult, train
    from penstock.prep.tfrecord.write import write_tfrecord
    from penstock.readers.batch_files import load_batch, save_batch
    from penstock.readers.samples import arrays_to_samples, samples_to_arrays
    from penstock.runtime.budget import MemoryBudget
    from penstock.runtime.progress import ProgressLogger
    from penstock.runtime.world import World
    from penstock.tensors.batch import Batch
    from penstock.tensors.record_batch import RecordBatchTensor

_PLACES = {
    "BudgetExceeded": "penstock.config.errors",
    "CheckpointError": "penstock.config.errors",
    "ConfigError": "penstock.config.errors",
    "DataError": "penstock.config.errors",
    "PenstockError": "penstock.config.errors",
    "preview_schedule": "penstock.optim.schedules",
    "Dataset": "penstock.pipeline.dataset.dataset",
    "Ragged": "penstock.pipeline.dataset.ragged",
    "from_arrays": "penstock.pipeline.dataset.reading",
    "read_arrow": "penstock.pipeline.dataset.reading",
    "read_csv": "penstock.pipeline.dataset.reading",
    "read_json": "penstock.pipeline.dataset.reading",
    "read_numpy": "penstock.pipeline.dataset.reading",
    "read_parquet": "penstock.pipeline.dataset.reading",
    "read_store": "penstock.pipeline.dataset.reading",
    "read_tfrecord": "penstock.pipeline.dataset.reading",
    "evaluate": "penstock.pipeline.evaluation",
    "merge": "penstock.pipeline.folder_merging",
    "build_batch": "penstock.pipeline.parts",
    "build_model": "penstock.pipeline.parts",
    "create_dataloader": "penstock.pipeline.dataloader",
    "predict": "penstock.pipeline.prediction",
    "PrepResult": "penstock.pipeline.preparing",
    "prepare": "penstock.pipeline.preparing",
    "RunConfig": "penstock.pipeline.run_config",
    "load_run": "penstock.pipeline.run_files",
    "TrainResult": "penstock.pipeline.training",
    "train": "penstock.pipeline.training",
    "write_tfrecord": "penstock.prep.tfrecord.write",
    "MemoryBudget": "penstock.runtime.budget",
    "ProgressLogger": "penstock.runtime.progress",
    "World": "penstock.runtime.world",
    "load_batch": "penstock.readers.batch_files",
    "save_batch": "penstock.readers.batch_files",
    "arrays_to_samples": "penstock.readers.samples",
    "samples_to_arrays": "penstock.readers.samples",
    "Batch": "penstock.tensors.batch",
    "RecordBatchTensor": "penstock.tensors.record_batch",
}

__all__ = [
    "Batch",
    "BudgetExceeded",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "Dataset",
    "MemoryBudget",
    "PenstockError",
    "PrepResult",
    "ProgressLogger",
    "Ragged",
    "RecordBatchTensor",
    "RunConfig",
    "TrainResult",
    "World",
    "arrays_to_samples",
    "build_batch",
    "build_model",
    "create_dataloader",
    "evaluate",
    "from_arrays",
    "load_batch",
    "load_run",
    "merge",
    "predict",
    "prepare",
    "preview_schedule",
    "read_arrow",
    "read_csv",
    "read_json",
    "read_numpy",
    "read_parquet",
    "read_store",
    "read_tfrecord",
    "samples_to_arrays",
    "save_batch",
    "train",
    "write_tfrecord",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("penstock")
    if name not in _PLACES:
        raise AttributeError(f"module 'penstock' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
