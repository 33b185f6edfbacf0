"""The trainer: what happens when, where it ends, and what it saves."""

import pytest

from penstock.config.errors import DataError
from penstock.training.evaluate import Evaluation
from penstock.training.progress import End, Every, Timetable, TrainingProgress
from penstock.training.step import Pipeline, StepOutcome, Stopwatch
from penstock.training.trainer import no_batch
from tests.training.fakes import FakeBatch, FakeBatches, FakeCheckpoints, make_trainer

TWO_BATCHES = [FakeBatch(0), FakeBatch(1)]
NEVER = Every()


@pytest.fixture
def trained(tmp_path):
    """Trains; gives everything that happened before the end, in order, and how far the run came."""

    def train(batches, timetable, *, progress=None, stop_when=lambda: False, loss=0.5, overflowing=()):
        progress, events = progress or TrainingProgress(), []
        overflows = iter(overflowing)

        def step(batch, progress):
            events.append(f"batch {batch.number}")
            return StepOutcome(
                loss[batch.number] if isinstance(loss, list) else loss, {}, next(overflows, False)
            )

        trainer = make_trainer(
            FakeBatches(batches, events),
            timetable,
            tmp_path,
            step=step,
            progress=progress,
            interrupted=stop_when,
            evaluate_model=lambda interrupted: Evaluation({}, {}, 1),
        )
        trainer._train()
        return events, progress

    return train


def test_takes_every_batch_once_per_epoch(trained):
    events, progress = trained(TWO_BATCHES, Timetable(End(epochs=2), NEVER, NEVER))

    assert events == [
        "batch 0", "step 1", "batch 1", "step 2", "epoch 1",
        "batch 0", "step 3", "batch 1", "step 4", "epoch 2",
    ]  # fmt: skip
    assert (progress.step, progress.epoch, progress.rows, progress.epoch_steps) == (4, 2, 40, 0)


def test_saves_before_it_evaluates(trained):
    every_two = Every(steps=2)

    events, _ = trained(TWO_BATCHES, Timetable(End(steps=3), every_two, every_two))

    assert events == [
        "batch 0", "step 1", "batch 1", "step 2", "save 2", "evaluate 2", "epoch 1", "batch 0", "step 3",
    ]  # fmt: skip


def test_what_is_due_by_epochs_comes_when_the_epoch_is_over(trained):
    events, _ = trained(TWO_BATCHES, Timetable(End(epochs=2), Every(epochs=2), Every(epochs=1)))

    assert [event for event in events if not event.startswith(("batch", "step"))] == [
        "epoch 1", "evaluate 2", "epoch 2", "save 4", "evaluate 4",
    ]  # fmt: skip


def test_ends_inside_an_epoch_after_the_last_step(trained):
    events, progress = trained(TWO_BATCHES, Timetable(End(steps=1), NEVER, NEVER))

    assert events == ["batch 0", "step 1"]
    assert (progress.step, progress.epoch, progress.epoch_steps) == (1, 0, 1)


def test_a_run_that_is_done_takes_no_step(trained):
    events, _ = trained(
        TWO_BATCHES, Timetable(End(steps=4), NEVER, NEVER), progress=TrainingProgress(step=4, epoch=2)
    )

    assert events == []


def test_stops_after_the_step_in_which_it_was_asked_to_and_saves_what_is_due(trained):
    events, progress = trained(
        TWO_BATCHES, Timetable(End(epochs=9), Every(steps=1), NEVER), stop_when=lambda: True
    )

    assert events == ["batch 0", "step 1", "save 1"]
    assert progress.epoch == 0


def test_stops_at_the_end_of_an_epoch(trained):
    asked = iter([False, False, True])

    events, progress = trained(
        TWO_BATCHES, Timetable(End(epochs=9), NEVER, NEVER), stop_when=lambda: next(asked)
    )

    assert events[-2:] == ["step 2", "epoch 1"]
    assert progress.epoch == 1


def test_goes_on_in_the_middle_of_an_epoch(tmp_path):
    source = FakeBatches(TWO_BATCHES)
    source.load_state_dict({"epoch": 0, "given": 1})
    progress = TrainingProgress(step=1, rows=10, epoch_steps=1)

    make_trainer(source, Timetable(End(epochs=2)), tmp_path, progress=progress).run()

    assert (progress.step, progress.epoch, progress.rows) == (4, 2, 40)


def test_an_epoch_whose_last_batch_was_taken_before_a_restart_just_ends(tmp_path):
    source = FakeBatches(TWO_BATCHES)
    source.load_state_dict({"epoch": 0, "given": 2})
    progress = TrainingProgress(step=2, rows=20, epoch_steps=2)

    make_trainer(source, Timetable(End(epochs=1)), tmp_path, progress=progress).run()

    assert (progress.step, progress.epoch) == (2, 1)


def test_the_position_that_is_saved_is_that_of_the_last_finished_batch(tmp_path):
    """However many were handed out, as to a pipeline that holds some in flight."""
    batches = [FakeBatch(number, resume_state={"epoch": 0, "given": number + 1}) for number in range(4)]
    source, checkpoints = FakeBatches(batches), FakeCheckpoints()

    class TwoInFlight(Pipeline):
        def __init__(self, progress):
            super().__init__(lambda batch, progress: StepOutcome(0.5, {}), progress)
            self.waiting = []

        def progress(self, batches):
            self.waiting += [batch for batch in [next(batches, None)] if batch is not None]
            if len(self.waiting) == 1:
                self.waiting += [batch for batch in [next(batches, None)] if batch is not None]
            return super().progress(iter([self.waiting.pop(0)])) if self.waiting else None

    progress = TrainingProgress()
    make_trainer(
        source,
        Timetable(End(epochs=1), save_every=Every(steps=1)),
        tmp_path,
        progress=progress,
        pipeline=TwoInFlight(progress),
        checkpoints=checkpoints,
    ).run()

    assert checkpoints.positions == {step: {"epoch": 0, "given": step} for step in (1, 2, 3, 4)}


def test_the_run_ends_saved_and_evaluated_once(tmp_path):
    events = []
    trainer = make_trainer(
        FakeBatches(TWO_BATCHES, events),
        Timetable(End(epochs=1), Every(epochs=1), Every(epochs=1)),
        tmp_path,
        evaluate_model=lambda interrupted: Evaluation({"auc": 0.5}, {}, 1),
    )

    ended = trainer.run()

    assert events == ["step 1", "step 2", "epoch 1", "save 2", "evaluate 2", "end"]
    assert (ended.evaluated, ended.stopped_because, ended.is_repeated) == ({"auc": 0.5}, None, False)


def test_data_without_a_batch_are_an_error_not_an_endless_loop(trained):
    with pytest.raises(DataError) as caught:
        trained([], Timetable(End(steps=5), NEVER, NEVER))

    assert (
        str(caught.value)
        == str(no_batch("train_input_path"))
        == (
            "train_input_path: the files give no batch: "
            "they have no rows, or fewer than data_config.batch_size with drop_remainder"
        )
    )


def test_a_batch_whose_loss_is_not_finite_is_no_step(trained):
    events, progress = trained(
        TWO_BATCHES, Timetable(End(epochs=1), Every(steps=1), NEVER), loss=[float("nan"), 0.5]
    )

    assert events == ["batch 0", "skip 1", "batch 1", "step 1", "save 1", "epoch 1"]
    assert (progress.step, progress.rows) == (1, 10)
    assert (progress.skipped_batches, progress.skipped_rows) == (1, 10)


def test_an_epoch_without_a_finite_loss_ends_the_run(trained):
    with pytest.raises(DataError) as caught:
        trained(TWO_BATCHES, Timetable(End(steps=5), NEVER, NEVER), loss=float("inf"))

    assert str(caught.value) == (
        "epoch 0: no batch gave a finite loss, 2 were skipped; "
        "look at the rows in model_dir/nonfinite, or lower the learning rate"
    )


def test_a_run_can_be_stopped_while_it_skips(trained):
    events, progress = trained(
        TWO_BATCHES, Timetable(End(steps=5), NEVER, NEVER), loss=float("nan"), stop_when=lambda: True
    )

    assert events == ["batch 0", "skip 1"]
    assert progress.step == 0


def test_new_data_are_trained_on_as_long_as_the_first(trained):
    progress = TrainingProgress(step=2, epoch=1, rows=20)
    progress.move_to_new_data()

    _, progress = trained(TWO_BATCHES, Timetable(End(epochs=1), NEVER, NEVER), progress=progress)

    assert (progress.step, progress.epoch) == (4, 2)


def test_the_time_of_waiting_and_of_working_are_told_apart(monkeypatch):
    clock = iter([0.0, 3.0, 10.0, 11.0, 12.0])
    monkeypatch.setattr("penstock.training.step.time.perf_counter", lambda: next(clock))
    pipeline = Pipeline(lambda batch, progress: StepOutcome(0.5, {}), TrainingProgress())
    batches = iter(TWO_BATCHES)

    assert [pipeline.progress(batches).batch.number for _ in TWO_BATCHES] == [0, 1]
    assert pipeline.progress(batches) is None

    assert (pipeline.stopwatch.waiting, pipeline.stopwatch.working) == (4.0, 8.0)
    assert pipeline.stopwatch.waiting_share() == pytest.approx(1 / 3)
    assert Stopwatch().waiting_share() == 0.0


def test_a_batch_that_overflows_is_no_step(trained):
    timetable = Timetable(End(steps=2), Every(steps=1), NEVER)
    events, progress = trained(TWO_BATCHES, timetable, overflowing=[True])

    assert events == [
        "batch 0",
        "overflow 1",
        "batch 1",
        "step 1",
        "save 1",
        "epoch 1",
        "batch 0",
        "step 2",
        "save 2",
    ]
    assert (progress.overflowed_batches, progress.skipped_batches, progress.rows) == (1, 0, 20)


def test_an_epoch_of_overflows_ends_without_a_save_and_the_next_goes_on(trained):
    timetable = Timetable(End(epochs=2), Every(epochs=1), NEVER)
    events, progress = trained(TWO_BATCHES, timetable, overflowing=[True, True, True])

    assert events == [
        "batch 0", "overflow 1", "batch 1", "overflow 2", "epoch 1",
        "batch 0", "overflow 3", "batch 1", "step 1", "epoch 2", "save 1",
    ]  # fmt: skip
    assert (progress.overflowed_batches, progress.epoch_overflows) == (3, 0)


def test_a_run_without_any_step_is_an_error(trained):
    with pytest.raises(DataError, match="the gradients of all 2 batches were too large for FP16; lower "):
        trained(TWO_BATCHES, Timetable(End(epochs=1), NEVER, NEVER), overflowing=[True, True])
