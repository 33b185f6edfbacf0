"""`penstock inspect`: for people, and for programs."""

import json
import re

import pytest

from penstock.observe.inspect import inspect
from penstock.training.model_dir import ModelDir
from tests.cli.desk import Desk


def test_csv_is_told_what_it_would_be_as_parquet(desk: Desk):
    desk.write("clicks.csv", "user_id,price\n" + "123456,0.5\n" * 100_000)

    done = desk.penstock("inspect", "clicks.csv", "--full", "--plain")

    lines = done.stdout.splitlines()
    assert lines[0] == "CSV files (first line taken for names)"
    assert lines[2] == "  rows: 100,000"
    assert lines[-1].endswith("as Parquet, and read faster; penstock rewrite clicks.csv NEW_FOLDER")
    assert done.stderr.splitlines()[-1].startswith("inspecting: rows 100,000/100,000  rows/s ")


@pytest.mark.parametrize("command", ["inspect {}", "rewrite {} new"])
@pytest.mark.parametrize(
    ("name", "cure"), [("latin.csv", "it may be cp1252: set --encoding"), ("latin", "set --dataset-type")]
)
def test_what_is_wrong_is_told_in_options_of_the_command(desk: Desk, command: str, name: str, cure: str):
    (desk.folder / name).write_bytes("city,price\nZürich,1\n".encode("latin-1"))

    done = desk.penstock(*command.format(name).split())

    assert done.stderr.splitlines()[-1].endswith(cure)


def test_a_run_and_a_checkpoint(trained_desk: Desk):
    run, checkpoint = (
        json.loads(trained_desk.penstock("inspect", path, "--json").stdout)
        for path in ("run", "run/checkpoints/step-2")
    )

    assert (run["kind"], run["steps_logged"], run["checkpoints"]) == ("run", 2, "step-2")
    assert [row["step"] for row in run["evaluations"]] == [2]
    shapes = {row["tensor"].rpartition("embedding_bags.")[2]: row["shape"] for row in checkpoint["tensors"]}
    assert (checkpoint["kind"], checkpoint["step"], checkpoint["checksums"]) == ("checkpoint", 2, "right")
    assert shapes["user_emb.weight"] == [100, 4]


def test_the_runs_of_a_folder_beside_each_other(trained_desk: Desk):
    write_runs = ["--set", "model_config.metrics=[{auc: {}}, {accuracy: {}}]"]
    trained_desk.penstock("train", "run.yaml", "--model_dir", "runs/one")
    trained_desk.penstock("train", "run.yaml", "--model_dir", "runs/two", *write_runs)
    log = trained_desk.folder / "runs/two/log.jsonl"
    log.write_text(log.read_text().replace('"event": "end"', '"event": "other"'))

    found = json.loads(trained_desk.penstock("inspect", "runs", "--json").stdout)["runs"]
    lines = trained_desk.penstock("inspect", "runs").stdout.splitlines()

    assert [(run["run"], run["model"], run["steps"], run["state"]) for run in found] == [
        ("one", "deepfm", 2, "ended"),
        ("two", "deepfm", 2, "killed"),
    ]
    assert [list(run["metrics"]) for run in found] == [["auc"], ["auc", "accuracy"]]
    assert [run["best"] for run in found] == ["step-2", "step-2"]
    assert lines[0] == "runs"
    assert lines[3].split() == [
        *("run", "model", "steps", "auc", "accuracy", "best", "state", "started", "binary_cross_entropy")
    ]
    assert re.fullmatch(r"  one +deepfm +2 +\d\.\d{4} +step-2 +ended +[-\d]+ [:\d]+ +0\.\d{4}", lines[4])
    assert max(map(len, inspect("runs").as_text(80).splitlines())) <= 80
    with ModelDir(trained_desk.folder / "runs/two").lock(resume=True):
        assert [run["state"] for run in inspect("runs").table] == ["ended", "running"]
