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


def test_writes_csv(desk: Desk):
    done = desk.penstock("sample-data", "--rows", "100", "--out", "sample", "--format", "csv", "--files", "1")

    assert done.exit_code == 0, done.stderr
    assert [file.name for file in (desk.folder / "sample" / "train").iterdir()] == ["part-00000.csv"]
