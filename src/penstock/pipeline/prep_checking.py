"""The command `check` for a run file of preparation: everything that could be wrong before the first task."""

from penstock.config.sizes import format_size
from penstock.pipeline.merging import merge_options, preprocessing_of
from penstock.pipeline.prep_memory import is_measured
from penstock.pipeline.preparing import reading_of
from penstock.pipeline.run_config import RunConfig
from penstock.prep.preparing.preparing import Preview, look_at
from penstock.prep.preparing.summary import counted
from penstock.readers.store_schema import ArraySpec
from penstock.runtime.limits import limit_of
from penstock.runtime.sections import OnExceed

_OF_PREPARATION = {"preprocessing", "memory", "data_config"}
_SHOWN = 6


def is_for_preparation(run: RunConfig) -> bool:
    """Whether a run file has nothing of training in it."""
    return run.preprocessing is not None and run.model_fields_set <= _OF_PREPARATION


def check_preparation(run: RunConfig) -> Preview:
    """Find the files, import the function, make the first sample, look at where everything would be written."""
    merge_options(run)
    section, memory = preprocessing_of(run), run.memory
    return look_at(
        section,
        reading_of(run),
        limit_bytes=limit_of(memory),
        ends_when_exceeded=is_measured(section, memory) and memory.on_exceed is OnExceed.stop,
    )


def preview_lines(preview: Preview) -> list[str]:
    """For the terminal."""
    arrays = [_array(spec) for spec in preview.schema.arrays]
    more = [f"and {len(arrays) - _SHOWN} more"] if len(arrays) > _SHOWN else []
    return [
        f"raw files    {counted(len(preview.files), 'file')}, {format_size(preview.num_bytes)}",
        f"extract      {preview.extract or 'columns of the files'}",
        f"arrays       {', '.join(arrays[:_SHOWN] + more)}",
        f"written to   {preview.intermediate_dir}, merged to {preview.output_dir}",
        "check        all good for prep and merge; nothing of training is in this file, and nothing was written",
    ]


def _array(spec: ArraySpec) -> str:
    return f"{spec.name} {spec.dtype}" + ("" if spec.width is None else f" x {spec.width}")
