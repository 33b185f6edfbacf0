"""`penstock inspect`: for people, and for programs."""

import json

from tests.cli.desk import CLICKS, Desk


def test_a_parquet_file(desk: Desk):
    done = desk.penstock("inspect", "clicks.parquet")

    lines = done.stdout.splitlines()
    assert lines[:4] == ["Parquet files", "  files: 1", "  rows: 6", "  row groups: 1"]
    assert lines[-4:] == [
        "  user_id  int64   0",
        "  item_id  int64   0",
        "  price    double  1",
        "  click    int64   0",
    ]


def test_as_json(desk: Desk):
    done = desk.penstock("inspect", "clicks.parquet", "--json")

    found = json.loads(done.stdout)
    assert found["rows"] == 6
    assert [column["column"] for column in found["columns"]] == list(CLICKS)
    assert found["warnings"] == []


def test_a_run(trained_desk: Desk):
    done = trained_desk.penstock("inspect", "run", "--json")

    found = json.loads(done.stdout)
    assert (found["kind"], found["steps_logged"], found["checkpoints"]) == ("run", 2, "step-2")
    assert [row["step"] for row in found["evaluations"]] == [2]


def test_a_checkpoint(trained_desk: Desk):
    done = trained_desk.penstock("inspect", "run/checkpoints/step-2", "--json")

    found = json.loads(done.stdout)
    shapes = {row["tensor"].rpartition("embedding_bags.")[2]: row["shape"] for row in found["tensors"]}
    assert (found["kind"], found["step"], found["checksums"]) == ("checkpoint", 2, "right")
    assert shapes["user_emb.weight"] == [100, 4]
