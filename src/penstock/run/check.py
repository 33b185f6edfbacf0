"""The command `check`: everything that could be wrong before the start."""

from contextlib import ExitStack
from pathlib import Path

from penstock.config.sizes import format_size
from penstock.observe.listeners import warn_of_histograms
from penstock.observe.summary import aligned, counted, number
from penstock.prep.prepare import Preview, preview
from penstock.run.evaluate import training_evaluator
from penstock.run.preparation import is_measured, merge_options, preprocessing_of, reading_of
from penstock.run.remarks import remarks
from penstock.run.requirements import require_for_training, train_section
from penstock.run.restore import checkpoint_at
from penstock.run.run_config import RunConfig
from penstock.run.session import computing
from penstock.run.training import build_training, plan_training, profile_training_data, with_joined_batches
from penstock.run.unknown_values import sample_remarks
from penstock.runtime.memory import limit_of
from penstock.runtime.sections import OnExceed
from penstock.training.trainer import no_batch


def check(run: RunConfig) -> str:
    """Open the data, build the model, take one batch through it, and one through an evaluation; describe them."""
    require_for_training(run)
    train = train_section(run)
    run = with_joined_batches(run)
    if train.fine_tune_checkpoint:
        checkpoint_at(Path(train.fine_tune_checkpoint), "train_config.fine_tune_checkpoint")
    warn_of_histograms(train)
    with ExitStack() as stack:
        session = stack.enter_context(computing(run))
        plan = plan_training(run, session)
        look = profile_training_data(run, plan, session.monitor.sample())
        found = [*remarks(run, plan, look), *sample_remarks(look.record)]
        plan = plan.expecting({}, look.record["column_kinds"])
        training = stack.enter_context(build_training(run, session, plan))
        one_batch = {"eval_config": run.eval_config.model_copy(update={"num_steps": 1})}
        evaluator = training_evaluator(run.model_copy(update=one_batch), training, session)
        batch = next(iter(training.batches), None)
        if batch is None:
            raise no_batch("train_input_path")
        outcome = training.step(batch, training.progress)
        if outcome.taken:
            # What a step, a line of the log and a checkpoint ask of the metrics of training.
            metrics = plan.train_metrics
            metrics.update(outcome.predictions, batch)
            metrics.compute()
            metrics.remarks()
            metrics.state_dict()
        if evaluator is not None:
            evaluator()
        scanned, budget = training.plan.source.scanned, training.plan.budget
        num_parameters = sum(parameter.numel() for parameter in training.sharded.module.parameters())
        planned = format_size(sum(share.limit_bytes for share in budget.shares.values()))
        columns = counted(len(scanned.columns.names), "column")
        return aligned(
            [
                ("data", f"{counted(len(scanned.files), 'file')}, {columns} read"),
                ("model", f"{num_parameters:,} parameters"),
                ("first batch", f"{batch.num_rows:,} rows, loss {number(outcome.loss)}"),
                (
                    "memory",
                    f"{planned} of {format_size(budget.limit_bytes)} planned (by stage: penstock plan)",
                ),
                *([("look", f"the columns were not looked at: {look.problem}")] if look.problem else []),
                *(("remark", remark) for remark in found),
                ("check", f"{counted(len(found), 'remark') if found else 'all good'}; nothing was written"),
            ]
        )


_OF_PREPARATION = {"preprocessing", "memory", "data_config"}
_SHOWN = 6


def is_for_preparation(run: RunConfig) -> bool:
    return run.preprocessing is not None and run.model_fields_set <= _OF_PREPARATION


def check_preparation(run: RunConfig) -> Preview:
    """Find the files, import the function, make the first sample, look at where everything would be written."""
    section, memory = preprocessing_of(run), run.memory
    merge_options(section, limit_of(memory))
    return preview(
        section,
        reading_of(run),
        limit_bytes=limit_of(memory),
        ends_when_exceeded=is_measured(section, memory) and memory.on_exceed is OnExceed.stop,
    )


def preview_lines(preview: Preview) -> list[str]:
    arrays = [
        f"{spec.name} {spec.dtype}" + ("" if spec.width is None else f" x {spec.width}")
        for spec in preview.schema.arrays
    ]
    more = [f"and {len(arrays) - _SHOWN} more"] if len(arrays) > _SHOWN else []
    return [
        f"raw files    {counted(len(preview.files), 'file')}, {format_size(preview.num_bytes)}",
        f"extract      {preview.extract or 'columns of the files'}",
        f"arrays       {', '.join(arrays[:_SHOWN] + more)}",
        f"written to   {preview.intermediate_dir}, merged to {preview.output_dir}",
        "check        all good for prep and merge; nothing of training is in this file, and nothing was written",
    ]
