"""Counts that a checkpoint holds."""

from penstock.training.progress import TrainingProgress


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


def test_goes_on_from_its_state():
    before = TrainingProgress(step=7, epoch=1, rows=70, epoch_steps=2, window_steps=1, window_loss=0.25)
    after = TrainingProgress()

    after.load_state_dict(before.state_dict())

    assert after == before
