"""A directory of checkpoints, `step-N` each: whole or absent, the newest ones kept, verified before they are read."""

import dataclasses
import json
import logging
import re
import shutil
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from penstock.checkpoint.manifest import (
    MANIFEST_NAME,
    CheckpointManifest,
    FileRecord,
    TensorDifference,
    TensorMismatch,
    TensorRecord,
    from_json,
    to_json,
)
from penstock.config.errors import CheckpointError
from penstock.runtime.checksums import file_checksum
from penstock.runtime.durable import sync_path, write_durably
from penstock.runtime.world import Collectives, OneProcess, World, installed_versions

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_STEP = re.compile(r"step-(\d+)|\.step-(\d+)\.replaced")

_DOCUMENT = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Ranks:
    """This rank and its way to talk to the others."""

    world: World = field(default_factory=World)
    collectives: Collectives = field(default_factory=OneProcess)

    def together(self, action: Callable[[], Result], *, first_only: bool = False) -> Result:
        """Run `action` on every rank, or on the first; when it fails on any, every rank raises the first one's reason.

        Without it a full disk on one rank would leave the others waiting.
        """
        problem, cause, result = "", None, None
        try:
            if self.world.rank == 0 or not first_only:
                result = action()
        except (OSError, CheckpointError) as error:
            problem, cause = str(error), error
        if self.world.num_ranks > 1:
            problem = next(filter(None, self.gather_strings(problem)), "")
        if problem:
            raise CheckpointError(problem) from cause
        return result  # type: ignore[return-value]  # no problem anywhere, so this rank has its result

    def gather_strings(self, text: str) -> list[str]:
        """Every rank's text, in rank order, on all ranks."""
        content = np.frombuffer(text.encode(), dtype=np.uint8)
        return [part.tobytes().decode() for part in self.collectives.gather(content)]


class Checkpoint:
    """A checkpoint whose files are all there and unchanged since they were written."""

    def __init__(self, path: Path, manifest: CheckpointManifest, ranks: Ranks) -> None:
        self.path, self.manifest, self._ranks = path, manifest, ranks
        self.step = manifest.step
        """How many steps had been taken when it was written."""
        self.tensors: Mapping[str, TensorRecord] = manifest.tensors
        """Shape and dtype of every tensor, by name."""
        self.documents: dict[str, Any] = {name: _document(path, name) for name in manifest.documents}

    def difference(self, into: "Mapping[str, torch.Tensor]") -> TensorDifference:
        """How the tensors of `into`, of all ranks together, differ from those of the checkpoint.

        Every rank must call and learns the same: a rank knows the optimizer state of its own tables only.
        """
        from penstock.checkpoint.storage import describe

        own = {name: dataclasses.asdict(record) for name, record in describe(into).items()}
        wanted: dict[str, TensorRecord] = {}
        for of_rank in map(json.loads, self._ranks.gather_strings(json.dumps(own))):
            wanted.update((name, TensorRecord.from_json(record)) for name, record in of_rank.items())
        return TensorDifference.between(self.tensors, wanted)

    def load_tensors(self, into: "Mapping[str, torch.Tensor]", strict: bool = True) -> TensorDifference:
        """Fill the tensors of `into` in place; every rank must call.

        Everything is compared before anything is read. `strict` wants the same names on both sides; otherwise
        what both have is loaded, and the difference is for the caller to show. A tensor of another shape or
        dtype is always an error.
        """
        from penstock.checkpoint.storage import read_tensors

        difference = self.difference(into)
        refused = difference if strict else TensorDifference(changed=difference.changed)
        if refused:
            raise TensorMismatch(f"{self.path}: does not fit this model: {refused.shown(1)}")
        wanted = {name: tensor for name, tensor in into.items() if name in self.tensors}
        read_tensors(self.path, self.tensors, wanted, self._ranks.world)
        return difference


def open_checkpoint(path: Path, ranks: Ranks | None = None) -> Checkpoint:
    """Open a checkpoint after checking every byte of it; every rank must call, and each checks its part."""
    ranks = ranks or Ranks()

    def verified() -> CheckpointManifest:
        manifest = _manifest(path)
        for name in sorted(manifest.files)[ranks.world.rank :: ranks.world.num_ranks]:
            _check_content(path, manifest, name)
        return manifest

    return Checkpoint(path, ranks.together(verified), ranks)


def _manifest(path: Path) -> CheckpointManifest:
    """The manifest of a checkpoint whose files are all there and as long as they were."""
    manifest = CheckpointManifest.read(path)
    for name, record in manifest.files.items():
        try:
            size_bytes = (path / name).stat().st_size
        except OSError:
            raise CheckpointError(f"{path}: file '{name}' is missing") from None
        if size_bytes != record.size_bytes:
            raise CheckpointError(
                f"{path}: file '{name}' has {size_bytes} bytes instead of {record.size_bytes}"
            )
    return manifest


def _check_content(path: Path, manifest: CheckpointManifest, file: str) -> None:
    if file_checksum(path / file) != manifest.files[file].crc32:
        raise CheckpointError(f"{path}: file '{file}' was changed or damaged after it was written")


def _document(path: Path, name: str) -> Any:
    try:
        return json.loads((path / f"{name}.json").read_bytes(), object_hook=from_json)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: document '{name}' cannot be read ({error})") from None


class CheckpointStore:
    """Saves and finds the checkpoints of one run. With several ranks, every rank makes every call.

    Hidden names, `.step-N.tmp`, `.replaced` and `.removed`, are of what is being written, replaced or removed; what a
    kill leaves of them the next save tidies up.
    """

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

        staging, visible = self.directory / f".step-{step}.tmp", self.directory / f"step-{step}"

        def stage() -> None:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._sweep()
            staging.mkdir()

        def publish() -> None:
            for name, value in documents.items():
                if not _DOCUMENT.fullmatch(name) or f"{name}.json" == MANIFEST_NAME:
                    raise CheckpointError(f"'{name}' cannot name a document; use letters, digits and '_'")
                content = json.dumps(to_json(value, name), indent=1, sort_keys=True).encode()
                write_durably(staging / f"{name}.json", content)
                files[f"{name}.json"] = FileRecord(len(content), zlib.crc32(content))
            manifest = CheckpointManifest(step, installed_versions(), files, layout, tuple(sorted(documents)))
            # The manifest makes the directory a checkpoint.
            write_durably(staging / MANIFEST_NAME, manifest.encode())
            sync_path(staging)
            replaced = self.directory / f".step-{step}.replaced"
            if visible.exists():
                visible.rename(replaced)  # where it is still found
            staging.rename(visible)
            sync_path(self.directory)
            shutil.rmtree(replaced, ignore_errors=True)
            self._keep_newest({*protect, step})

        self._ranks.together(stage, first_only=True)
        files, layout = self._ranks.together(lambda: write_tensors(staging, tensors, self._ranks.world))
        self._ranks.together(publish, first_only=True)
        return visible

    def remove_stale(self, protect: Collection[int] = ()) -> None:
        """Tidy up what a kill may have come before: checkpoints that are no longer kept, and its leftovers."""

        def tidy() -> None:
            self._sweep()
            self._keep_newest(protect)

        self._ranks.together(tidy, first_only=True)

    def _sweep(self) -> None:
        """What a killed run was replacing comes back, its other leftovers go."""
        for replaced in self.directory.glob(".step-*.replaced"):
            visible = self.directory / replaced.name.removeprefix(".").removesuffix(".replaced")
            if not visible.exists():
                replaced.rename(visible)
        for leftover in self.directory.glob(".step-*.*"):
            shutil.rmtree(leftover)

    def _keep_newest(self, protect: Collection[int]) -> None:
        """Remove all whole checkpoints but the newest and the protected ones."""
        if not 0 < self.keep < len(self.all_steps()):
            return
        for step in self.steps()[: -self.keep]:
            if step not in protect:
                # A kill leaves it complete, or out of sight under its hidden name.
                hidden = self.directory / f".step-{step}.removed"
                (self.directory / f"step-{step}").rename(hidden)
                shutil.rmtree(hidden, ignore_errors=True)

    def steps(self) -> list[int]:
        """The steps of all checkpoints that look whole (all files there, with their sizes), rising."""
        whole = []
        for step in self.all_steps():
            with suppress(CheckpointError):
                _manifest(self._path(step))
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
        visible, replaced = self.directory / f"step-{step}", self.directory / f".step-{step}.replaced"
        return replaced if replaced.exists() and not visible.exists() else visible
