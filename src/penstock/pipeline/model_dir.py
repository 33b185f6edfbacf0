"""What lies where in a model_dir."""

import json
import os
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from penstock.config.errors import CheckpointError, ConfigError
from penstock.runtime.journal import Journal

VERSIONED_PACKAGES = ("penstock", "torch", "torchrec", "fbgemm-gpu-cpu", "fbgemm-gpu", "pyarrow", "numpy")


@dataclass(frozen=True, slots=True)
class ModelDir:
    """The files of one run."""

    path: Path

    @classmethod
    def of(cls, model_dir: str) -> "ModelDir":
        """The folder that a run file names."""
        if not model_dir:
            raise ConfigError.at("model_dir", "is required by this command; set it, or give --model_dir")
        return cls(Path(model_dir))

    @property
    def run_file(self) -> Path:
        """The final config of the run."""
        return self.path / "run.yaml"

    @property
    def version_file(self) -> Path:
        """Which versions made this run, from which data."""
        return self.path / "version"

    @property
    def checkpoints(self) -> Path:
        """One folder per saved step."""
        return self.path / "checkpoints"

    @property
    def log(self) -> Journal:
        """One line per log interval."""
        return Journal(self.path / "log.jsonl")

    @property
    def evaluations(self) -> Journal:
        """One line per evaluation during training."""
        return Journal(self.path / "eval_result.jsonl")

    def require_writable(self) -> None:
        """Refuse, before anything is done, a folder that could not be written; makes nothing."""
        existing = next(folder for folder in (self.path, *self.path.parents) if folder.exists())
        if not existing.is_dir():
            raise ConfigError.at("model_dir", f"'{existing}' is a file; choose another folder")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise ConfigError.at("model_dir", f"no permission to write in '{existing}'")

    def refuse_if_trained(self) -> None:
        """A run that has checkpoints is continued, never silently overwritten."""
        if self.checkpoints.exists() and any(self.checkpoints.glob("step-*")):
            raise CheckpointError(
                f"{self.path} holds a trained run already; continue it with --continue_train, "
                "or choose another --model_dir"
            )

    def require_checkpoints(self) -> None:
        """A command that needs a trained run says so."""
        if not self.checkpoints.is_dir():
            raise CheckpointError(f"{self.path} holds no checkpoint; train first, or give --model_dir")

    def forget_records(self) -> None:
        """Drop what a run that failed before its first checkpoint wrote: a fresh run tells its own story."""
        for journal in (self.log, self.evaluations):
            journal.path.unlink(missing_ok=True)

    def write_version(self, data_fingerprint: dict[str, Any]) -> None:
        """Say which versions and which data made this run."""
        facts = {"packages": installed_versions(), "data": data_fingerprint}
        self.version_file.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def installed_versions() -> dict[str, str]:
    """The versions of the packages that decide what a run computes."""
    found = {}
    for name in VERSIONED_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
