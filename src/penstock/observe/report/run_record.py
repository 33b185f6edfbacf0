"""What a model_dir tells of its run: the log, the evaluations, the run file, the versions."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from penstock.config.errors import CheckpointError
from penstock.models.sections import ModelConfig
from penstock.training.model_dir import ModelDir

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The records of one run. Lines of a log that another version wrote may lack anything but their step."""

    path: Path
    name: str
    """How the page calls it."""

    steps: Sequence[Record]
    """Lines of log.jsonl that are about steps."""

    events: Mapping[str, Record]
    """Its other lines, by their event; of several the last, as after a resume."""

    evaluations: Sequence[Record]
    config: Mapping[str, Any]
    config_text: str
    version: Mapping[str, Any]
    data_profile: Mapping[str, Any]
    """What the columns of the training data hold; empty for a run that did not look."""

    @property
    def last(self) -> Record:
        """The last line about steps; empty where the run was too short for one."""
        return self.steps[-1] if self.steps else {}

    @property
    def end(self) -> Record:
        """What the run told at its end; empty for a run that has not ended."""
        return self.events.get("end", {})

    @property
    def num_steps(self) -> int:
        """How many steps were taken."""
        step: int = (self.end or self.last).get("step", 0)
        return step

    @property
    def limit_bytes(self) -> int | None:
        """The memory limit of the run."""
        limit: int | None = self.events.get("start", {}).get("limit_bytes")
        return limit

    @property
    def memory(self) -> Record:
        """Peaks, and what each stage was to hold and held; empty for a run that has not ended."""
        return self.end.get("memory") or {}

    @property
    def advice(self) -> str | None:
        """What the step advisor said at the end."""
        advice = self.end.get("advice")
        return None if advice is None else advice["text"]

    @property
    def stopped_because(self) -> str | None:
        """Why the run ended before its time, by its own choice."""
        reason: str | None = self.end.get("stopped_because")
        return reason

    @property
    def restored_step(self) -> int | None:
        """The step to whose parameters the run went back at its end; None where it ended with those of its last."""
        step: int | None = self.end.get("restored_step")
        return None if step == self.num_steps else step

    @property
    def final_evaluations(self) -> Sequence[Record]:
        """Evaluations up to the parameters that the run ended with: not those after the step that it went back to."""
        step = self.restored_step
        return [record for record in self.evaluations if step is None or record["step"] <= step]

    @property
    def final_evaluation(self) -> Record:
        """The evaluation of the parameters that the run ended with; empty where nothing was evaluated."""
        return self.final_evaluations[-1] if self.final_evaluations else {}

    def final_values(self) -> dict[str, float | None]:
        """Losses and metrics of the final evaluation; None for those that are undefined."""
        record = self.final_evaluation
        return {**record.get("losses", {}), **record.get("metrics", {})}


def read_run(path: Path, name: str | None = None) -> RunRecord:
    """The records of a model_dir; one without a log is refused in one line."""
    folder = ModelDir(path)
    log = _read_log(folder)
    text = folder.run_file.read_text(encoding="utf-8") if folder.run_file.exists() else ""
    return RunRecord(
        path=path,
        name=name or path.resolve().name,
        steps=[record for record in log if "event" not in record],
        events=_last_events(log),
        evaluations=folder.evaluations.read(),
        config=yaml.safe_load(text) or {},
        config_text=text,
        version=_read_json(folder.version_file),
        data_profile=_read_json(folder.data_profile),
    )


def read_runs(paths: Sequence[Path]) -> list[RunRecord]:
    """Several runs, each under a name that tells it from the others."""
    return [read_run(path, name) for path, name in zip(paths, distinct_names(paths), strict=True)]


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many as it takes for them to differ; a path that is there twice is refused."""
    parts = [path.resolve().parts for path in paths]
    for place, path in enumerate(paths):
        if parts[place] in parts[:place]:
            raise CheckpointError(f"{path}: is given twice; compare a run with others")
    for count in itertools.count(1):
        names = ["/".join(words[-count:]) for words in parts]
        if len(set(names)) == len(names):
            break
    return names


def _read_log(folder: ModelDir) -> Sequence[Record]:
    log = folder.log.read() if folder.path.is_dir() else []
    if log:
        return log
    if not folder.path.exists():
        problem = "there is no such folder"
    elif not folder.path.is_dir():
        problem = "is a file"
    else:
        problem = "holds no log.jsonl with a line in it"
    raise CheckpointError(
        f"{folder.path}: {problem}; give the folder of a run, which is the model_dir that penstock train fills"
    )


def _last_events(log: Sequence[Record]) -> dict[str, Record]:
    """By event the last; the end of a run that was continued since is no end."""
    events: dict[str, Record] = {}
    for record in log:
        if record.get("event") == "start":
            events.pop("end", None)
        if "event" in record:
            events[record["event"]] = record
    return events


def _read_json(path: Path) -> Mapping[str, Any]:
    """Of a file that is not there or is no JSON: nothing. The report says what it can."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def previous_run(run: RunRecord) -> RunRecord | None:
    """The newest earlier run of the same model on the same training data in a folder beside this one; None without any.

    A run is earlier if it began before this one, whichever of them was continued since.
    """
    own = ModelDir(run.path.resolve())
    if not own.run_file.exists():
        return None
    for folder in _earlier_runs(own):
        is_alike = _compared_by(folder.written_config()) == _compared_by(run.config)
        if is_alike and folder.log.read():
            return read_run(folder.path)
    return None


def model_name(config: Mapping[str, Any]) -> str | None:
    """The model that a run file chooses; None where it chooses none."""
    section = config.get("model_config") or {}
    return next((name for name in ModelConfig.one_of["model"] if name in section), None)


def _compared_by(config: Mapping[str, Any]) -> tuple[Any, ...]:
    return model_name(config), config.get("train_input_path")


def _earlier_runs(own: ModelDir) -> Iterator[ModelDir]:
    """Folders beside that of a run whose own run began before it, the newest first."""
    began = _began_at(own)
    beside = [ModelDir(file.parent) for file in own.path.parent.glob("*/run.yaml")]
    for folder in sorted(beside, key=_began_at, reverse=True):
        if _began_at(folder) < began and folder != own:
            yield folder


def _began_at(folder: ModelDir) -> float:
    """When a run began; of one that does not say so, when its run file was written."""
    began = folder.started_at
    return folder.run_file.stat().st_mtime if began is None else began


def number_at(record: Record, *path: str) -> float | None:
    """A number of a record, or of a part of it; None where it is not there."""
    found: Any = record
    for key in path:
        found = (found or {}).get(key)
    return found if isinstance(found, int | float) else None


def names_of(records: Sequence[Record], part: str) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record.get(part) or {}))


def last_with(run: RunRecord, key: str) -> Any:
    """The value of a key in the final evaluation, or the last before it that has it."""
    return next((record[key] for record in reversed(run.final_evaluations) if record.get(key)), None)
