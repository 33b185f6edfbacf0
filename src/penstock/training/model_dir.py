"""What lies where in a model_dir."""

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import CheckpointError, ConfigError
from penstock.runtime.durable import PARTIAL_SUFFIX, Journal, replace_text
from penstock.runtime.world import installed_versions
from penstock.training.best import MARK

NAMES_OF_A_RUN = frozenset(
    [
        "best.json",
        "checkpoints",
        "data",
        "data_profile.json",
        "eval_result.jsonl",
        "log.jsonl",
        "nonfinite",
        "out_of_memory",
        "profile",
        "report.html",
        "run.config",
        "run.yaml",
        "tensorboard",
        "version",
    ]
)
"""What a run writes into its folder: nothing else may be written under these names."""


class ModelDir:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_file = path / "run.yaml"
        self.version_file = path / "version"
        """Which versions made this run, from which data, and when it began."""
        self.data_profile = path / "data_profile.json"
        self.checkpoints = path / "checkpoints"
        self.log = Journal(path / "log.jsonl")
        """One line per log interval."""
        self.evaluations = Journal(path / "eval_result.jsonl")
        """One line per evaluation during training."""

    @property
    def started_at(self) -> float | None:
        """When the run took its first step, in seconds since 1970; None where the version file does not say."""
        try:
            facts = json.loads(self.version_file.read_text(encoding="utf-8"))
            return datetime.fromisoformat(facts["started_at"]).timestamp()
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def written_config(self) -> Mapping[str, Any]:
        """The run file that a run left here, as it is written; empty where there is none.

        Somebody else's file may have the name.
        """
        try:
            config = yaml.safe_load(self.run_file.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError):
            return {}
        return config if isinstance(config, Mapping) else {}

    @property
    def lock_file(self) -> Path:
        """A file of the temporary folder, found by the folder's full path."""
        key = hashlib.sha256(os.fsencode(self.path.resolve())).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"penstock-{key}.lock"

    def is_training(self) -> bool:
        """Whether a process of this machine holds the lock."""
        try:
            with self.lock_file.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def require_checkpoints(self) -> None:
        if not self.checkpoints.is_dir():
            raise CheckpointError(f"{self.path} holds no checkpoint; train first, or give --model_dir")

    def begin(
        self, run_file: str, data: Mapping[str, int], profile: Mapping[str, Any] | None, *, is_new: bool
    ) -> None:
        """Write what a run is: its final config, which versions and which data made it, and when it began.

        A run that goes on began before. Of one that is new, nothing stays that another wrote which failed before its
        first checkpoint. `data` are bytes by file.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        for name in NAMES_OF_A_RUN:  # other hidden files may be the user's, or of an evaluation that goes on
            for left_by_kill in self.path.glob(f".{name}.*{PARTIAL_SUFFIX}"):
                left_by_kill.unlink(missing_ok=True)
        if is_new:
            for path in (self.log.path, self.evaluations.path, self.version_file):
                path.unlink(missing_ok=True)
        (self.path / MARK).unlink(missing_ok=True)
        started_at = self.started_at
        replace_text(self.run_file, run_file)
        began = datetime.now(UTC) if started_at is None else datetime.fromtimestamp(started_at, UTC)
        facts = {"started_at": began.isoformat(), "packages": installed_versions(), "data": data}
        replace_text(self.version_file, json.dumps(facts, indent=2) + "\n")
        if profile is not None:
            replace_text(self.data_profile, json.dumps(profile, indent=1, default=str) + "\n")

    @contextmanager
    def lock(self, resume: bool = False) -> Iterator[None]:
        """Keep the folder for one training on this machine; the system lets go when this process ends.

        Refuses a folder that cannot be written, and one that holds a trained run, unless this is to `resume` it. Makes
        nothing in it. Who held the lock file removes it before letting go, so a lock counts only on the file that the
        path still leads to.
        """
        existing = next(folder for folder in (self.path, *self.path.parents) if folder.exists())
        if not existing.is_dir():
            raise ConfigError.at("model_dir", f"'{existing}' is a file; choose another folder")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise ConfigError.at("model_dir", f"no permission to write in '{existing}'")
        if not resume and self.checkpoints.is_dir() and CheckpointStore(self.checkpoints).all_steps():
            raise CheckpointError(
                f"{self.path} holds a trained run already; continue it with --continue_train, "
                "or choose another --model_dir"
            )
        path, is_ours = self.lock_file, False
        while not is_ours:
            with suppress(FileExistsError, FileNotFoundError):
                path.touch(exist_ok=False)
                path.chmod(0o644)  # so that other users can open it too
            with suppress(FileNotFoundError):
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    is_ours = os.path.samestat(os.fstat(descriptor), path.stat())
                except BlockingIOError:
                    raise ConfigError.at(
                        "model_dir",
                        f"another penstock train is writing in '{self.path}'; "
                        "wait until it ends, or choose another --model_dir",
                    ) from None
                finally:
                    if not is_ours:
                        os.close(descriptor)
        try:
            yield
        finally:
            with suppress(OSError):  # it may be another user's
                os.unlink(path)
            os.close(descriptor)
