"""What is due when."""

import pytest

from penstock.training.progress import End, Every, TrainingProgress


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
