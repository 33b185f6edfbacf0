"""Penstock carries training data from disk to a trained model inside a memory limit that you declare.

The names below are the public surface. Each is imported when it is first asked for: `import penstock` takes
milliseconds and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.config.errors import BudgetExceeded, CheckpointError, ConfigError, DataError, PenstockError
    from penstock.pipeline.evaluation import evaluate
    from penstock.pipeline.parts import build_batch, build_model, create_dataloader
    from penstock.pipeline.prediction import predict
    from penstock.pipeline.run_config import RunConfig
    from penstock.pipeline.run_files import load_run
    from penstock.pipeline.training import TrainResult, train
    from penstock.runtime.budget import MemoryBudget
    from penstock.runtime.world import World
    from penstock.tensors.batch import Batch
    from penstock.tensors.record_batch import RecordBatchTensor

_PLACES = {
    "BudgetExceeded": "penstock.config.errors",
    "CheckpointError": "penstock.config.errors",
    "ConfigError": "penstock.config.errors",
    "DataError": "penstock.config.errors",
    "PenstockError": "penstock.config.errors",
    "evaluate": "penstock.pipeline.evaluation",
    "build_batch": "penstock.pipeline.parts",
    "build_model": "penstock.pipeline.parts",
    "create_dataloader": "penstock.pipeline.parts",
    "predict": "penstock.pipeline.prediction",
    "RunConfig": "penstock.pipeline.run_config",
    "load_run": "penstock.pipeline.run_files",
    "TrainResult": "penstock.pipeline.training",
    "train": "penstock.pipeline.training",
    "MemoryBudget": "penstock.runtime.budget",
    "World": "penstock.runtime.world",
    "Batch": "penstock.tensors.batch",
    "RecordBatchTensor": "penstock.tensors.record_batch",
}

__all__ = [
    "Batch",
    "BudgetExceeded",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "MemoryBudget",
    "PenstockError",
    "RecordBatchTensor",
    "RunConfig",
    "TrainResult",
    "World",
    "build_batch",
    "build_model",
    "create_dataloader",
    "evaluate",
    "load_run",
    "predict",
    "train",
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
