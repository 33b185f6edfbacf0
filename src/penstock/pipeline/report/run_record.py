"""What a model_dir tells of its run: the log, the evaluations, the run file, the versions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from penstock.config.errors import CheckpointError
from penstock.pipeline.model_dir import ModelDir

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

    @property
    def last(self) -> Record:
        """The last line about steps; empty where the run was too short for one."""
        return self.steps[-1] if self.steps else {}

    @property
    def limit_bytes(self) -> int | None:
        """The memory limit of the run."""
        limit: int | None = self.events.get("start", {}).get("limit_bytes")
        return limit

    @property
    def memory(self) -> Record:
        """Peaks, and what each stage was to hold and held; empty for a run that has not ended."""
        return self.events.get("end", {}).get("memory") or {}

    @property
    def advice(self) -> str | None:
        """What the step advisor said at the end."""
        advice = self.events.get("end", {}).get("advice")
        return None if advice is None else advice["text"]

    def final_values(self) -> dict[str, float]:
        """Losses and metrics of the last evaluation, those that are defined."""
        if not self.evaluations:
            return {}
        record = self.evaluations[-1]
        values = {**record.get("losses", {}), **record.get("metrics", {})}
        return {name: value for name, value in values.items() if value is not None}


def read_run(path: Path, name: str | None = None) -> RunRecord:
    """The records of a model_dir; one without a log is refused in one line."""
    folder = ModelDir(path)
    log = folder.log.read()
    if not log:
        raise CheckpointError(
            f"{path} holds no log.jsonl with a line in it; give the model_dir of a run that has trained"
        )
    text = folder.run_file.read_text(encoding="utf-8") if folder.run_file.exists() else ""
    return RunRecord(
        path=path,
        name=name or path.resolve().name,
        steps=[record for record in log if "event" not in record],
        events={record["event"]: record for record in log if "event" in record},
        evaluations=folder.evaluations.read(),
        config=yaml.safe_load(text) or {},
        config_text=text,
        version=_read_version(folder.version_file),
    )


def read_runs(paths: Sequence[Path]) -> list[RunRecord]:
    """Several runs, each under a name that tells it from the others."""
    return [read_run(path, name) for path, name in zip(paths, distinct_names(paths), strict=True)]


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many as it takes for them to differ; equal paths are numbered."""
    parts = [path.resolve().parts for path in paths]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(words[-count:]) for words in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{index + 1}: {path.name}" for index, path in enumerate(paths)]


def previous_run(run: RunRecord) -> RunRecord | None:
    """The run in a folder beside this one whose run file was written last before this one's; None without any."""
    own_file = ModelDir(run.path).run_file
    if not own_file.exists():
        return None
    written_at = own_file.stat().st_mtime_ns
    earlier = [(stamp, path) for stamp, path in _runs_beside(run.path.resolve()) if stamp < written_at]
    return read_run(max(earlier)[1]) if earlier else None


def _runs_beside(path: Path) -> Iterator[tuple[int, Path]]:
    for run_file in path.parent.glob("*/run.yaml"):
        folder = run_file.parent
        if folder != path and (folder / "log.jsonl").exists() and (folder / "log.jsonl").stat().st_size:
            yield run_file.stat().st_mtime_ns, folder


def _read_version(path: Path) -> Mapping[str, Any]:
    """Of a file that is not there or is no JSON: nothing. The report says what it can."""
    try:
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
