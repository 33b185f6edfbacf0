"""What the checkpoints of a run hold, how it comes back, and which old ones stay."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.optim.keyed import KeyedOptimizer

from penstock.checkpoint import Checkpoint, CheckpointStore, TensorMismatch
from penstock.distributed.state import load_model_state, load_training_state, training_state
from penstock.optim.dense import DenseAverages
from penstock.runtime.world import Resumable, State
from penstock.training.best import BestMetric, EarlyStop, best_step
from penstock.training.events import TrainingProgress
from penstock.training.model_dir import ModelDir


@dataclass(slots=True)
class RunCheckpoints:
    store: CheckpointStore
    module: DistributedModelParallel
    optimizer: KeyedOptimizer
    averages: DenseAverages | None
    resumables: Mapping[str, Resumable]
    """What else has a state, by the name of its document in a checkpoint."""
    documents: Mapping[str, Any]
    """What every checkpoint of the run says, whatever the step."""
    folder: ModelDir
    best_metric: BestMetric
    early_stop: EarlyStop | None
    saved_step: int | None = field(default=None, init=False)
    """The newest step that has a whole checkpoint."""

    def save(self, progress: TrainingProgress, position: State) -> None:
        """Write one checkpoint: whole, or absent. `position` is that after the last row of the last finished batch."""
        documents = {
            "progress": asdict(progress),
            "position": [position],
            "generator": torch.get_rng_state().numpy(),
            **self.documents,
            **{name: part.state_dict() for name, part in self.resumables.items()},
        }
        protected = self._best_steps(progress.step) if self.store.keep else ()
        state = training_state(self.module, self.optimizer, self.averages)
        self.store.save(progress.step, state, documents, protect=protected)
        self.saved_step = progress.step

    def restore(
        self, checkpoint: Checkpoint, progress: TrainingProgress, *, optimizer: bool, without: set[str]
    ) -> None:
        """Bring everything but the position in the data to where it was; resumables in `without` begin again."""
        if optimizer:
            load_training_state(checkpoint, self.module, self.optimizer, self.averages)
        else:
            load_whole_model(checkpoint, self.module)
        for name, value in checkpoint.documents["progress"].items():
            setattr(progress, name, value)
        for name, part in self.resumables.items():
            if name in checkpoint.documents and name not in without:
                part.load_state_dict(checkpoint.documents[name])
        torch.set_rng_state(torch.from_numpy(checkpoint.documents["generator"]))
        self.saved_step = checkpoint.step

    def remove_stale(self) -> None:
        assert self.saved_step is not None
        self.store.remove_stale(self._best_steps(self.saved_step) if self.store.keep else ())

    def restore_parameters(self, step: int) -> None:
        """Bring the model, and nothing else, to where it was after a step that is saved."""
        load_whole_model(self.store.open(step), self.module)

    def _best_steps(self, newest: int) -> tuple[int, ...]:
        """The best steps before the newest, which stay though they are old."""
        before = (record for record in self.folder.evaluations.read() if record["step"] < newest)
        stopping = None if self.early_stop is None else self.early_stop.best_step
        best = (best_step(before, self.best_metric), stopping)
        return tuple(step for step in best if step is not None)


def load_whole_model(checkpoint: Checkpoint, model: torch.nn.Module) -> None:
    """Bring a model, and not its optimizers, to where it was; nothing of it may be missing or left over."""
    difference = load_model_state(checkpoint, model)
    if difference:
        raise TensorMismatch(f"{checkpoint.path}: does not fit this model: {difference.shown(1)}")
