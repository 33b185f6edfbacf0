"""Everything of a run that a checkpoint holds, and how it comes back."""

import logging
from pathlib import Path

import torch

from penstock.checkpoint import Checkpoint, CheckpointStore
from penstock.config.errors import CheckpointError
from penstock.distributed.state import load_model_state, load_training_state, training_state
from penstock.export.sections import ExportConfig
from penstock.loops.progress import TrainingProgress
from penstock.loops.sections import TrainConfig
from penstock.pipeline.best import best_step
from penstock.pipeline.model_dir import ModelDir
from penstock.pipeline.training_parts import Training

logger = logging.getLogger(__name__)


class Saver:
    """Saves and restores one training run."""

    def __init__(
        self, folder: ModelDir, training: Training, train: TrainConfig, export: ExportConfig
    ) -> None:
        self.folder = folder
        self.store = CheckpointStore(folder.checkpoints, keep=train.keep_checkpoint_max)
        self.saved_step: int | None = None
        self._training, self._export = training, export

    def save(self, progress: TrainingProgress) -> Path:
        """Write one checkpoint: whole, or absent."""
        training = self._training
        best = best_step(self.folder.evaluations.read(), self._export)
        path = self.store.save(
            progress.step,
            training_state(training.sharded.module, training.dense_optimizer),
            {
                "progress": progress.state_dict(),
                "position": training.batches.state_dict(),
                "shuffle": {"num_rows": training.num_shuffle_rows},
                "generator": torch.get_rng_state().numpy(),
            },
            protect=() if best is None else (best,),
        )
        self.saved_step = progress.step
        return path

    def restore(self, restore_optimizer: bool = True) -> None:
        """Go on from the newest whole checkpoint; without one, start at step 0 and say so."""
        checkpoint = self.store.latest()
        if checkpoint is None:
            logger.warning("no whole checkpoint in %s; starting at step 0", self.folder.checkpoints)
            return
        training = self._training
        self._require_same_shuffle(checkpoint)
        if restore_optimizer:
            load_training_state(checkpoint, training.sharded.module, training.dense_optimizer)
        else:
            load_model_state(checkpoint, training.sharded.module)
        training.progress.load_state_dict(checkpoint.documents["progress"])
        training.batches.load_state_dict(checkpoint.documents["position"])
        torch.set_rng_state(torch.from_numpy(checkpoint.documents["generator"]))
        self.saved_step = checkpoint.step
        for journal in (self.folder.log, self.folder.evaluations):
            journal.cut_back(checkpoint.step)
        logger.info("continuing from %s", checkpoint.path)

    def fine_tune(self, path: str | None) -> None:
        """Start from another run's model, at step 0; what only one of them has is listed."""
        if not path:
            return
        difference = load_model_state(self.store.open(Path(path)), self._training.sharded.module)
        if difference:
            logger.warning("fine-tuning from %s: %s", path, difference)

    def _require_same_shuffle(self, checkpoint: Checkpoint) -> None:
        """The order of rows depends on the buffer's rows, so that another number could not continue it."""
        saved = checkpoint.documents["shuffle"]["num_rows"]
        if saved != self._training.num_shuffle_rows:
            raise CheckpointError(
                f"{checkpoint.path}: was shuffled with a buffer of {saved:,} rows, this run with "
                f"{self._training.num_shuffle_rows:,}; set data_config.shuffle and shuffle_buffer as they were"
            )
