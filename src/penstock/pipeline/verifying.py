"""Comparing the store of a run file with its batch files and options; nothing is written."""

from dataclasses import dataclass
from pathlib import Path

from penstock.pipeline.merging import merge_options, preprocessing_of
from penstock.pipeline.prep_memory import measured, memory_lines
from penstock.pipeline.prepared_with import check_prepared_with
from penstock.pipeline.run_config import RunConfig
from penstock.prep.merge import verify
from penstock.runtime.memory import MemoryReport, stage_of
from penstock.runtime.progress import ProgressLogger

_MOST_LINES = 20


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found."""

    output_dir: str
    differences: list[str]
    """One line each; none is good."""
    memory: MemoryReport | None
    """None: it was not measured."""

    def lines(self) -> list[str]:
        """For the terminal; a single difference is left to the line that says that it is an error."""
        agree = "all files, counts, heads, types, options and sampled rows are those of the batch files and the run"
        several = self.differences[:_MOST_LINES] if len(self.differences) > 1 else []
        return [
            *([] if self.differences else [f"verified  {self.output_dir}: {agree}"]),
            *(f"differs   {difference}" for difference in several),
            *memory_lines(self.memory),
        ]

    @property
    def error(self) -> str | None:
        """The first difference, and how many more there are; None where there is none."""
        if not self.differences:
            return None
        first, *others = self.differences
        return first + (f" (and {len(others)} more)" if others else "")


def verify_run(run: RunConfig, *, allow_pickle: bool = False, plain: bool = False) -> VerifyReport:
    """Compare the store of a run with its batch files and with what the run file says of it."""
    section = preprocessing_of(run)
    check_prepared_with(section, Path(section.intermediate_dir))
    options = merge_options(run, allow_pickle)
    with (
        measured(section, run.memory, is_logged=False) as monitor,
        stage_of(monitor, "verifying"),
        ProgressLogger("verifying", "samples", plain=plain) as progress,
    ):
        differences = verify(
            section.output_dir,
            section.intermediate_dir,
            options=options,
            allow_pickle=allow_pickle,
            progress=progress,
        )
    return VerifyReport(section.output_dir, differences, None if monitor is None else monitor.report)
