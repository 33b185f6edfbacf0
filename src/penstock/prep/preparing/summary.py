"""What a preparation did, for people and for the log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.config.sizes import format_size
from penstock.prep.preparing.records import TaskRecord

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class PrepSummary:
    """The result of a preparation."""

    num_files: int
    num_samples: int
    num_batches: int
    bytes_read: int
    bytes_written: int
    left_out: Mapping[str, str]
    """Files that were left out, and why."""
    empty: Sequence[str]
    """Files that gave no sample, without being left out."""
    nan_samples: int
    """Those with features that are NaN."""
    largest_errors: Mapping[str, float]
    """Of rounding to float16, by array."""
    num_workers: int
    """0: all in one process."""
    seconds: float
    new_samples: int
    """Those of this time; others were there from a preparation that was stopped."""
    kept_tasks: int
    num_tasks: int

    @classmethod
    def of(
        cls,
        records: Sequence[TaskRecord],
        kept_tasks: int,
        new_samples: int,
        num_workers: int,
        seconds: float,
    ) -> "PrepSummary":
        """Add up the records of all tasks."""
        left_out = {file: reason for record in records for file, reason in record.left_out.items()}
        inputs = [entry for record in records for entry in record.inputs]
        errors: dict[str, float] = {}
        for record in records:
            for name, error in record.largest_errors.items():
                errors[name] = max(error, errors.get(name, 0.0))
        return cls(
            num_files=len(inputs),
            num_samples=sum(record.num_samples for record in records),
            num_batches=sum(len(record.batches) for record in records),
            bytes_read=sum(entry.num_bytes for entry in inputs),
            bytes_written=sum(record.num_bytes for record in records),
            left_out=left_out,
            empty=[entry.path for entry in inputs if not entry.num_samples and entry.path not in left_out],
            nan_samples=sum(record.nan_samples for record in records),
            largest_errors=errors,
            num_workers=num_workers,
            seconds=seconds,
            new_samples=new_samples,
            kept_tasks=kept_tasks,
            num_tasks=len(records),
        )

    def lines(self) -> list[str]:
        """For the terminal."""
        samples, files = counted(self.num_samples, "sample"), counted(self._num_used, "file")
        batches = f"{counted(self.num_batches, 'batch file')}, {format_size(self.bytes_written)}"
        found = [f"prepared  {samples} of {files} in {batches}"]
        if self.kept_tasks < self.num_tasks:
            found.append(f"time      {self.seconds:.1f} s, {self._rate()}, {self._workers()}")
        if self.kept_tasks:
            found.append(f"kept      {self.kept_tasks:,} of {self.num_tasks:,} tasks were done before")
        for name, error in self.largest_errors.items():
            found.append(f"float16   {name}: largest rounding error {error:.3g}")
        if self.empty:
            found.append(
                f"empty     {counted(len(self.empty), 'file')} gave no samples, first {self.empty[0]}"
            )
        if self.nan_samples:
            found.append(f"NaN       {counted(self.nan_samples, 'sample')} with features that are NaN")
        if self.left_out:
            found.append(f"left out  {counted(len(self.left_out), 'file')}")
            found += [f"          {reason}" for reason in [*self.left_out.values()][:_SHOWN]]
            if len(self.left_out) > _SHOWN:
                found.append(f"          and {len(self.left_out) - _SHOWN:,} more, see log.jsonl")
        return found

    def as_record(self) -> dict[str, Any]:
        """For the log."""
        return {
            "files": self.num_files,
            "samples": self.num_samples,
            "batches": self.num_batches,
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "left_out": len(self.left_out),
            "empty": len(self.empty),
            "nan_samples": self.nan_samples,
            "workers": self.num_workers,
            "seconds": round(self.seconds, 3),
            "kept_tasks": self.kept_tasks,
        }

    @property
    def _num_used(self) -> int:
        return self.num_files - len(self.left_out)

    def _rate(self) -> str:
        return f"{self.new_samples / max(self.seconds, 1e-9):,.0f} samples/s"

    def _workers(self) -> str:
        if not self.num_workers:
            return "one process"
        return f"{self.num_workers} worker process{'es' if self.num_workers > 1 else ''}"


def counted(count: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "sample"), counted(2000, "batch file")
    ('1 sample', '2,000 batch files')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
