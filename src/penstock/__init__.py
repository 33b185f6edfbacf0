"""Penstock carries training data from disk to a trained model inside a memory limit that you declare.

The names below are the public surface. Each is imported when it is first asked for: `import penstock` takes
milliseconds and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock import metrics as metrics
    from penstock.config.errors import BudgetExceeded, CheckpointError, ConfigError, DataError, PenstockError
    from penstock.data.arrow_numpy import Ragged
    from penstock.data.dataset import Dataset
    from penstock.data.reading import (
        from_arrays,
        read_arrow,
        read_csv,
        read_json,
        read_numpy,
        read_parquet,
        read_store,
        read_tfrecord,
    )
    from penstock.optim.schedules import preview_schedule
    from penstock.readers.batch_files import load_batch, save_batch
    from penstock.readers.samples import arrays_to_samples, samples_to_arrays
    from penstock.readers.tfrecord_write import write_tfrecord
    from penstock.run.data import build_batch
    from penstock.run.dataloader import create_dataloader
    from penstock.run.evaluate import evaluate
    from penstock.run.predict import predict
    from penstock.run.preparation import PrepResult, merge, prepare
    from penstock.run.run_config import RunConfig, load_run
    from penstock.run.starting_run import StartingRun, init
    from penstock.run.train import TrainResult, train
    from penstock.run.training import build_model
    from penstock.run.vocabulary import VocabularyResult, build_vocabularies
    from penstock.runtime.budget import MemoryBudget
    from penstock.runtime.progress import ProgressLogger
    from penstock.runtime.world import World
    from penstock.tensors.batch import Batch, RecordBatchTensor

_PLACES = {
    "BudgetExceeded": "penstock.config.errors",
    "CheckpointError": "penstock.config.errors",
    "ConfigError": "penstock.config.errors",
    "DataError": "penstock.config.errors",
    "PenstockError": "penstock.config.errors",
    "preview_schedule": "penstock.optim.schedules",
    "Dataset": "penstock.data.dataset",
    "Ragged": "penstock.data.arrow_numpy",
    "from_arrays": "penstock.data.reading",
    "read_arrow": "penstock.data.reading",
    "read_csv": "penstock.data.reading",
    "read_json": "penstock.data.reading",
    "read_numpy": "penstock.data.reading",
    "read_parquet": "penstock.data.reading",
    "read_store": "penstock.data.reading",
    "read_tfrecord": "penstock.data.reading",
    "evaluate": "penstock.run.evaluate",
    "merge": "penstock.run.preparation",
    "build_batch": "penstock.run.data",
    "build_model": "penstock.run.training",
    "StartingRun": "penstock.run.starting_run",
    "init": "penstock.run.starting_run",
    "VocabularyResult": "penstock.run.vocabulary",
    "build_vocabularies": "penstock.run.vocabulary",
    "create_dataloader": "penstock.run.dataloader",
    "predict": "penstock.run.predict",
    "PrepResult": "penstock.run.preparation",
    "prepare": "penstock.run.preparation",
    "RunConfig": "penstock.run.run_config",
    "load_run": "penstock.run.run_config",
    "TrainResult": "penstock.run.train",
    "train": "penstock.run.train",
    "write_tfrecord": "penstock.readers.tfrecord_write",
    "MemoryBudget": "penstock.runtime.budget",
    "ProgressLogger": "penstock.runtime.progress",
    "World": "penstock.runtime.world",
    "load_batch": "penstock.readers.batch_files",
    "save_batch": "penstock.readers.batch_files",
    "arrays_to_samples": "penstock.readers.samples",
    "samples_to_arrays": "penstock.readers.samples",
    "Batch": "penstock.tensors.batch",
    "RecordBatchTensor": "penstock.tensors.batch",
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
    "StartingRun",
    "TrainResult",
    "VocabularyResult",
    "World",
    "arrays_to_samples",
    "build_batch",
    "build_model",
    "build_vocabularies",
    "create_dataloader",
    "evaluate",
    "from_arrays",
    "init",
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
    if name == "metrics":
        return import_module("penstock.metrics")
    if name not in _PLACES:
        raise AttributeError(f"module 'penstock' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
