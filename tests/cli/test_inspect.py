"""`penstock inspect`: for people, and for programs."""

import json

from tests.cli.desk import Desk


def test_csv_is_told_what_it_would_be_as_parquet(desk: Desk):
    desk.write("clicks.csv", "user_id,price\n" + "123456,0.5\n" * 100_000)

    done = desk.penstock("inspect", "clicks.csv", "--full", "--plain")

    lines = done.stdout.splitlines()
    assert lines[0] == "CSV files (first line taken for names)"
    assert lines[2] == "  rows: 100,000"
    assert lines[-1].endswith("as Parquet, and read faster; penstock rewrite clicks.csv NEW_FOLDER")
    assert done.stderr.splitlines()[-1].startswith("inspecting: rows 100,000/100,000  rows/s ")


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
