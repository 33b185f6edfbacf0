"""Stores of Parquet and Arrow files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge import arrow_parts as part_files
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions, SplitShares
from penstock.prep.merge.verify import verify
from penstock.readers.batch_files import save_batch
from tests.prep.merge.inputs import all_bytes, concatenated, load_split, write_batches
from tests.prep.merge.test_continuing import damage
from tests.readers.batch_files.samples import assert_same, game_arrays

SIZES = (70, 40, 0, 130)


def read_table(path):
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def load_parts(folder, split="train"):
    """The arrays of a split, by the names of batch files."""
    table = pa.concat_tables(
        [read_table(path) for path in sorted((folder / split).iterdir())]
    ).combine_chunks()
    arrays = {}
    for field in table.schema:
        column = table.column(field.name).combine_chunks()
        is_list = pa.types.is_fixed_size_list(field.type)
        values = (column.flatten() if is_list else column).to_numpy(zero_copy_only=False)
        arrays[field.name] = values.reshape(len(column), field.type.list_size) if is_list else values
    return arrays


@pytest.mark.parametrize(
    ("target", "compression", "level"),
    [
        ("parquet", "none", None),
        ("parquet", "zstd", 3),
        ("parquet", "zlib", 1),
        ("parquet", "lz4", None),
        ("ipc", "none", None),
        ("ipc", "zstd", 5),
        ("ipc", "lz4", None),
    ],
)
def test_samples_are_those_of_the_batches(tmp_path, target, compression, level):
    batches = write_batches(tmp_path / "in", SIZES)
    options = MergeOptions(target=target, compression=compression, level=level, part_bytes=3000)

    result = merge(tmp_path / "in", tmp_path / "out", options=options)

    assert_same(load_parts(tmp_path / "out"), concatenated(batches))
    assert result.num_samples == {"train": 240}
    assert len(list((tmp_path / "out" / "train").iterdir())) == 2
    assert verify(tmp_path / "out", tmp_path / "in") == []


def test_columns_have_the_types_of_the_arrays(tmp_path):
    write_batches(tmp_path / "in")

    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target="parquet"))

    schema = pq.read_schema(tmp_path / "out" / "train" / "part-00000.parquet")
    assert schema.names == [
        "strategic_features",
        "labels_action_type",
        "labels_target",
        "masks_action_type",
        "masks_target",
    ]
    assert schema.field("strategic_features").type.value_type == pa.float32()
    assert schema.field("strategic_features").type.list_size == 6
    assert schema.field("labels_target").type == pa.int16()
    assert schema.field("masks_target").type.value_type == pa.int8()


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("target", ["parquet", "ipc"])
def test_splits_and_order_are_those_of_arrays(tmp_path, target, shuffle):
    write_batches(tmp_path / "in", SIZES)
    how = {"splits": SplitShares(), "shuffle": shuffle, "seed": 4}

    merge(tmp_path / "in", tmp_path / "arrays", options=MergeOptions(**how))
    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target=target, part_bytes=3000, **how))

    for split in ("train", "val", "test"):
        assert_same(load_parts(tmp_path / "out", split), load_split(tmp_path / "arrays", split))
    assert verify(tmp_path / "out", tmp_path / "in") == []


def test_workers_and_memory_change_nothing(tmp_path):
    """Samples of two kilobytes: with less memory there are more buckets, but not more files."""
    (tmp_path / "in").mkdir()
    for number in range(4):
        arrays = {**game_arrays(700, number), "strategic_features": np.zeros((700, 500), np.float32) + number}
        save_batch(tmp_path / "in" / f"batch_{number}.batch", arrays)
    how = {"target": "ipc", "splits": SplitShares(), "shuffle": True, "part_bytes": 1 << 20}

    merge(tmp_path / "in", tmp_path / "one", options=MergeOptions(**how))
    merge(tmp_path / "in", tmp_path / "two", options=MergeOptions(workers=2, memory_bytes=1 << 20, **how))

    assert all_bytes(tmp_path / "two") == all_bytes(tmp_path / "one")


def test_groups_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(part_files, "GROUP_BYTES", 35 * 50)
    batches = write_batches(tmp_path / "in", SIZES)

    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target="parquet"))

    metadata = pq.read_metadata(tmp_path / "out" / "train" / "part-00000.parquet")
    rows = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
    assert rows == [50, 50, 50, 50, 40]
    assert_same(load_parts(tmp_path / "out"), concatenated(batches))


def test_it_goes_on_behind_the_last_part_that_is_done(tmp_path):
    write_batches(tmp_path / "in", SIZES)
    options = MergeOptions(target="parquet", splits=SplitShares(), part_bytes=1)
    merge(tmp_path / "in", tmp_path / "undisturbed", options=options)
    mend = damage(tmp_path / "in" / "batch_0003.batch")

    with pytest.raises(DataError, match="is damaged"):
        merge(tmp_path / "in", tmp_path / "out", options=options)
    assert [path.name[:9] for path in (tmp_path / "out").iterdir()] == [".merging-"]
    mend()
    result = merge(tmp_path / "in", tmp_path / "out", options=options)

    assert (result.kept_tasks, result.num_tasks) == (2, 3)
    assert all_bytes(tmp_path / "out") == all_bytes(tmp_path / "undisturbed")


def test_a_store_of_arrays_makes_way(tmp_path):
    write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target="ipc"))
    merge(tmp_path / "in", tmp_path / "out")
    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(target="parquet"))

    assert sorted(all_bytes(tmp_path / "out")) == ["manifest.json", "train/part-00000.parquet"]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.bool_, ">i4", np.uint8])
@pytest.mark.parametrize("target", ["parquet", "ipc"])
def test_arrays_of_any_type(tmp_path, target, dtype):
    arrays = {"labels_a": np.array([0, 1, 1], dtype), "masks_a": np.array([[0], [1], [0]], dtype)}
    save_batch(tmp_path / "batch_0.batch", arrays)

    merge(tmp_path, tmp_path / "out", options=MergeOptions(target=target))

    found = load_parts(tmp_path / "out")
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_arrow_files_hold_an_array_without_values(tmp_path, shuffle, compression):
    arrays = {"strategic_features": np.zeros((3, 0), np.float32), "labels_a": np.arange(3)}
    save_batch(tmp_path / "batch_0.batch", arrays)

    options = MergeOptions(target="ipc", shuffle=shuffle, compression=compression)
    merge(tmp_path, tmp_path / "out", options=options)

    found = load_parts(tmp_path / "out")
    assert found["strategic_features"].shape == (3, 0)
    assert sorted(found["labels_a"].tolist()) == [0, 1, 2]
    assert verify(tmp_path / "out", tmp_path) == []


@pytest.mark.parametrize(
    ("target", "array", "kind"),
    [
        ("parquet", np.zeros((3, 0), np.float32), "float32 x 0 per sample"),
        ("parquet", np.array(["a", "b"]), "<U1 per sample"),
        ("ipc", np.array(["a", "b"]), "<U1 per sample"),
        ("ipc", np.zeros(2, np.longdouble), "float128 per sample"),
    ],
)
def test_what_a_target_does_not_hold_is_told_before_anything_is_written(tmp_path, target, array, kind):
    save_batch(tmp_path / "batch_0.batch", {"extra": array})

    message = f"array 'extra' is {kind}, which target {target} does not hold; leave it out, or merge to npy"
    with pytest.raises(DataError, match=message):
        merge(tmp_path, tmp_path / "out", options=MergeOptions(target=target))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"target": "ipc", "compression": "zlib"},
            "compression: zlib is not for target ipc; known: none, zstd, lz4",
        ),
        ({"compression": "zstd"}, "compression: zstd is not for target npy; known: none"),
        (
            {"target": "parquet", "compression": "zstd", "level": 99},
            "compression level is 99; zstd has 1 to 22",
        ),
    ],
)
def test_wrong_compressions(arguments, message):
    with pytest.raises(ConfigError, match=message):
        MergeOptions(**arguments)


def test_accumulating_is_for_arrays(tmp_path):
    write_batches(tmp_path / "in")

    with pytest.raises(
        ConfigError, match="accumulative is for target npy only; leave it out with target ipc"
    ):
        merge(tmp_path / "in", tmp_path / "out", "accumulative", options=MergeOptions(target="ipc"))
