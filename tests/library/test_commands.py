"""Every command once: its exit code, a line that it is known by, and what it leaves."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Command = Callable[..., Any]

PREDICT = ("predict", "run.yaml", "--predict_input_path", "clicks.parquet", "--predict_output_path")


def told(output: str) -> dict[str, str]:
    """The lines of a summary by their first word."""
    return dict(line.split(maxsplit=1) for line in output.splitlines() if line[:1].strip())


def test_train(folder: Path, command: Command):
    done = command("train", "run.yaml")

    assert done.code == 0, done.err
    summary = told(done.out)
    assert list(summary) == ["result", "best", "speed", "memory", "where", "next"]
    assert summary["speed"].endswith("; 6 steps, 2 epochs, 40 rows")
    assert summary["where"] == "run (checkpoint step-6, report.html)"
    assert summary["next"] == "penstock predict run/run.yaml --input FILES --output OUT"
    assert {path.name for path in (folder / "run").iterdir()} == {
        "checkpoints",
        "data_profile.json",
        "eval_result.jsonl",
        "log.jsonl",
        "report.html",
        "run.yaml",
        "tensorboard",
        "version",
    }


def test_train_refuses_and_goes_on(trained_folder: Path, command: Command):
    again = command("train", "run.yaml")
    more = command("train", "run.yaml", "--continue_train", "--set", "train_config.num_epochs=3")

    assert (again.code, again.out) == (1, "")
    assert again.err == (
        "error: run holds a trained run already; continue it with --continue_train, or choose another --model_dir\n"
    )
    assert more.code == 0, more.err
    assert told(more.out)["speed"].endswith("; 9 steps, 3 epochs, 60 rows in all")


def test_eval_agrees_with_training(trained_folder: Path, command: Command):
    last = json.loads((trained_folder / "run" / "eval_result.jsonl").read_text().splitlines()[-1])

    done = command("eval", "run.yaml", "--eval_result_filename", "result.json")

    assert done.code == 0, done.err
    summary = told(done.out)
    assert summary["where"] == "run/checkpoints/step-6"
    loss, auc = last["losses"]["binary_cross_entropy"], last["metrics"]["auc"]
    assert summary["result"] == f"auc {auc:.4f}  binary_cross_entropy {loss:.4f}"
    result = json.loads((trained_folder / "run" / "result.json").read_text())
    assert (result["rows"], result["metrics"]["auc"]) == (20, pytest.approx(auc))


@pytest.mark.parametrize("output", ["scores.parquet", "scores.csv", "scores"])
def test_predict(trained_folder: Path, command: Command, output: str):
    done = command(*PREDICT, output, "--reserved_columns", "user_id", "--limit", "15")

    assert done.code == 0, done.err
    assert told(done.out)["where"] == output
    if output == "scores.csv":
        lines = (trained_folder / output).read_text().splitlines()
        assert (lines[0], len(lines)) == ('"user_id","logits","probs"', 16)
    else:
        assert pq.read_table(output)["user_id"].to_pylist() == list(range(15))


def test_check_and_plan_write_nothing(folder: Path, command: Command):
    before = sorted(folder.rglob("*"))

    checked, planned = command("check", "run.yaml"), command("plan", "run.yaml")

    assert (checked.code, planned.code) == (0, 0), checked.err + planned.err
    assert checked.out.splitlines()[0] == "data         1 file, 4 columns read"
    assert checked.out.splitlines()[-4:] == [
        "remark       eval_input_path: clicks.parquet is in train_input_path too (1 of 1",
        "             file), so that metrics say nothing of new rows; name files that are",
        "             not trained on (Dataset.split makes them)",
        "check        1 remark; nothing was written",
    ]
    assert planned.out.splitlines()[1] == "batches  3 an epoch"
    stages = [line.split() for line in planned.out.splitlines()]
    assert ["shuffle", "2.6MiB", "data_config.shuffle_buffer"] in stages
    assert sorted(folder.rglob("*")) == before


def test_inspect(folder: Path, command: Command):
    done, as_json = command("inspect", "clicks.parquet"), command("inspect", "clicks.parquet", "--json")

    assert done.code == 0, done.err
    assert done.out.splitlines()[:4] == ["Parquet files", "  files: 1", "  rows: 20", "  row groups: 4"]
    found = json.loads(as_json.out)
    assert [(column["column"], column["type"]) for column in found["columns"]] == [
        ("user_id", "int64"),
        ("item_id", "string"),
        ("price", "double"),
        ("click", "int64"),
    ]


def test_report(trained_folder: Path, command: Command):
    done = command("report", "run")

    assert (done.code, done.out) == (0, "run/report.html\n")
    assert "<figcaption>auc</figcaption>" in (trained_folder / "run" / "report.html").read_text()


def test_prep_merge_and_verify(game_folder: Path, command: Command):
    prepared = command("prep", "prep.yaml", "--skip-merge")
    merged = command("merge", "prep.yaml")
    verified = command("merge", "prep.yaml", "--verify")
    inspected = command("inspect", "store")

    assert (prepared.code, merged.code, verified.code, inspected.code) == (0, 0, 0, 0)
    assert told(prepared.out)["prepared"].startswith("20 samples of 4 files in 5 batch files, ")
    assert told(merged.out)["merged"].startswith("5 batch files to store: train 15, val 5; ")
    assert told(verified.out)["verified"] == (
        "store: all files, counts, heads, types, options and sampled rows are those of the batch files and the run"
    )
    assert inspected.out.splitlines()[:3] == ["store (npy)", "  samples: 20", "  splits: train 15, val 5"]


def test_check_of_a_preparation(game_folder: Path, command: Command):
    done = command("check", "prep.yaml")

    assert done.code == 0, done.err
    assert done.out.splitlines()[1] == "extract      library_game:samples"
    assert not (game_folder / "batches").exists()


def test_sample_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command):
    monkeypatch.chdir(tmp_path)

    done = command("sample-data", "--rows", "200", "--out", "sample", "--files", "1")

    assert done.code == 0, done.err
    assert done.out.splitlines()[:3] == [
        "200 rows of 'clicks' (seed 0, parquet)",
        "  train: 180 rows in 1 files",
        "    click: base rate 0.2278, attainable AUC 0.8752",
    ]
    assert pq.read_table("sample/train").num_rows == 180


@pytest.mark.slow
def test_doctor(folder: Path, command: Command):
    done = command("doctor")

    names = [line.split(":")[0].split()[-1] for line in done.out.splitlines()]
    assert {"python", "torch", "torchrec", "imports", "disk"} <= {*names}
    assert done.code == (0 if all(line.startswith("ok ") for line in done.out.splitlines()) else 1)


def test_schema_and_version(command: Command):
    schema, version = command("schema"), command("--version")

    assert "train_input_path" in json.loads(schema.out)["properties"]
    assert version.out.startswith("penstock ")


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        ("trian run.yaml", 2, "error: no such command 'trian'. Did you mean 'train'? (see penstock --help)"),
        ("train rum.yaml", 1, "error: rum.yaml: there is no such file; did you mean 'run.yaml'?"),
        (
            "inspect click.parquet",
            1,
            "error: click.parquet: no such file or directory; did you mean 'clicks.parquet'?",
        ),
    ],
)
def test_a_mistake_is_one_line(folder: Path, command: Command, words: str, code: int, line: str):
    done = command(*words.split())

    assert (done.code, done.out, done.err) == (code, "", f"{line}\n")
