"""`penstock eval`: the latest checkpoint, the best, or a given one."""

import json

import pytest

from tests.cli.desk import Desk


@pytest.mark.parametrize("which", [[], ["--checkpoint-path", "best"]])
def test_tells_the_metrics_of_a_checkpoint(trained_desk: Desk, which: list[str]):
    trained = json.loads((trained_desk.folder / "run" / "eval_result.jsonl").read_text())

    done = trained_desk.penstock("eval", "run.yaml", *which)

    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert done.exit_code == 0, done.stderr
    assert told["checkpoint"] == "run/checkpoints/step-2"
    loss, auc = trained["losses"]["binary_cross_entropy"], trained["metrics"]["auc"]
    assert told["eval"] == f"binary_cross_entropy {loss:.4f}  auc {auc:.4f}"


def test_writes_the_result_beside_the_run(trained_desk: Desk):
    words = ["--checkpoint_path", "run/checkpoints/step-2", "--eval_result_filename", "result.json"]

    done = trained_desk.penstock("eval", "run.yaml", *words)

    assert done.exit_code == 0, done.stderr
    result = json.loads((trained_desk.folder / "run" / "result.json").read_text())
    assert (result["step"], result["rows"], result["checkpoint"]) == (2, 6, "run/checkpoints/step-2")
    assert result["metrics"].keys() == {"auc"}
    assert (result["num_bad_rows"], result["bad_rows"]) == (0, None)


def test_writes_nothing_unless_asked_to(trained_desk: Desk):
    before = trained_desk.content()

    trained_desk.penstock("eval", "run.yaml")

    assert trained_desk.content() == before
