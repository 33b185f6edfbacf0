"""Which checkpoint is meant: one at a path, what a run ended with, its latest, or its best.

A path may be a checkpoint (RUN/checkpoints/step-100), the folder of a run (RUN), or one of the words behind it
(RUN/best, RUN/latest).
"""

from pathlib import Path

from penstock.checkpoint import Checkpoint, CheckpointStore
from penstock.checkpoint.manifest import MANIFEST_NAME
from penstock.config.errors import CheckpointError
from penstock.config.nearest import hint
from penstock.export.sections import ExportConfig
from penstock.pipeline.best import marked_step, require_best_step
from penstock.pipeline.model_dir import ModelDir
from penstock.pipeline.run_files import load_run

WORDS = ("latest", "best")
FORMS = "a checkpoint (RUN/checkpoints/step-100), a run (RUN), or the best of a run (RUN/best)"


def checkpoint_of_run(folder: ModelDir, word: str | None, export: ExportConfig) -> Checkpoint:
    """The latest or the best checkpoint of a run; every byte of it is checked.

    Where nothing is said: the one that the run ended with, which early stopping may have gone back to.
    """
    folder.require_checkpoints()
    store = CheckpointStore(folder.checkpoints)
    if word == "best":
        return store.open(require_best_step(folder.evaluations.read(), export, str(folder.path)))
    marked = marked_step(folder.path) if word is None else None
    if marked is not None and marked in store.steps():
        return store.open(marked)
    return store.require_latest()


def checkpoint_at(path: Path, key: str) -> Checkpoint:
    """The checkpoint that a path means; where it means none, `key` is the setting that the error speaks of.

    What the best of another run is, its own run.yaml says.
    """
    folder, word = _run_and_word(path)
    if folder is not None:
        export = load_run(folder.run_file).export_config if word == "best" else ExportConfig()
        return checkpoint_of_run(folder, word, export)
    if path.name.startswith("step-") or (path / MANIFEST_NAME).exists():
        _require_known_step(path, key)
        return CheckpointStore(path.parent).open(path)
    raise CheckpointError(f"{key}: {_why_not(path)}; give {FORMS}")


def means_a_checkpoint(path: Path) -> bool:
    """Whether something is there, or a word behind the folder of a run asks for it."""
    return path.exists() or _run_and_word(path)[0] is not None


def _run_and_word(path: Path) -> tuple[ModelDir | None, str | None]:
    """The run that a path names, and the word behind it; its folder of checkpoints stands for the run."""
    word = path.name if path.name in WORDS and not path.exists() else None
    run = path.parent if word else path
    run = run.parent if run.name == "checkpoints" else run
    folder = ModelDir(run)
    return (folder, word) if folder.checkpoints.is_dir() else (None, None)


def _require_known_step(path: Path, key: str) -> None:
    steps = [f"step-{step}" for step in CheckpointStore(path.parent).all_steps()]
    if not path.exists() and steps:
        raise CheckpointError(f"{key}: '{path.parent}' has no '{path.name}'; {hint(path.name, steps)}")


def _why_not(path: Path) -> str:
    if path.is_dir():
        return f"'{path}' has neither a {MANIFEST_NAME} nor a folder checkpoints"
    if path.exists():
        return f"'{path}' is a file"
    if str(path) in WORDS:
        return f"'{path}' does not say of which run"
    return f"there is no '{path}'"
