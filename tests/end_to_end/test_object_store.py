"""Training and predicting from an object store: the same numbers as from a disk, inside the memory limit."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.config.sizes import GIB
from penstock.prep.sample_data.write import write_sample_data
from tests.end_to_end.conftest import SMALL_RUN, Workplace, write_run
from tests.end_to_end.runs import evaluations, losses

if TYPE_CHECKING:  # the server takes long to import, and only some tests start it
    from tests.readers.object_store import ObjectStore


def _data(folder: Path, file_format: str) -> Path:
    """6,000 rows in two files, and 600 to evaluate on."""
    write_sample_data("clicks", 6_600, folder, format=file_format, num_files=2, row_group_rows=1_000)
    return folder


def _place(folder: Path, data: str, suffix: str, **changes: object) -> Workplace:
    folder.mkdir()
    place = Workplace(folder, Path(data), folder / "run.yaml")
    write_run(
        place.run_file,
        place.data,
        train_input_path=f"{data}/train/*.{suffix}",
        eval_input_path=f"{data}/test",
        data_config={**SMALL_RUN["data_config"], "with_header": True},
        **changes,
    )
    return place


@pytest.mark.parametrize("suffix", [pytest.param("csv", marks=pytest.mark.slow), "parquet"])
def test_a_run_from_a_store_is_the_run_from_a_disk(
    suffix: str, object_store: "ObjectStore", tmp_path: Path
) -> None:
    data = _data(tmp_path / "data", suffix)
    object_store.put_folder(f"train-{suffix}", data)
    here = _place(tmp_path / "here", str(data), suffix)
    there = _place(tmp_path / "there", f"s3://train-{suffix}", suffix)

    for place in (here, there):
        done = place.penstock("train", "run.yaml")
        assert done.code == 0, done.err

    assert losses(there) == losses(here)
    assert evaluations(there) == evaluations(here)


@pytest.mark.slow
def test_a_run_from_a_store_stays_inside_its_limit(object_store: "ObjectStore", tmp_path: Path) -> None:
    object_store.put_folder("limited", _data(tmp_path / "data", "parquet"))
    place = _place(tmp_path / "there", "s3://limited", "parquet", memory={"limit": "1GiB"})

    done = place.process("train", "run.yaml")

    assert done.code == 0, done.err
    log = [json.loads(line) for line in (place.folder / "run" / "log.jsonl").read_text().splitlines()]
    assert log[-1]["memory"]["peak_bytes"] < GIB
