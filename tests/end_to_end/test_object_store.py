"""Training and predicting from an object store: the same numbers as from a disk, inside the memory limit."""

import json
from pathlib import Path

import pytest

from penstock.config.sizes import GIB
from penstock.prep.sample_data import write_sample_data
from tests.end_to_end.conftest import SMALL_RUN, Workplace, write_run
from tests.end_to_end.runs import evaluations, losses
from tests.readers.object_store import ObjectStore

FORMATS = ["csv", "parquet"]


@pytest.fixture(params=FORMATS)
def clicks(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """6,000 rows in two files, and 600 to evaluate on."""
    folder = tmp_path / request.param
    write_sample_data("clicks", 6_600, folder, format=request.param, num_files=2, row_group_rows=1_000)
    return folder


def _trained(folder: Path, data: str, suffix: str) -> Workplace:
    folder.mkdir()
    place = Workplace(folder, Path(data), folder / "run.yaml")
    write_run(
        place.run_file,
        place.data,
        train_input_path=f"{data}/train/*.{suffix}",
        eval_input_path=f"{data}/test",
        data_config={**SMALL_RUN["data_config"], "with_header": True},
        memory={"limit": "1GiB"},
    )
    done = place.process("train", "run.yaml")
    assert done.code == 0, done.err
    return place


def test_a_run_from_a_store_is_the_run_from_a_disk(
    clicks: Path, object_store: ObjectStore, tmp_path: Path
) -> None:
    bucket = f"train-{clicks.name}"
    object_store.put_folder(bucket, clicks)

    here = _trained(tmp_path / "here", str(clicks), clicks.name)
    there = _trained(tmp_path / "there", f"s3://{bucket}", clicks.name)

    assert losses(there) == losses(here)
    assert evaluations(there) == evaluations(here)
    log = [json.loads(line) for line in (there.folder / "run" / "log.jsonl").read_text().splitlines()]
    assert log[-1]["memory"]["peak_bytes"] < GIB


def test_a_bucket_that_is_not_there(object_store: ObjectStore, tmp_path: Path) -> None:
    place = Workplace(tmp_path, tmp_path, write_run(tmp_path / "run.yaml", tmp_path))

    done = place.process("train", "run.yaml", "--train_input_path", "s3://nowhere/train/*.csv")

    assert done.code != 0
    assert (
        done.err.strip()
        .splitlines()[-1]
        .endswith("s3://nowhere/train/*.csv: there is no s3://nowhere/, or these keys may not see it")
    )
