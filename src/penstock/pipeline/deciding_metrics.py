"""The results of evaluation that decide something: which checkpoint is the best, and when to stop.

`known` are the names under which evaluation gives its numbers.
"""

from collections.abc import Iterator, Sequence

from penstock.config.errors import Problem
from penstock.config.nearest import hint
from penstock.export.sections import ExportConfig
from penstock.loops.sections import EarlyStopping

BEST_METRIC = "export_config.best_exporter_metric"
_BEST_NEAR_1 = "calibration"
_NO_DIRECTION = "calibration is best at 1, neither large nor small; choose another metric, such as log_loss"


def best_metric_problems(export: ExportConfig, known: Sequence[str]) -> Iterator[Problem]:
    """A metric that picks the best checkpoint, where one is asked for, must be one that evaluation gives."""
    if not _asks_for_best(export):
        return
    if export.best_exporter_metric not in known:
        yield Problem(BEST_METRIC, not_given(export.best_exporter_metric, known))
    if export.best_exporter_metric.startswith(_BEST_NEAR_1):
        yield Problem(BEST_METRIC, _NO_DIRECTION)


def best_metric_remark(export: ExportConfig, known: Sequence[str]) -> str | None:
    """What to say of a run that does not ask for the best, and would have none when it is asked for one later."""
    if _asks_for_best(export) or export.best_exporter_metric in known:
        return None
    return f"{BEST_METRIC}: {not_given(export.best_exporter_metric, known)}; without one no checkpoint is the best"


def early_stopping_problems(
    section: EarlyStopping, known: Sequence[str], evaluated: bool
) -> Iterator[Problem]:
    """What decides when to stop must be evaluated, by a metric that evaluation gives."""
    if known and section.metric not in known:
        yield Problem("train_config.early_stopping.metric", not_given(section.metric, known))
    if section.metric.startswith(_BEST_NEAR_1):
        yield Problem("train_config.early_stopping.metric", _NO_DIRECTION)
    if not evaluated:
        yield Problem("train_config.early_stopping", "needs eval_input_path: without it nothing is evaluated")


def not_given(name: str, known: Sequence[str]) -> str:
    """That evaluation has no number of this name, and which near ones it has: those of towers, where it is theirs."""
    of_towers = [each for each in known if each.startswith(f"{name}_")]
    near = f"of its towers it gives {', '.join(of_towers)}" if of_towers else hint(name, known)
    return f"evaluation does not give '{name}'; {near}"


def _asks_for_best(export: ExportConfig) -> bool:
    return export.exporter_type == "best" or "best_exporter_metric" in export.model_fields_set
