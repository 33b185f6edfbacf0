"""What is done with rows on their way: shuffling, cutting, mapping, limits, and other frameworks."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock

PEOPLE = {"user": ["ann", "bob", "cy"], "clicks": [[7, 8], [], [9]], "cost": [3, 20, 5]}


def ys(batches: Iterable[Any]) -> list[list[int]]:
    """The labels of each batch; their features must belong to them."""
    found = []
    for batch in batches:
        assert np.array_equal(batch["x"], np.stack([batch["y"], 10 * batch["y"]], axis=1))
        found.append(batch["y"].tolist())
    return found


def joined(batches: list[list[int]]) -> list[int]:
    return [y for batch in batches for y in batch]


def test_the_order_of_a_seed_is_fixed():
    """As docs/library.md prints it: another order would change every run."""
    rows = penstock.from_arrays({"y": np.arange(10)})

    shuffled = rows.shuffle("64MiB", seed=7).batch(4).epochs(2)

    assert [batch["y"].tolist() for batch in shuffled] == [
        [3, 1, 4, 2],
        [8, 5, 9, 7],
        [6, 0],
        [3, 1, 6, 0],
        [7, 4, 2, 8],
        [5, 9],
    ]


@pytest.mark.parametrize("buffer", ["200B", "1KiB", "1MiB"])
def test_a_shuffle_gives_every_row_once_in_an_order_of_its_seed_and_epoch(numbered_file: Path, buffer: str):
    def order(seed: int) -> list[list[int]]:
        dataset = penstock.read_parquet(numbered_file).shuffle(buffer, seed=seed).batch(8)
        return [joined(ys(dataset)) for _ in range(2)]

    first, second = order(seed=1)

    assert sorted(first) == sorted(second) == list(range(103))
    assert first != second != list(range(103))
    assert order(seed=1) == [first, second]
    assert order(seed=2)[0] != first


def test_an_epoch_can_be_chosen(numbered_file: Path):
    dataset = penstock.read_parquet(numbered_file).shuffle("1KiB", seed=1).batch(50)
    first, second = ys(dataset), ys(dataset)

    dataset.set_epoch(0)

    assert [ys(dataset), ys(dataset)] == [first, second]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_shards_have_every_row_once(numbered_file: Path, count: int):
    shards = [
        joined(ys(penstock.read_parquet(numbered_file).shard(index, count).shuffle("1KiB").batch(8)))
        for index in range(count)
    ]

    assert sorted(joined(shards)) == list(range(103))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_batches_by_rows(numbered_file: Path):
    dataset = penstock.read_parquet(numbered_file)

    assert [len(batch) for batch in ys(dataset.batch(40))] == [40, 40, 23]
    assert [len(batch) for batch in ys(dataset.batch(40, drop_remainder=True))] == [40, 40]
    assert (len(dataset), len(dataset.batch(40)), len(dataset.batch(40).epochs(3))) == (103, 3, 9)


def test_a_split_by_user_is_filtered_shuffled_written_and_trained_on(tmp_path: Path):
    pytest.importorskip("torch")
    visits = pa.table({"user": np.arange(600) % 60, "age": np.arange(600) % 80, "click": np.arange(600) % 2})
    grown = penstock.from_arrays(visits).filter(pc.field("age") >= 20).rename({"click": "label"})

    train, test = grown.split([0.8, 0.2], by="user")
    train.write_parquet(tmp_path / "train.parquet")
    batches = train.shuffle(rows=100, seed=3).select(["user", "label"]).batch(32).to_torch()
    first = next(iter(batches))
    resumed = train.shuffle(rows=100, seed=3).select(["user", "label"]).batch(32).to_torch()
    resumed.load_state_dict(batches.state_dict())
    seen = [first, *resumed]

    assert train.num_rows + test.num_rows == grown.num_rows == 440
    assert sum(len(batch["label"]) for batch in seen) == train.num_rows
    assert not {row["user"] for row in test} & {user for batch in seen for user in batch["user"].tolist()}
    assert list(first) == ["user", "label"]
    assert penstock.read_parquet(tmp_path / "train.parquet").num_rows == train.num_rows


def test_batches_by_cost():
    rows = penstock.from_arrays(PEOPLE)

    def users(**said: Any) -> list[list[str]]:
        return [batch["user"].tolist() for batch in rows.batch(**said)]

    assert users(cost="cost", limit=10) == [["ann"], ["bob"], ["cy"]]
    assert users(cost="cost", limit=23) == [["ann", "bob"], ["cy"]]
    assert users(cost="cost", limit=10, oversize="drop") == [["ann", "cy"]]
    assert users(cost="cost", limit=100, max_rows=2) == [["ann", "bob"], ["cy"]]
    assert users(cost="sum_of_lengths(clicks)", limit=2) == [["ann", "bob"], ["cy"]]
    with pytest.raises(penstock.DataError, match=r"row 1: column 'cost': costs 20 but a batch may cost 10"):
        users(cost="cost", limit=10, oversize="error")


def test_what_a_map_draws_belongs_to_the_row_not_to_the_batch():
    def draw(row: dict[str, Any], generator: np.random.Generator) -> dict[str, Any]:
        return {"y": row["y"], "drawn": generator.integers(1 << 40)}

    drawn = penstock.from_arrays({"y": np.arange(12)}).map(draw, seed=1, rows=True)

    def pairs(dataset: penstock.Dataset) -> set[tuple[int, int]]:
        return {
            pair
            for batch in dataset
            for pair in zip(batch["y"].tolist(), batch["drawn"].tolist(), strict=True)
        }

    halves = [pairs(drawn.shard(index, 2).batch(5)) for index in range(2)]
    assert halves[0] | halves[1] == pairs(drawn.batch(3))
    assert pairs(drawn.batch(3).take(1)) < pairs(drawn.batch(3))


def test_a_map_that_fails_is_told_with_the_rows_and_keeps_its_cause():
    def broken(batch: dict[str, Any]) -> dict[str, Any]:
        return {"x": batch["features"]}

    with pytest.raises(penstock.DataError) as told:
        list(penstock.from_arrays({"y": np.arange(5)}).batch(4).map(broken))

    assert str(told.value) == (
        "map: broken failed for a batch of 4 that begins with row 0 of arrays in memory: KeyError: 'features'"
    )
    assert isinstance(told.value.__cause__, KeyError)


def test_fill_nulls_of_several_columns():
    table = pa.table({"age": [1, None], "flag": [None, True]})

    [batch] = penstock.from_arrays(table).fill_nulls({"age": 7}, flag=False).batch(2)

    assert (batch["age"].tolist(), batch["flag"].tolist()) == ([1, 7], [False, True])


def test_memory_that_is_too_small_is_refused_with_the_numbers():
    wide = penstock.from_arrays({"x": np.zeros((200_000, 8))})

    with pytest.raises(penstock.BudgetExceeded) as told:
        next(iter(wide.shuffle("64MiB").batch(10).memory("4MiB")))

    assert str(told.value) == (
        "reading arrays in memory needs 1B, shuffling 30.6MiB: more than the 4MiB that there are; "
        "raise the limit of .memory(limit) or lower the buffer of .shuffle(buffer)"
    )
    assert len(next(iter(wide.shuffle("1MiB").batch(10).memory("8MiB")))["x"]) == 10


def test_prefetch_changes_nothing_but_the_time(numbered_file: Path):
    dataset = penstock.read_parquet(numbered_file).shuffle("1KiB", seed=3).batch(8)

    assert ys(dataset.prefetch("64KiB")) == ys(
        penstock.read_parquet(numbered_file).shuffle("1KiB", seed=3).batch(8)
    )


def test_arrow_batches(numbered_file: Path):
    batches = list(penstock.read_parquet(numbered_file).columns(["y"]).batch(60).to_arrow())

    assert pa.Table.from_batches(batches).to_pydict() == {"y": list(range(103))}


def test_torch_tensors(numbered_file: Path):
    torch = pytest.importorskip("torch")
    dataset = penstock.read_parquet(numbered_file).shuffle("1KiB", seed=3).batch(8).to_torch()

    batches = list(torch.utils.data.DataLoader(dataset, batch_size=None))

    assert isinstance(dataset, torch.utils.data.IterableDataset)
    assert [batch["y"].tolist() for batch in batches] == ys(
        penstock.read_parquet(numbered_file).shuffle("1KiB", seed=3).batch(8)
    )
    [people] = penstock.from_arrays(PEOPLE).batch(3).to_torch()
    assert people["user"] == PEOPLE["user"]
    assert [row.tolist() for row in people["clicks"].unbind()] == PEOPLE["clicks"]


@pytest.mark.slow
def test_workers_of_a_data_loader_read_every_row_once(numbered_file: Path):
    torch = pytest.importorskip("torch")
    dataset = penstock.read_parquet(numbered_file).shuffle("1KiB", seed=3).batch(8).to_torch()

    batches = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)

    assert sorted(y for batch in batches for y in batch["y"].tolist()) == list(range(103))


@pytest.mark.slow
def test_tensorflow_tensors(numbered_file: Path):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is an extra: pip install 'penstock[tf]'")

    batches = penstock.read_parquet(numbered_file).batch(60).to_tf()

    assert [batch["y"].numpy().tolist() for batch in batches] == [list(range(60)), list(range(60, 103))]
    assert batches.element_spec["y"] == tf.TensorSpec((None,), tf.int64)
