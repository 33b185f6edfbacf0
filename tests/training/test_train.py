"""The training loop: who is called when, and where it ends."""

import pytest

from penstock.config.errors import DataError
from penstock.training.progress import End, Every, TrainingProgress
from penstock.training.step import StepOutcome
from penstock.training.train import Stopwatch, Timetable, no_batch, timed, train
from tests.training.fakes import FakeBatch, FakeBatches, FakeHooks

TWO_BATCHES = [FakeBatch(0), FakeBatch(1)]
NEVER = Every()


def trained(batches, timetable, *, progress=None, stop_when=lambda: False, loss=0.5, overflowing=()):
    """Everything that happened, in order, and how far the run came; `overflowing` of the first steps."""
    progress, events = progress or TrainingProgress(), []
    source = FakeBatches(batches, events)
    hooks = FakeHooks(events, stop_when)
    overflows = iter(overflowing)

    def step(batch, progress):
        events.append(f"batch {batch.number}")
        return StepOutcome(loss[batch.number] if isinstance(loss, list) else loss, {}, next(overflows, False))

    train(step, source, progress, timetable, hooks)
    return events, progress


def test_takes_every_batch_once_per_epoch():
    events, progress = trained(TWO_BATCHES, Timetable(End(epochs=2), NEVER, NEVER))

    assert events == [
        "batch 0", "step 1", "batch 1", "step 2", "epoch 1",
        "batch 0", "step 3", "batch 1", "step 4", "epoch 2",
    ]  # fmt: skip
    assert (progress.step, progress.epoch, progress.rows, progress.epoch_steps) == (4, 2, 40, 0)


def test_saves_before_it_evaluates():
    every_two = Every(steps=2)

    events, _ = trained(TWO_BATCHES, Timetable(End(steps=3), every_two, every_two))

    assert events == [
        "batch 0", "step 1", "batch 1", "step 2", "save 2", "evaluate 2", "epoch 1", "batch 0", "step 3",
    ]  # fmt: skip


def test_what_is_due_by_epochs_comes_when_the_epoch_is_over():
    events, _ = trained(TWO_BATCHES, Timetable(End(epochs=2), Every(epochs=2), Every(epochs=1)))

    assert [event for event in events if not event.startswith(("batch", "step"))] == [
        "epoch 1", "evaluate 2", "epoch 2", "save 4", "evaluate 4",
    ]  # fmt: skip


def test_ends_inside_an_epoch_after_the_last_step():
    events, progress = trained(TWO_BATCHES, Timetable(End(steps=1), NEVER, NEVER))

    assert events == ["batch 0", "step 1"]
    assert (progress.step, progress.epoch, progress.epoch_steps) == (1, 0, 1)


def test_a_run_that_is_done_takes_no_step():
    events, _ = trained(
        TWO_BATCHES, Timetable(End(steps=4), NEVER, NEVER), progress=TrainingProgress(step=4, epoch=2)
    )

    assert events == []


def test_stops_after_the_step_in_which_it_was_asked_to_and_saves_what_is_due():
    events, progress = trained(
        TWO_BATCHES, Timetable(End(epochs=9), Every(steps=1), NEVER), stop_when=lambda: True
    )

    assert events == ["batch 0", "step 1", "save 1"]
    assert progress.epoch == 0


def test_stops_at_the_end_of_an_epoch():
    asked = iter([False, False, True])

    events, progress = trained(
        TWO_BATCHES, Timetable(End(epochs=9), NEVER, NEVER), stop_when=lambda: next(asked)
    )

    assert events[-2:] == ["step 2", "epoch 1"]
    assert progress.epoch == 1


def test_goes_on_in_the_middle_of_an_epoch():
    source = FakeBatches(TWO_BATCHES)
    source.load_state_dict({"epoch": 0, "given": 1})
    progress, hooks = TrainingProgress(step=1, rows=10, epoch_steps=1), FakeHooks()
    taken = []

    train(
        lambda batch, _: taken.append(batch.number) or StepOutcome(0.5, {}),
        source,
        progress,
        Timetable(End(epochs=2), NEVER, NEVER),
        hooks,
    )

    assert taken == [1, 0, 1]
    assert (progress.step, progress.epoch, progress.rows) == (4, 2, 40)


def test_an_epoch_whose_last_batch_was_taken_before_a_restart_just_ends():
    source = FakeBatches(TWO_BATCHES)
    source.load_state_dict({"epoch": 0, "given": 2})
    progress = TrainingProgress(step=2, rows=20, epoch_steps=2)

    train(
        lambda batch, _: StepOutcome(0.5, {}),
        source,
        progress,
        Timetable(End(epochs=1), NEVER, NEVER),
        FakeHooks(),
    )

    assert (progress.step, progress.epoch) == (2, 1)


def test_data_without_a_batch_are_an_error_not_an_endless_loop():
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


def test_a_batch_whose_loss_is_not_finite_is_no_step():
    events, progress = trained(
        TWO_BATCHES, Timetable(End(epochs=1), Every(steps=1), NEVER), loss=[float("nan"), 0.5]
    )

    assert events == ["batch 0", "skip 0", "batch 1", "step 1", "save 1", "epoch 1"]
    assert (progress.step, progress.rows) == (1, 10)
    assert (progress.skipped_batches, progress.skipped_rows) == (1, 10)


def test_an_epoch_without_a_finite_loss_ends_the_run():
    with pytest.raises(DataError) as caught:
        trained(TWO_BATCHES, Timetable(End(steps=5), NEVER, NEVER), loss=float("inf"))

    assert str(caught.value) == (
        "epoch 0: no batch gave a finite loss, 2 were skipped; "
        "look at the rows in model_dir/nonfinite, or lower the learning rate"
    )


def test_a_run_can_be_stopped_while_it_skips():
    events, progress = trained(
        TWO_BATCHES, Timetable(End(steps=5), NEVER, NEVER), loss=float("nan"), stop_when=lambda: True
    )

    assert events == ["batch 0", "skip 0"]
    assert progress.step == 0


def test_new_data_are_trained_on_as_long_as_the_first():
    progress = TrainingProgress(step=2, epoch=1, rows=20)
    progress.move_to_new_data()

    _, progress = trained(TWO_BATCHES, Timetable(End(epochs=1), NEVER, NEVER), progress=progress)

    assert (progress.step, progress.epoch) == (4, 2)


def test_the_time_of_waiting_and_of_working_are_told_apart(monkeypatch):
    clock = iter([0.0, 3.0, 10.0, 10.0, 11.0, 12.0, 12.0])
    monkeypatch.setattr("penstock.training.train.time.perf_counter", lambda: next(clock))
    stopwatch = Stopwatch()

    assert [batch.number for batch in timed(FakeBatches(TWO_BATCHES), stopwatch)] == [0, 1]

    assert (stopwatch.waiting, stopwatch.working) == (4.0, 8.0)
    assert stopwatch.waiting_share() == pytest.approx(1 / 3)
    assert Stopwatch().waiting_share() == 0.0


def test_a_batch_that_overflows_is_no_step():
    timetable = Timetable(End(steps=2), Every(steps=1), NEVER)
    events, progress = trained(TWO_BATCHES, timetable, overflowing=[True])

    assert events == [
        "batch 0",
        "overflow 0",
        "batch 1",
        "step 1",
        "save 1",
        "epoch 1",
        "batch 0",
        "step 2",
        "save 2",
    ]
    assert (progress.overflowed_batches, progress.skipped_batches, progress.rows) == (1, 0, 20)


def test_an_epoch_of_overflows_ends_without_a_save_and_the_next_goes_on():
    timetable = Timetable(End(epochs=2), Every(epochs=1), NEVER)
    events, progress = trained(TWO_BATCHES, timetable, overflowing=[True, True, True])

    assert events == [
        "batch 0", "overflow 0", "batch 1", "overflow 1", "epoch 1",
        "batch 0", "overflow 0", "batch 1", "step 1", "epoch 2", "save 1",
    ]  # fmt: skip
    assert (progress.overflowed_batches, progress.epoch_overflows) == (3, 0)


def test_a_run_without_any_step_is_an_error():
    with pytest.raises(DataError, match="the gradients of all 2 batches were too large for FP16; lower "):
        trained(TWO_BATCHES, Timetable(End(epochs=1), NEVER, NEVER), overflowing=[True, True])
