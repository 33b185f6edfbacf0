"""One whole checkpoint, opened: verified first, then read."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from penstock.checkpoint.documents import decode_document
from penstock.checkpoint.manifest import Difference, Manifest, TensorRecord
from penstock.config.errors import CheckpointError
from penstock.runtime.checksums import file_checksum
from penstock.runtime.world import Collectives, OneProcess, World

if TYPE_CHECKING:
    import torch

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Ranks:
    """This rank and its way to talk to the others."""

    world: World = field(default_factory=World)
    collectives: Collectives = field(default_factory=OneProcess)

    @property
    def alone(self) -> bool:
        return self.world.num_ranks == 1

    def together(self, action: Callable[[], Result]) -> Result:
        """Run `action` on this rank; when it fails on any rank, every rank raises the first rank's reason.

        Without it a full disk on one rank would leave the others waiting.
        """
        problem, result = "", None
        try:
            result = action()
        except (OSError, CheckpointError) as error:
            problem = str(error)
        problems = self.gather_strings(problem)
        if any(problems):
            raise CheckpointError(next(filter(None, problems)))
        return result  # type: ignore[return-value]  # no problem anywhere, so this rank has its result

    def first_only(self, action: Callable[[], None]) -> None:
        """Run `action` on the first rank while the others wait for its outcome."""
        self.together(action if self.world.is_first else lambda: None)

    def gather_strings(self, text: str) -> list[str]:
        """Every rank's text, in rank order, on all ranks."""
        content = np.frombuffer(text.encode(), dtype=np.uint8)
        return [part.tobytes().decode() for part in self.collectives.gather(content)]


class Checkpoint:
    """A checkpoint whose files are all there and unchanged since they were written."""

    def __init__(self, path: Path, manifest: Manifest, ranks: Ranks) -> None:
        self.path = path
        self.manifest = manifest
        self._ranks = ranks
        self.documents: dict[str, Any] = {name: _document(path, name) for name in manifest.documents}

    @property
    def step(self) -> int:
        """How many steps had been taken when it was written."""
        return self.manifest.step

    @property
    def tensors(self) -> Mapping[str, TensorRecord]:
        """Shape and dtype of every tensor, by name."""
        return self.manifest.tensors

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.manifest.tensors)

    def difference(self, into: "Mapping[str, torch.Tensor]") -> Difference:
        """How the tensors of `into`, of all ranks together, differ from those of the checkpoint.

        Every rank must call and learns the same: a rank knows the optimizer state of its own tables only.
        """
        from penstock.checkpoint.storage import describe

        own = {name: dataclasses.asdict(record) for name, record in describe(into).items()}
        wanted: dict[str, TensorRecord] = {}
        for of_rank in map(json.loads, self._ranks.gather_strings(json.dumps(own))):
            wanted.update((name, TensorRecord.from_json(record)) for name, record in of_rank.items())
        return Difference.between(self.manifest.tensors, wanted)

    def load_tensors(self, into: "Mapping[str, torch.Tensor]", strict: bool = True) -> Difference:
        """Fill the tensors of `into` in place; every rank must call.

        Everything is compared before anything is read. `strict` wants the same names on both sides; otherwise
        what both have is loaded, and the difference is for the caller to show. A tensor of another shape or
        dtype is always an error.
        """
        from penstock.checkpoint.storage import read_tensors

        difference = self.difference(into)
        refused = difference if strict else Difference(changed=difference.changed)
        if refused:
            raise CheckpointError(f"{self.path}: does not fit this model: {refused}")
        wanted = {name: tensor for name, tensor in into.items() if name in self.manifest.tensors}
        read_tensors(self.path, self.manifest.tensors, wanted, alone=self._ranks.alone)
        return difference


def open_checkpoint(path: Path, ranks: Ranks | None = None) -> Checkpoint:
    """Open a checkpoint after checking every byte of it; every rank must call, and each checks its part."""
    ranks = ranks or Ranks()

    def verified() -> Manifest:
        manifest = Manifest.read(path)
        check_sizes(path, manifest)
        for name in sorted(manifest.files)[ranks.world.rank :: ranks.world.num_ranks]:
            _check_content(path, manifest, name)
        return manifest

    return Checkpoint(path, ranks.together(verified), ranks)


def read_document(path: Path, name: str) -> Any:
    """One document of a checkpoint, None when it has none of this name; the tensors are not read.

    All files must be there with their sizes, and the document must be unchanged.
    """
    manifest = Manifest.read(path)
    check_sizes(path, manifest)
    if name not in manifest.documents:
        return None
    _check_content(path, manifest, f"{name}.json")
    return _document(path, name)


def check_sizes(path: Path, manifest: Manifest) -> None:
    """The quick look: every file is there and as long as it was."""
    for name, record in manifest.files.items():
        try:
            size_bytes = (path / name).stat().st_size
        except OSError:
            raise CheckpointError(f"{path}: file '{name}' is missing") from None
        if size_bytes != record.size_bytes:
            raise CheckpointError(
                f"{path}: file '{name}' has {size_bytes} bytes instead of {record.size_bytes}"
            )


def _check_content(path: Path, manifest: Manifest, file: str) -> None:
    if file_checksum(path / file) != manifest.files[file].crc32:
        raise CheckpointError(f"{path}: file '{file}' was changed or damaged after it was written")


def _document(path: Path, name: str) -> Any:
    try:
        return decode_document((path / f"{name}.json").read_bytes())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: document '{name}' cannot be read ({error})") from None
