"""`penstock sample-data`."""

import json

import pyarrow.parquet as pq

from tests.cli.desk import Desk


def test_writes_files_and_tells_the_attainable_auc(desk: Desk):
    done = desk.penstock(
        "sample-data", "--rows", "2000", "--out", "sample", "--files", "2", "--row-group-rows", "500"
    )

    assert done.exit_code == 0, done.stderr
    files = sorted((desk.folder / "sample" / "train").iterdir())
    assert [file.name for file in files] == ["part-00000.parquet", "part-00001.parquet"]
    assert pq.read_metadata(files[0]).row_group(0).num_rows == 500
    attainable = json.loads((desk.folder / "sample" / "sample.json").read_text())["splits"]["test"]["labels"]
    assert f"attainable AUC {attainable['click']['attainable_auc']:.4f}" in done.stdout


def test_writes_replays_of_games(desk: Desk):
    done = desk.penstock("sample-data", "--kind", "game", "--rows", "20", "--out", "game", "--files", "2")
    again = desk.penstock("sample-data", "--kind", "game", "--rows", "20", "--out", "more", "--format", "csv")

    assert done.exit_code == 0, done.stderr
    replays = sorted(file.name for file in (desk.folder / "game" / "replays").iterdir())
    assert replays == ["game-00000.jsonl", "game-00001.jsonl"]
    attainable = json.loads((desk.folder / "game" / "sample.json").read_text())["labels"]["queue"]
    assert f"attainable accuracy {attainable['attainable_accuracy']:.4f}" in done.stdout
    assert again.stderr == (
        "error: kind 'game' is raw data with a form of its own: format means nothing here; leave it out\n"
    )
