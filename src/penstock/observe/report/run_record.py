"""What a model_dir says of its run: the log, the evaluations, the run file, the versions."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from penstock.config.errors import CheckpointError
from penstock.models.sections import ModelConfig
from penstock.training.model_dir import ModelDir

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The records of one run. Lines of a log that another version wrote may lack anything but their step."""

    path: Path
    name: str
    """How the page calls it."""
    steps: Sequence[Record]
    """Lines of log.jsonl that are about steps."""
    last: Record
    """The last of them; empty where the run was too short for one."""
    start: Record
    end: Record
    """What the run wrote at its end; empty for a run that has not ended, or was continued since."""
    num_steps: int
    restored_step: int | None
    """The step to whose parameters the run went back at its end; None where it ended with those of its last."""
    evaluations: Sequence[Record]
    final_evaluation: Record
    """The last one of the parameters that the run ended with; empty where nothing was evaluated."""
    final_values: Mapping[str, float | None]
    """Its losses and metrics; None for those that are undefined."""
    calibration_bins: Mapping[str, Record]
    """By metric, of the final evaluation or the last before it that has some; the same of `group_auc`."""
    group_auc: Sequence[Record]
    names: Mapping[str, Sequence[str]]
    """What occurs under `losses` and `metrics` of evaluations, `train_metrics` and `learning_rate` of steps."""
    config: Record
    config_text: str
    version: Record
    data_profile: Record
    """What the columns of the training data hold; empty for a run that did not look."""
    memory: Record
    """Peaks, and what each stage was to hold and held; empty for a run that has not ended."""


def read_run(path: Path, name: str | None = None) -> RunRecord:
    """The records of a model_dir; one without a log is refused in one line."""
    folder = ModelDir(path)
    log = folder.log.read() if path.is_dir() else []
    if not log:
        problem = "there is no such folder"
        if path.is_dir():
            problem = "holds no log.jsonl with a line in it"
        elif path.exists():
            problem = "is a file"
        raise CheckpointError(
            f"{path}: {problem}; give the folder of a run, which is the model_dir that penstock train fills"
        )
    steps = [record for record in log if "event" not in record]
    events: dict[str, Record] = {}
    for record in log:
        if record.get("event") == "start":
            events.pop("end", None)  # the end of a run that was continued since is no end
        if "event" in record:
            events[record["event"]] = record
    end, last = events.get("end", {}), steps[-1] if steps else {}
    num_steps: int = (end or last).get("step", 0)
    restored_step = None if end.get("restored_step") == num_steps else end.get("restored_step")
    evaluations = folder.evaluations.read()
    final = [record for record in evaluations if restored_step is None or record["step"] <= restored_step]
    final_evaluation = final[-1] if final else {}
    details: dict[str, Any] = {}
    for record in final:
        details |= {key: record[key] for key in ("calibration_bins", "group_auc") if record.get(key)}
    names = {
        part: list(dict.fromkeys(name for record in records for name in record.get(part) or {}))
        for records, parts in (
            (evaluations, ("losses", "metrics")),
            (steps, ("train_metrics", "learning_rate")),
        )
        for part in parts
    }
    documents = []
    for file in (folder.version_file, folder.data_profile):
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = {}  # the report shows what it can
        documents.append(found if isinstance(found, dict) else {})
    version, data_profile = documents
    text = folder.run_file.read_text(encoding="utf-8") if folder.run_file.exists() else ""
    return RunRecord(
        path=path,
        name=name or path.resolve().name,
        steps=steps,
        last=last,
        start=events.get("start", {}),
        end=end,
        num_steps=num_steps,
        restored_step=restored_step,
        evaluations=evaluations,
        final_evaluation=final_evaluation,
        final_values={**final_evaluation.get("losses", {}), **final_evaluation.get("metrics", {})},
        calibration_bins=details.get("calibration_bins", {}),
        group_auc=details.get("group_auc", []),
        names=names,
        config=yaml.safe_load(text) or {},
        config_text=text,
        version=version,
        data_profile=data_profile,
        memory=end.get("memory") or {},
    )


def read_runs(paths: Sequence[Path]) -> list[RunRecord]:
    """Several runs, each under the last parts of its path: as many as it takes for them to differ."""
    parts = [path.resolve().parts for path in paths]
    for index, path in enumerate(paths):
        if parts[index] in parts[:index]:
            raise CheckpointError(f"{path}: is given twice; compare a run with others")
    for count in itertools.count(1):
        names = ["/".join(words[-count:]) for words in parts]
        if len(set(names)) == len(names):
            break
    return [read_run(path, name) for path, name in zip(paths, names, strict=True)]


def previous_run(run: RunRecord) -> RunRecord | None:
    """The newest earlier run of the same model on the same training data in a folder beside this one; None without any.

    A run is earlier if it began before this one, whichever of them was continued since.
    """
    own = ModelDir(run.path.resolve())
    if not own.run_file.exists():
        return None
    began_at = {}
    for file in own.path.parent.glob("*/run.yaml"):
        folder = ModelDir(file.parent)
        began = folder.started_at  # of a run that does not say so, its run file does
        began_at[folder.path] = file.stat().st_mtime if began is None else began
    earlier = [path for path in began_at if began_at[path] < began_at[own.path]]
    for path in sorted(earlier, key=began_at.__getitem__, reverse=True):
        folder = ModelDir(path)
        config = folder.written_config()
        is_same_data = config.get("train_input_path") == run.config.get("train_input_path")
        if is_same_data and model_name(config) == model_name(run.config) and folder.log.read():
            return read_run(path)
    return None


def model_name(config: Record) -> str | None:
    section = config.get("model_config") or {}
    return next((name for name in ModelConfig.one_of["model"] if name in section), None)
