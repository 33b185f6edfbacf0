"""What becomes of a batch of which a gradient is too large for FP16."""

from penstock.config.errors import DataError
from penstock.loops.progress import TrainingProgress
from penstock.loops.scaling import LossScaling
from penstock.loops.train import place
from penstock.pipeline.step_log import StepLog
from penstock.tensors.batch import Batch

LEAST_SCALE = 2.0**-16
"""Below, gradients would be infinite in FP16 whatever the scale: it is not the scale that makes them so."""


class Overflows:
    """Writes such batches into the log; the first batches of a run often are, until the scale fits."""

    def __init__(self, scaling: LossScaling | None, log: StepLog) -> None:
        self._scaling, self._log = scaling, log

    def meet(self, progress: TrainingProgress, batch: Batch) -> None:
        """Tell the log, or raise an error where no scale is small enough."""
        assert self._scaling is not None, "only scaled gradients overflow"
        scale = self._scaling.scale
        if scale < LEAST_SCALE:
            raise DataError(
                f"step {progress.step + 1}: a gradient on {batch.num_rows} rows{place(batch)} is not finite in FP16 at "
                f"any scale (now {scale:g}), though the loss is; use train_config.mixed_precision: BF16, or none"
            )
        facts = {"overflowed_batches": progress.overflowed_batches + 1, "num_rows": batch.num_rows}
        self._log.tell("overflow", progress.step + 1, **facts, loss_scale=scale)
