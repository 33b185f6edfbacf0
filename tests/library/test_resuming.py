"""A place in the data is a few plain numbers, and what follows it is exactly what would have followed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

import penstock

Make = Callable[[Path], penstock.Dataset]


def even(batch: dict[str, Any]) -> dict[str, Any]:
    is_even = batch["y"] % 2 == 0
    return {name: column[is_even] for name, column in batch.items()}


def small(row: dict[str, Any]) -> dict[str, Any] | None:
    return row if row["y"] % 10 < 4 else None


def draw(batch: dict[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    return {"y": batch["y"], "drawn": generator.integers(1 << 40, size=len(batch["y"]))}


LOW = pc.bit_wise_and(pc.field("y"), 7) < 5
"""Five rows of eight."""

CHAINS: dict[str, Make] = {
    "in order": lambda path: penstock.read_parquet(path).batch(16),
    "shuffled": lambda path: penstock.read_parquet(path).shuffle("300B", seed=5).batch(16),
    "two epochs": lambda path: penstock.read_parquet(path).shuffle("1KiB").batch(40).epochs(2),
    "by cost": lambda path: penstock.read_parquet(path).shuffle("1KiB").batch(cost="y", limit=600),
    "a shard": lambda path: penstock.read_parquet(path).shard(1, 3).shuffle("300B").batch(6),
    "taken": lambda path: penstock.read_parquet(path).take(50).batch(8).take(5),
    "mapped": lambda path: penstock.read_parquet(path).shuffle("300B").batch(16).map(draw, seed=9),
    "prefetched": lambda path: penstock.read_parquet(path).shuffle("300B").batch(16).prefetch("1KiB"),
    "rows": lambda path: penstock.read_parquet(path).take(12).shuffle("100B"),
    "filtered": lambda path: penstock.read_parquet(path).filter(LOW).shuffle(rows=9, seed=5).batch(6),
    "filtered, by cost": lambda path: penstock.read_parquet(path).filter(LOW).batch(cost="y", limit=200),
    "filtered, rows": lambda path: penstock.read_parquet(path).shuffle(rows=9).filter(LOW),
    "filtered, taken": lambda path: penstock.read_parquet(path).filter(LOW).head(20).batch(3).epochs(2),
    "a part": lambda path: penstock.read_parquet(path).split([0.5, 0.5])[1].shuffle(rows=30).batch(5),
    "rows left out of batches": lambda path: penstock.read_parquet(path).shuffle(rows=30).batch(9).map(even),
    "rows left out": lambda path: penstock.read_parquet(path).shuffle(rows=30).map(small, rows=True),
    "batches left out": lambda path: penstock.read_parquet(path).batch(4).map(small, rows=True).take(5),
    "renamed": lambda path: (
        penstock.read_parquet(path).rename({"y": "z"}).select(["z"]).batch(9).prefetch("1KiB")
    ),
}


def plain(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(column).tolist() for name, column in batch.items()}


@pytest.mark.parametrize("name", CHAINS)
def test_a_dataset_goes_on_after_every_batch(numbered_file: Path, name: str):
    make = CHAINS[name]
    expected = [plain(batch) for batch in make(numbered_file)]

    before = make(numbered_file)
    places = [before.state_dict(), *(before.state_dict() for _ in before)]

    assert len(places) == len(expected) + 1 > 3
    for index, place in enumerate(places):
        after = make(numbered_file)
        after.load_state_dict(json.loads(json.dumps(place)))
        assert [plain(batch) for batch in after] == expected[index:]


def test_the_next_epoch_follows(numbered_file: Path):
    whole, resumed = (CHAINS["shuffled"](numbered_file) for _ in range(2))
    batches = iter(whole)
    next(batches)
    resumed.load_state_dict(whole.state_dict())

    rest = [plain(batch) for batch in batches]

    assert [plain(batch) for batch in resumed] == rest
    assert [plain(batch) for batch in resumed] == [plain(batch) for batch in whole]


def test_two_shards_go_on_as_three(numbered_file: Path):
    def shard(index: int, count: int) -> penstock.Dataset:
        return penstock.read_parquet(numbered_file).shard(index, count).shuffle("1KiB", seed=7).batch(8)

    two = [shard(index, 2) for index in range(2)]
    seen = [y for dataset in two for y in next(iter(dataset))["y"].tolist()]
    places = [dataset.state_dict() for dataset in two]
    for index in range(3):
        one_of_three = shard(index, 3)
        one_of_three.load_state_dict(places)
        seen += [y for batch in one_of_three for y in batch["y"].tolist()]

    assert sorted(seen) == list(range(103))


def test_a_place_in_other_data_is_refused():
    place = penstock.from_arrays({"y": np.arange(10)}).batch(4).state_dict()
    other = penstock.from_arrays({"y": np.arange(11)}).batch(4)

    with pytest.raises(penstock.CheckpointError, match="is not the file that the position was saved with"):
        other.load_state_dict(place)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_batches_of_a_run_go_on_after_every_batch(folder: Path, mode: str):
    run = penstock.load_run("run.yaml")

    def read(place: dict[str, Any] | None) -> tuple[list[list[float]], list[dict[str, Any]]]:
        with penstock.create_dataloader(run, mode) as batches:
            if place is not None:
                batches.load_state_dict(place)
            labels, places = [], []
            for batch in batches:
                labels.append(batch.labels["click"].tolist())
                places.append(batches.state_dict())
        return labels, places

    labels, places = read(None)

    assert [len(batch) for batch in labels] == [8, 8, 4]
    for index, place in enumerate(places[:-1], 1):
        assert read(place)[0] == labels[index:]
