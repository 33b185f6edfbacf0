"""What is in a store: its manifest tells the arrays, and where they lie."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.store.batch_file.values import Values
from penstock.store.contents.contents import Block, Contents, Interval, Part, arrays_of
from penstock.store.contents.file_rows import FileArray, file_blocks
from penstock.store.manifest import MANIFEST_NAME
from penstock.store.merge.checking.part_reading import group_rows, read_group
from penstock.store.merge.document import read_store
from penstock.store.schema import ArraySpec, StoreSchema


@dataclass(frozen=True, slots=True)
class PartGroup:
    """A block: a row group of a Parquet file, or a record batch of an Arrow file."""

    path: Path
    group: int
    num_rows: int
    schema: StoreSchema

    @property
    def held_bytes(self) -> int:
        """The group in the file and decoded, and one array of it."""
        return 3 * self.num_rows * self.schema.row_bytes

    def chunks(self, intervals: Sequence[Interval]) -> Iterator[tuple[str, Values]]:
        """Values of one array after the other; the group is decoded once."""
        with _reading(self.path):
            table = read_group(self.path, self.group)
        for spec in self.schema.arrays:
            for first, end in intervals:
                yield spec.name, _values(table.slice(first, end - first), spec)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say in one line what is wrong with a file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = (str(error).splitlines() or ["no reason is known"])[0].rstrip(".")
        raise DataError(f"{path}: cannot be read: {reason}; run penstock merge again") from error


def store_contents(folder: Path) -> Contents:
    """A store whose files have the sizes that its manifest lists; no value is read."""
    document = read_store(folder)
    _check_sizes(folder, document)
    options, schema = document["options"], StoreSchema.from_document(document["schema"])
    splits: dict[str, int] = document["splits"]
    parts = tuple(
        Part(split, arrays_of(schema, rows), _blocks(folder, document, schema, split, rows))
        for split, rows in splits.items()
    )
    facts = {
        "samples": sum(splits.values()),
        "splits": splits,
        "shuffled": f"with seed {options['seed']}" if options["shuffle"] else "no",
        "merged_batch_files": document["num_batches"],
        "files": len(document["files"]),
        "bytes_on_disk": sum(item["num_bytes"] for item in document["files"]),
    }
    return Contents(f"store ({options['target']})", facts, schema.heads, schema.masked_heads, parts)


def _check_sizes(folder: Path, document: dict[str, Any]) -> None:
    for item in document["files"]:
        path = folder / item["name"]
        found = path.stat().st_size if path.is_file() else None
        if found is None:
            raise DataError(f"{path}: is missing, but {MANIFEST_NAME} lists it; run penstock merge again")
        if found != item["num_bytes"]:
            raise DataError(
                f"{path}: has {found} bytes, but {MANIFEST_NAME} says {item['num_bytes']}; run penstock merge again"
            )


def _blocks(
    folder: Path, document: dict[str, Any], schema: StoreSchema, split: str, num_rows: int
) -> Sequence[Block]:
    if document["options"]["target"] in ("parquet", "ipc"):
        names = [item["name"] for item in document["files"] if item["name"].startswith(f"{split}/")]
        return [block for name in names for block in _groups(folder / name, schema)]
    arrays = tuple(
        FileArray(
            folder / item["file"], item["name"], np.dtype(item["dtype"]), tuple(item["shape"]), item["offset"]
        )
        for item in document["arrays"]
        if item["split"] == split
    )
    return file_blocks(arrays, num_rows)


def _groups(path: Path, schema: StoreSchema) -> list[PartGroup]:
    with _reading(path):
        return [PartGroup(path, group, rows, schema) for group, rows in enumerate(group_rows(path))]


def _values(table: pa.Table, spec: ArraySpec) -> Values:
    column: Any = table.column(spec.name).combine_chunks()
    flat = column if spec.width is None else column.flatten()
    values: Values = flat.to_numpy(zero_copy_only=False)
    return values
