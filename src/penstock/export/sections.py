"""export_config: which checkpoint becomes an artifact, and in which form."""

from typing import Annotated

from penstock.config.section import Ignored, Later, Section, words
from penstock.tensors.sections import InputTile

_TF32 = Ignored("there is no TF32 without a GPU")


class ExportConfig(Section):
    """Which checkpoint becomes an artifact, and in which form."""

    exporter_type: Annotated[str, words("latest", "best")] = "latest"
    """latest or best."""

    best_exporter_metric: str = "auc"
    """Metric that tells which checkpoint is best."""

    metric_larger_is_better: bool = True
    """Whether more of it is better."""

    mixed_precision: Annotated[
        str, words("", "BF16", "FP16"), Later("mixed_precision in export", harmless=True)
    ] = ""
    """BF16, FP16, or empty."""

    use_dense_ema: Annotated[bool | None, Later("use_dense_ema in export", harmless=True)] = None
    """Export the running mean of the parameters; absent: where there is one."""

    input_tile: Annotated[InputTile, Later("input_tile in export", harmless=True)] = InputTile.none
    """How many items meet one user in the artifact: see data_config.input_tile."""

    cudnn_allow_tf32: Annotated[bool, _TF32] = True
    """TF32 in convolutions, on a GPU."""

    cuda_matmul_allow_tf32: Annotated[bool, _TF32] = False
    """TF32 in matrix products, on a GPU."""

    @property
    def asks_for_best(self) -> bool:
        """Whether the run file says that, or by which metric, a checkpoint is the best."""
        return self.exporter_type == "best" or "best_exporter_metric" in self.model_fields_set
