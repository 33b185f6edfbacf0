"""What is in a data file, a folder of them, a checkpoint or a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.config.syntax import SYNTAX_OF_SUFFIX
from penstock.pipeline.model_dir import ModelDir
from penstock.readers.files import TYPE_OF_SUFFIX, DataFile, list_files
from penstock.readers.parquet.layout import open_file
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Wanted, survey

TINY_ROW_GROUP_BYTES = 512 * KIB
HUGE_ROW_GROUP_BYTES = 256 * MIB
RUN_FILE_SUFFIXES = frozenset(SYNTAX_OF_SUFFIX) - frozenset(TYPE_OF_SUFFIX)


@dataclass(slots=True)
class Inspection:
    """Facts by name, one table, and what the reader should be warned of."""

    kind: str
    facts: dict[str, Any]
    table_name: str = ""
    table: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        named = {self.table_name: self.table} if self.table_name else {}
        return {"kind": self.kind, **self.facts, **named, "warnings": self.warnings}

    def as_text(self) -> str:
        """Everything, for a person."""
        lines = [self.kind]
        lines += [f"  {name.replace('_', ' ')}: {shown(name, value)}" for name, value in self.facts.items()]
        if self.table:
            lines += ["", *text_table(self.table)]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


def inspect(path: Path) -> Inspection:
    """Look at a path and tell what it is."""
    if (path / "manifest.json").exists() and path.name.startswith("step-"):
        return inspect_checkpoint(path)
    if (path / "run.yaml").exists():
        return inspect_run(path)
    if path.is_file() and path.suffix in RUN_FILE_SUFFIXES:
        raise DataError(f"{path}: is a run file, not data; look at it with penstock check")
    return inspect_data(str(path))


def inspect_data(path: str) -> Inspection:
    """Schema, rows and sizes of data files; only headers and footers are read."""
    files = list_files(path)
    if all(file.path.endswith(".parquet") for file in files):
        return inspect_parquet(files)
    reading = ReadingSection(with_header=True)
    schema = survey(reading, files, Wanted()).columns
    facts = {"files": len(files), "bytes_on_disk": sum(file.size_bytes for file in files)}
    table = [{"column": column.name, "type": str(column.type)} for column in schema]
    return Inspection("text files (their first line taken for names)", facts, "columns", table)


def inspect_parquet(files: Sequence[DataFile]) -> Inspection:
    """What the footers of Parquet files say."""
    footers = [read_footer(file) for file in files]
    groups = [footer.row_group(index) for footer in footers for index in range(footer.num_row_groups)]
    facts = {
        "files": len(files),
        "rows": sum(footer.num_rows for footer in footers),
        "row_groups": len(groups),
        "bytes_on_disk": sum(file.size_bytes for file in files),
        "bytes_decoded": sum(group.total_byte_size for group in groups),
        "largest_row_group_bytes": max((group.total_byte_size for group in groups), default=0),
    }
    table = [
        {"column": name, "type": str(kind), "nulls": count_nulls(groups, name)}
        for name, kind in column_types(files[0]).items()
    ]
    return Inspection("Parquet files", facts, "columns", table, row_group_warnings(groups))


def read_footer(file: DataFile) -> pq.FileMetaData:
    """The metadata of one file."""
    with open_file(file) as opened:
        return opened.metadata


def column_types(file: DataFile) -> Mapping[str, Any]:
    """Arrow type of each column."""
    with open_file(file) as opened:
        schema = opened.schema_arrow
    return dict(zip(schema.names, schema.types, strict=True))


def count_nulls(groups: Sequence[Any], column: str) -> int | None:
    """Nulls of a flat column by the statistics of its row groups; None where they don't tell."""
    total = 0
    for group in groups:
        chunks = [group.column(index) for index in range(group.num_columns)]
        found = [chunk for chunk in chunks if chunk.path_in_schema == column]
        if not found or found[0].statistics is None or not found[0].statistics.has_null_count:
            return None
        total += found[0].statistics.null_count
    return total


def row_group_warnings(groups: Sequence[Any]) -> list[str]:
    """Row groups that cost memory or speed."""
    sizes = [group.total_byte_size for group in groups]
    huge = sum(size > HUGE_ROW_GROUP_BYTES for size in sizes)
    tiny = sum(size < TINY_ROW_GROUP_BYTES for size in sizes)
    warnings = []
    if huge:
        warnings.append(
            f"{huge} of {len(sizes)} row groups decode to more than {format_size(HUGE_ROW_GROUP_BYTES)}; "
            "they are read in slices, which is slower"
        )
    if tiny > 1 and tiny * 2 > len(sizes):
        warnings.append(
            f"{tiny} of {len(sizes)} row groups decode to less than {format_size(TINY_ROW_GROUP_BYTES)}; "
            "larger ones (16MiB to 64MiB) read faster"
        )
    return warnings


def inspect_checkpoint(path: Path) -> Inspection:
    """What a checkpoint holds, after its checksums were verified."""
    checkpoint = CheckpointStore(path.parent).open(path)
    table = [
        {"tensor": name, "shape": list(info.shape), "type": info.dtype}
        for name, info in sorted(checkpoint.tensors.items())
    ]
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    facts = {"step": checkpoint.step, "bytes_on_disk": size, "checksums": "right"}
    return Inspection("checkpoint", facts, "tensors", table)


def inspect_run(path: Path) -> Inspection:
    """How far a run is, and how good."""
    folder = ModelDir(path)
    store = CheckpointStore(folder.checkpoints)
    logged = folder.log.read()
    facts = {
        "steps_logged": max((record["step"] for record in logged if "step" in record), default=0),
        "checkpoints": ", ".join(f"step-{step}" for step in store.steps()) or "none",
    }
    table = [
        {"step": record["step"], "epoch": record["epoch"], **record["metrics"]}
        for record in folder.evaluations.read()
    ]
    return Inspection("run", facts, "evaluations", table)


def shown(name: str, value: Any) -> str:
    """A fact as a person reads it."""
    if "bytes" in name:
        return format_size(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def text_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows under their names, in columns of the width they need."""
    names = list(rows[0])
    cells = [names] + [[cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(names))]
    return [
        "  " + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def cell(value: Any) -> str:
    """One cell; what is not known stays a question mark."""
    if value is None:
        return "?"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
