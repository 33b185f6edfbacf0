"""The trainer: what happens when, where it ends, and what it saves."""

import pytest

from penstock.config.errors import DataError
from penstock.training.evaluate import Evaluation
from penstock.training.events import End, Every, Timetable, TrainingProgress
from penstock.training.step import Pipeline, StepOutcome, Stopwatch
from penstock.training.trainer import no_batch
from tests.training.fakes import FakeBatch, FakeBatches, FakeCheckpoints, make_trainer

TWO_BATCHES = [FakeBatch(0), FakeBatch(1)]


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


NAN = float("nan")
EACH_STEP, EACH_EPOCH = Every(steps=1), Every(epochs=1)


@pytest.mark.parametrize(
    ("timetable", "options", "expected"),
    [
        (Timetable(End(epochs=2)), {}, "b0 step1 b1 step2 epoch1 b0 step3 b1 step4 epoch2"),
        (
            Timetable(End(steps=3), Every(steps=2), Every(steps=2)),
            {},
            "b0 step1 b1 step2 save2 evaluate2 epoch1 b0 step3",
        ),
        (
            Timetable(End(epochs=2), Every(epochs=2), EACH_EPOCH),
            {},
            "b0 step1 b1 step2 epoch1 evaluate2 b0 step3 b1 step4 epoch2 save4 evaluate4",
        ),
        (Timetable(End(steps=1)), {}, "b0 step1"),
        (Timetable(End(steps=4)), {"progress": TrainingProgress(step=4, epoch=2)}, ""),
        (Timetable(End(epochs=9), EACH_STEP), {"stop_when": lambda: True}, "b0 step1 save1"),
        (Timetable(End(epochs=1), EACH_STEP), {"loss": [NAN, 0.5]}, "b0 skip1 b1 step1 save1 epoch1"),
        (Timetable(End(steps=5)), {"loss": NAN, "stop_when": lambda: True}, "b0 skip1"),
        (
            Timetable(End(steps=2), EACH_STEP),
            {"overflowing": [True]},
            "b0 overflow1 b1 step1 save1 epoch1 b0 step2 save2",
        ),
        (
            Timetable(End(epochs=2), EACH_EPOCH),
            {"overflowing": [True] * 3},
            "b0 overflow1 b1 overflow2 epoch1 b0 overflow3 b1 step1 epoch2 save1",
        ),
        (
            Timetable(End(epochs=9)),
            {"stop_when": iter([False, False, True]).__next__},
            "b0 step1 b1 step2 epoch1",
        ),
        (
            Timetable(End(epochs=1)),
            {"progress": TrainingProgress(step=2, epoch=1, steps_before=2, epochs_before=1)},
            "b0 step3 b1 step4 epoch2",
        ),
    ],
    ids=[
        "every batch once per epoch",
        "a save comes before an evaluation",
        "by epochs",
        "an end inside an epoch",
        "a run that is done",
        "a stop comes after what is due",
        "a loss that is not finite is no step",
        "a stop while skipping",
        "an overflow is no step",
        "an epoch of overflows",
        "a stop at the end of an epoch",
        "new data are trained on as long as the first",
    ],
)
def test_what_happens_when(trained, timetable, options, expected):
    events, _ = trained(TWO_BATCHES, timetable, **options)

    assert " ".join(event.replace("batch ", "b").replace(" ", "") for event in events) == expected


def test_what_is_counted(trained):
    timetable = Timetable(End(epochs=2))
    _, progress = trained(TWO_BATCHES, timetable, loss=[NAN, 0.5], overflowing=[False, True])

    assert (progress.step, progress.epoch, progress.rows, progress.epoch_steps) == (1, 2, 10, 0)
    assert (progress.skipped_batches, progress.skipped_rows) == (2, 20)
    assert (progress.overflowed_batches, progress.epoch_overflows) == (1, 0)


@pytest.mark.parametrize(("given", "end", "reached"), [(1, 2, (4, 2, 40)), (2, 1, (2, 1, 20))])
def test_goes_on_in_the_middle_or_at_the_end_of_an_epoch(given, end, reached, tmp_path):
    source = FakeBatches(TWO_BATCHES)
    source.load_state_dict({"epoch": 0, "given": given})
    progress = TrainingProgress(step=given, rows=10 * given, epoch_steps=given)

    make_trainer(source, Timetable(End(epochs=end)), tmp_path, progress=progress).run()

    assert (progress.step, progress.epoch, progress.rows) == reached


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


def test_the_run_ends_saved_and_evaluated_once_and_its_seconds_are_without_callbacks(tmp_path, monkeypatch):
    events, seconds = [], [0.0]
    monkeypatch.setattr("penstock.training.trainer.time.perf_counter", lambda: seconds[0])

    def evaluate(interrupted):
        seconds[0] += 2
        return Evaluation({"auc": 0.5}, {}, 1)

    def callback(event):
        seconds[0] += 5

    trainer = make_trainer(
        FakeBatches(TWO_BATCHES, events),
        Timetable(End(epochs=1), Every(epochs=1), Every(epochs=1)),
        tmp_path,
        evaluate_model=evaluate,
        listeners=[callback],
    )

    ended = trainer.run()

    assert events == ["step 1", "step 2", "epoch 1", "save 2", "evaluate 2", "end"]
    assert (ended.evaluated, ended.stopped_because, ended.is_repeated) == ({"auc": 0.5}, None, False)
    assert [record["seconds"] for record in trainer.folder.evaluations.read()] == [2.0]


@pytest.mark.parametrize(
    ("batches", "options", "problem"),
    [
        ([], {}, str(no_batch("train_input_path"))),
        (
            TWO_BATCHES,
            {"loss": float("inf")},
            "epoch 0: no batch gave a finite loss, 2 were skipped; look at the rows",
        ),
        (
            TWO_BATCHES,
            {"overflowing": [True, True]},
            "the gradients of all 2 batches were too large for FP16; lower train_config.grad_scaler.init_scale",
        ),
    ],
)
def test_a_run_without_any_step_is_an_error_not_an_endless_loop(trained, batches, options, problem):
    with pytest.raises(DataError) as caught:
        trained(batches, Timetable(End(epochs=1)), **options)

    assert str(caught.value).startswith(problem)


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
