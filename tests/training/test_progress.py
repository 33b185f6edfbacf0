"""Counts that a checkpoint holds, and what is due when."""

import pytest

from penstock.training.progress import End, Every, TrainingProgress


def test_counts_steps_rows_and_epochs():
    progress = TrainingProgress()

    progress.count(num_rows=4, loss=1.0)
    progress.count(num_rows=2, loss=3.0)
    assert (progress.step, progress.rows, progress.epoch_steps) == (2, 6, 2)

    progress.end_epoch()
    assert (progress.step, progress.epoch, progress.epoch_steps) == (2, 1, 0)


def test_the_mean_loss_is_of_the_steps_since_it_was_last_asked_for():
    progress = TrainingProgress()

    progress.count(4, loss=1.0)
    progress.count(4, loss=3.0)
    assert progress.mean_loss() == 2.0
    progress.close_window()

    progress.count(4, loss=7.0)
    assert progress.mean_loss() == 7.0


@pytest.mark.parametrize(
    ("every", "due_steps"),
    [(Every(steps=3), [3, 6]), (Every(steps=1), [1, 2, 3, 4, 5, 6]), (Every(epochs=2), []), (Every(), [])],
)
def test_steps(every, due_steps):
    assert [step for step in range(1, 7) if every.due_after_step(TrainingProgress(step=step))] == due_steps


@pytest.mark.parametrize(
    ("every", "due_epochs"),
    [(Every(epochs=2), [2, 4]), (Every(epochs=1), [1, 2, 3, 4]), (Every(steps=1), [])],
)
def test_epochs(every, due_epochs):
    assert [
        epoch for epoch in range(1, 5) if every.due_after_epoch(TrainingProgress(epoch=epoch))
    ] == due_epochs


@pytest.mark.parametrize(
    ("end", "progress", "reached"),
    [
        (End(steps=5), TrainingProgress(step=4, epoch=9), False),
        (End(steps=5), TrainingProgress(step=5), True),
        (End(epochs=2), TrainingProgress(step=99, epoch=1), False),
        (End(epochs=2), TrainingProgress(step=1, epoch=2), True),
    ],
)
def test_the_end(end, progress, reached):
    assert end.reached(progress) is reached
