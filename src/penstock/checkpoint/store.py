"""A directory of checkpoints, `step-N` each: whole or absent, the newest ones kept."""

import logging
import re
import shutil
import zlib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.checkpoint.checkpoint import Checkpoint, Ranks, check_sizes, open_checkpoint, read_document
from penstock.checkpoint.documents import encode_document
from penstock.checkpoint.manifest import MANIFEST_NAME, FileRecord, Manifest
from penstock.config.errors import CheckpointError
from penstock.runtime.durable import remove_at_once, sync_path, write_durably
from penstock.runtime.world import Collectives, OneProcess, World, installed_versions

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

_STEP = re.compile(r"step-(\d+)|\.step-(\d+)\.replaced")

_DOCUMENT = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class CheckpointStore:
    """Saves and finds the checkpoints of one run. With several ranks, every rank makes every call."""

    def __init__(
        self,
        directory: Path,
        keep: int = 0,
        world: World | None = None,
        collectives: Collectives | None = None,
    ) -> None:
        """`keep` is how many of the newest checkpoints stay; 0 keeps all."""
        self.directory = directory
        self.keep = keep
        self._ranks = Ranks(world or World(), collectives or OneProcess())

    def save(
        self,
        step: int,
        tensors: "Mapping[str, torch.Tensor]",
        documents: Mapping[str, Any],
        protect: Collection[int] = (),
    ) -> Path:
        """Write `step-N`, replacing one of the same step, and remove what is no longer kept.

        `protect` names steps to keep besides the newest. Tensors come from every rank, documents from the
        first. After a kill at any instant the store holds the checkpoints it held before, or the new one
        too: a step that is saved again is there all the time, as it was or as it is now.
        """
        from penstock.checkpoint.storage import write_tensors

        staging, replaced, visible = (
            self._hidden(step, "tmp"),
            self._hidden(step, "replaced"),
            self._visible(step),
        )

        def stage() -> None:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._sweep()
            staging.mkdir()

        def publish() -> None:
            for name, value in documents.items():
                if not _DOCUMENT.fullmatch(name) or f"{name}.json" == MANIFEST_NAME:
                    raise CheckpointError(f"'{name}' cannot name a document; use letters, digits and '_'")
                content = encode_document(name, value)
                write_durably(staging / f"{name}.json", content)
                files[f"{name}.json"] = FileRecord(len(content), zlib.crc32(content))
            manifest = Manifest(step, installed_versions(), files, layout, tuple(sorted(documents)))
            # The manifest makes the directory a checkpoint.
            write_durably(staging / MANIFEST_NAME, manifest.encode())
            sync_path(staging)
            if visible.exists():
                visible.rename(replaced)  # where it is still found
            staging.rename(visible)
            sync_path(self.directory)
            shutil.rmtree(replaced, ignore_errors=True)
            self._remove(stale(self.steps(), self.keep, {*protect, step}))

        self._ranks.first_only(stage)
        files, layout = self._ranks.together(lambda: write_tensors(staging, tensors, self._ranks.alone))
        self._ranks.first_only(publish)
        return visible

    def remove_stale(self, protect: Collection[int] = ()) -> None:
        """Tidy up what a kill may have come before: checkpoints that are no longer kept, and its leftovers."""

        def tidy() -> None:
            self._sweep()
            self._remove(stale(self.steps(), self.keep, protect))

        self._ranks.first_only(tidy)

    def steps(self) -> list[int]:
        """The steps of all checkpoints that look whole (all files there, with their sizes), rising."""
        whole = []
        for step in self.all_steps():
            with suppress(CheckpointError):
                check_sizes(self._path(step), Manifest.read(self._path(step)))
                whole.append(step)
        return whole

    def all_steps(self) -> list[int]:
        """The steps of everything that is called a checkpoint, whole or not, rising."""
        if not self.directory.is_dir():
            return []
        matches = (_STEP.fullmatch(path.name) for path in self.directory.iterdir())
        return sorted({int(match[1] or match[2]) for match in matches if match})

    def latest(self) -> Checkpoint | None:
        """The newest whole checkpoint, or None; newer ones that are not whole are logged with the reason."""
        checkpoint, refused = self._newest()
        for error in refused:
            logger.warning("passed over %s", error)
        return checkpoint

    def require_latest(self) -> Checkpoint:
        """The newest whole checkpoint; without one, an error that says what is wrong with the newest of all."""
        checkpoint, refused = self._newest()
        if checkpoint is None:
            nothing = CheckpointError(f"{self.directory} holds no checkpoint; train first")
            raise refused[0] if refused else nothing
        for error in refused:
            logger.warning("passed over %s", error)
        return checkpoint

    def latest_document(self, name: str) -> Any:
        """A document of the newest checkpoint that looks whole, None without one; its tensors are not read.

        Says nothing of what it passes over: `latest` does, and is what restores.
        """
        for step in reversed(self.all_steps()):
            with suppress(CheckpointError):
                return read_document(self._path(step), name)
        return None

    def open(self, which: int | str | Path) -> Checkpoint:
        """A checkpoint of this store by its step, or any other by its path, with every byte checked."""
        if not isinstance(which, int):
            return open_checkpoint(Path(which), self._ranks)
        checkpoint = open_checkpoint(self._path(which), self._ranks)
        if checkpoint.step != which:
            raise CheckpointError(f"{checkpoint.path}: was written at step {checkpoint.step}, then renamed")
        return checkpoint

    def _newest(self) -> tuple[Checkpoint | None, list[CheckpointError]]:
        """The newest whole checkpoint, and why newer ones are not whole."""
        refused: list[CheckpointError] = []
        for step in reversed(self.all_steps()):
            try:
                return self.open(step), refused
            except CheckpointError as error:
                refused.append(error)
        return None, refused

    def _path(self, step: int) -> Path:
        """Where a step is to be read: a replaced one counts while the new one is not there."""
        visible, replaced = self._visible(step), self._hidden(step, "replaced")
        return replaced if replaced.exists() and not visible.exists() else visible

    def _visible(self, step: int) -> Path:
        return self.directory / f"step-{step}"

    def _hidden(self, step: int, why: str) -> Path:
        """A name for what is being written (tmp), replaced or removed; the next save tidies up."""
        return self.directory / f".step-{step}.{why}"

    def _sweep(self) -> None:
        """What a killed run was replacing comes back, its other leftovers go."""
        for step in self.all_steps():
            if self._path(step) != self._visible(step):
                self._path(step).rename(self._visible(step))
        for leftover in self.directory.glob(".step-*.*"):
            shutil.rmtree(leftover)

    def _remove(self, steps: Iterable[int]) -> None:
        for step in steps:
            remove_at_once(self._visible(step), self._hidden(step, "removed"))


def stale(steps: Collection[int], keep: int, protected: Collection[int] = ()) -> list[int]:
    """The steps to remove: all but the newest `keep` and the protected ones; a `keep` of 0 keeps everything.

    >>> stale([10, 20, 30, 40], keep=2, protected=[10])
    [20]
    """
    if keep <= 0:
        return []
    return [step for step in sorted(steps)[:-keep] if step not in protected]
