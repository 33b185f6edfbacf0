"""Stopping and going on: the same bytes as a run that was never interrupted."""

import json
import signal

from tests.end_to_end.runs import evaluations, losses, parameters, start, wait_for_step


def test_stopped_by_ctrl_c_and_continued(trained, workplace):
    process = start(workplace, "train", "run.yaml")
    wait_for_step(process, workplace, 15)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Traceback" not in told
    steps = [
        int(path.name.removeprefix("step-")) for path in (workplace.folder / "run/checkpoints").iterdir()
    ]
    assert max(steps) >= 15

    done = workplace.penstock("train", "run.yaml", "--continue_train")

    assert done.code == 0, done.err
    assert f"continuing from run/checkpoints/step-{max(steps)}" in done.err
    assert parameters(workplace, 72) == parameters(trained, 72)
    assert losses(workplace) == losses(trained)
    assert evaluations(workplace) == evaluations(trained)


def test_killed_and_continued(trained, workplace):
    process = start(workplace, "train", "run.yaml")
    wait_for_step(process, workplace, 25)
    process.kill()
    process.communicate(timeout=60)

    done = workplace.penstock("train", "run.yaml", "--continue_train")

    assert done.code == 0, done.err
    assert parameters(workplace, 72) == parameters(trained, 72)
    assert losses(workplace) == losses(trained)
    assert evaluations(workplace) == evaluations(trained)


def test_continuing_without_a_checkpoint_starts_at_step_0_and_says_so(workplace):
    done = workplace.penstock("train", "run.yaml", "--resume", "--set", "train_config.num_epochs=1")

    assert done.code == 0, done.err
    assert "no whole checkpoint in run/checkpoints; starting at step 0" in done.err


def test_continuing_with_other_data_is_refused(trained, workplace):
    process = start(workplace, "train", "run.yaml")
    wait_for_step(process, workplace, 15)
    process.kill()
    process.communicate(timeout=60)

    other = f"{workplace.data}/test/*.parquet"
    done = workplace.penstock("train", "run.yaml", "--continue_train", "--train_input_path", other)

    assert done.code == 1
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert "test/part-00000.parquet" in done.err


def test_fine_tuning_starts_from_the_model_at_step_0(trained, workplace):
    checkpoint = trained.folder / "run/checkpoints/step-72"
    done = workplace.penstock(
        "train", "run.yaml", "--fine_tune_checkpoint", checkpoint,
        "--set", "train_config.num_epochs=1", "--set", "train_config.log_step_count_steps=1",
    )  # fmt: skip

    assert done.code == 0, done.err
    log = [json.loads(line) for line in (workplace.folder / "run/log.jsonl").read_text().splitlines()]
    first_loss = next(record["loss"] for record in log if record["step"] == 1)
    untrained_loss = losses(trained)[5]
    assert first_loss < untrained_loss
