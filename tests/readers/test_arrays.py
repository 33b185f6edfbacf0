"""NumPy files and arrays in memory: rows equal the arrays, whatever their shapes and the size of the share."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import BudgetExceeded, CheckpointError, DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.numpy_files import scan_arrays
from penstock.readers.scan import BlockStream
from penstock.readers.stream import ROW_COLUMN, locate
from penstock.runtime.budget import Share
from tests.readers.samples import flat, open_path, row_ids, scan_path, table_from, take

X = np.arange(12, dtype=np.float32).reshape(6, 2)
Y = np.arange(6, dtype=np.int16)


def rows_of(stream: BlockStream) -> dict[str, list[Any]]:
    return table_from(stream).to_pydict()


def read_arrays(arrays: dict[str, Any], share_bytes: int = MIB, seed: int | None = None) -> BlockStream:
    return BlockStream(scan_arrays(arrays), Share("reading", share_bytes), seed)


def save(folder: Path, **arrays: Any) -> Path:
    """Each array as a `.npy` file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


# Which files make which rows


def test_the_files_of_a_folder_are_columns_of_one_part_and_others_are_left_alone(tmp_path: Path) -> None:
    save(tmp_path, x=X, y=Y)
    (tmp_path / "manifest.json").write_text("{}")
    reader = open_path(tmp_path)

    assert reader.schema.types[:2] == [pa.list_(pa.float32(), 2), pa.int16()]
    assert rows_of(reader) == {"x": X.tolist(), "y": Y.tolist()}
    assert rows_of(open_path(tmp_path / "y.npy")) == {"y": Y.tolist()}
    save(tmp_path, z=Y[:2])
    assert list(rows_of(open_path(f"{tmp_path / 'y.npy'},{tmp_path / 'x.npy'}"))) == ["y", "x"]


def test_several_folders_are_several_parts(tmp_path: Path) -> None:
    for name, rows in (("day1", slice(0, 2)), ("day2", slice(2, 2)), ("day3", slice(2, 6))):
        save(tmp_path / name, x=X[rows], y=Y[rows])
    batches = list(open_path(tmp_path / "day*"))

    assert flat(batches, "y") == Y.tolist()
    assert [locate(row) for row in row_ids(batches)] == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2), (2, 3)]
    assert [file.path for file in scan_path(tmp_path / "day*").files] == [
        str(tmp_path / f"day{day}") for day in (1, 2, 3)
    ]


def test_each_archive_is_a_part_unless_it_lies_beside_plain_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "batch_0000.npz", x=X[:4], y=Y[:4])
    np.savez_compressed(tmp_path / "batch_0001.npz", x=X[4:], y=Y[4:])
    save(tmp_path / "mixed", X_train=X)
    np.savez(tmp_path / "mixed" / "labels_train.npz", action=Y, target=Y + 1)

    assert rows_of(open_path(tmp_path)) == {"x": X.tolist(), "y": Y.tolist()}
    assert list(rows_of(open_path(tmp_path / "mixed"))) == ["X_train", "action", "target"]


def test_what_is_not_requested_may_be_of_any_length_and_type(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, version=3, notes=np.array([{"a": 1}], object), short=Y[:2])

    assert rows_of(open_path(tmp_path, columns=["x"])) == {"x": X.tolist()}


# Values

DTYPES = [
    "i1",
    "i2",
    "i4",
    "i8",
    "u1",
    "u2",
    "u4",
    "u8",
    "f2",
    "f4",
    "f8",
    ">i4",
    ">f8",
    ">f2",
    "?",
    "U3",
    "S3",
    ">U3",
]


def array_of(dtype: str, shape: tuple[int, ...]) -> Any:
    numbers = np.arange(np.prod(shape, dtype=int)) % 100
    return (numbers % 2 if dtype == "?" else numbers).astype(dtype).reshape(shape)


def expected_rows(array: Any) -> list[Any]:
    """As Python values; what a row has of several axes stands in one list, texts are texts."""
    flat_rows = array.reshape(len(array), -1).tolist() if array.ndim > 1 else array.tolist()
    if array.dtype.kind != "S":
        return list(flat_rows)
    return [[text.decode() for text in row] if array.ndim > 1 else row.decode() for row in flat_rows]


@pytest.mark.parametrize("shape", [(7,), (7, 2, 2)], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["npy", "npz", "memory"])
def test_every_dtype_and_shape(tmp_path: Path, shape: tuple[int, ...], order: Any, kind: str) -> None:
    arrays = {
        f"a{index}": np.asarray(array_of(dtype, shape), order=order) for index, dtype in enumerate(DTYPES)
    }
    if kind == "memory":
        reader = read_arrays(arrays)
    else:
        save(tmp_path, **arrays) if kind == "npy" else np.savez(tmp_path / "b.npz", **arrays)
        reader = open_path(tmp_path)

    assert rows_of(reader) == {name: expected_rows(array) for name, array in arrays.items()}
    half = reader.schema.field(f"a{DTYPES.index('f2')}").type
    assert half == (pa.float32() if len(shape) == 1 else pa.list_(pa.float32(), 4))


def test_numbers_are_given_without_a_copy() -> None:
    batch = next(iter(read_arrays({"x": X, "y": pa.array(Y)})))

    assert batch.column("x").values.buffers()[1].address == X.ctypes.data


# Memory


@pytest.mark.parametrize("kind", ["npy", "npz", "compressed"])
def test_arrays_far_larger_than_the_share_are_read_inside_it_and_resume(tmp_path: Path, kind: str) -> None:
    arrays = {"x": np.arange(3_200_000, dtype=np.float32).reshape(-1, 16), "number": np.arange(200_000)}
    if kind == "npy":
        save(tmp_path, **arrays)
    else:
        (np.savez if kind == "npz" else np.savez_compressed)(tmp_path / "a.npz", **arrays)
    scanned = scan_path(tmp_path)
    share = Share("reading", scanned.sizes.min_bytes)
    reader = BlockStream(scanned, share, seed=1)
    before_bytes, numbers, stop = pa.total_allocated_bytes(), [], 10
    for batch in reader:
        numbers += batch.column("number").to_pylist()
        assert batch.column("x")[0].as_py()[0] == 16 * numbers[-batch.num_rows]
        assert batch.drop_columns(ROW_COLUMN).nbytes <= share.held_bytes <= share.limit_bytes < MIB
        assert pa.total_allocated_bytes() - before_bytes <= share.limit_bytes
    reader.set_epoch(0)
    before = flat(take(reader, stop))
    reader.load_state_dict(reader.state_dict())

    assert sorted(numbers) == list(range(200_000))
    assert before + flat(reader) == numbers
    assert share.held_bytes == 0


def test_rows_in_memory_need_no_share_unless_they_are_copied() -> None:
    views, copies = read_arrays({"x": X, "t": pa.array(["a"] * 6)}, 1), read_arrays({"x": X.T.copy().T}, 100)

    assert rows_of(views)["t"] == ["a"] * 6
    assert views._share.peak_bytes == 0
    assert rows_of(copies) == {"x": X.tolist()}
    assert 0 < copies._share.peak_bytes <= 100


def test_the_pages_of_a_mapped_file_are_given_back_while_it_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2_000_000, 8), np.float32))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    reader = read_arrays({"x": mapped[1_000:]}, 32 * MIB)
    most_bytes = 0
    for batch in reader:
        assert batch.column("x").flatten().sum().as_py() == batch.num_rows * 8  # type: ignore[attr-defined]
        most_bytes = max(most_bytes, resident_bytes(tmp_path / "x.npy"))

    assert 0 < most_bytes <= reader._share.peak_bytes
    assert reader._share.peak_bytes <= 16 * MIB < mapped.nbytes / 3


def resident_bytes(path: Path) -> int:
    """How much of a mapped file counts as this process's memory."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    start = next(index for index, line in enumerate(lines) if line.endswith(str(path)))
    return next(int(line.split()[1]) * KIB for line in lines[start:] if line.startswith("Rss:"))


def test_a_row_that_does_not_fit_the_share_is_said_before_the_first_batch(tmp_path: Path) -> None:
    save(tmp_path, x=np.zeros((3, 1000)))

    with pytest.raises(BudgetExceeded, match=r"reading a row takes 15.6KiB, but reading may hold 10KiB;"):
        open_path(tmp_path, share_bytes=10 * KIB)


# What can be wrong


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X, "y": Y[:4]}, r"column 'x' has 6 rows but column 'y' has 4; arrays that are read together"),
        ({"x": [1, 2]}, r"column 'x': is a list; give a NumPy or an Arrow array"),
        ({"x": np.array(1)}, r"column 'x': is a single value; an array needs rows"),
        ({"x": np.zeros(3, complex)}, r"column 'x': has dtype complex128, which cannot be used; usable are"),
        ({"__row__": Y}, r"column '__row__': this name is reserved"),
        ({}, r"arrays in memory: there are none"),
    ],
)
def test_arrays_that_cannot_be_read(arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        scan_arrays(arrays)


def zipped(path: Path, member: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "nothing")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda folder: save(folder, x=X, y=Y[:4]), r"x.npy has 6 rows but .*y.npy has 4; arrays that are"),
        (
            lambda folder: [save(folder / name, x=X[:, :width]) for name, width in (("a", 2), ("b", 1))],
            r"column 'x' is fixed_size_list<.*>\[2\] in .*a/x.npy but .*\[1\] in .*b/x.npy; write",
        ),
        (lambda folder: save(folder, x=np.array([None])), r"x.npy: column 'x': has dtype object, Python obj"),
        (lambda folder: zipped(folder / "a.npz", "notes.txt"), r"a.npz: has no arrays in it"),
        (
            lambda folder: [save(folder, x=X), np.savez(folder / "more.npz", x=X)],
            r"more.npz and .*x.npy both have the column 'x'; rename one",
        ),
        (
            lambda folder: np.savez_compressed(folder / "a.npz", x=np.asfortranarray(X)),
            r"a.npz: column 'x': is compressed in column-major order",
        ),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, write: Callable[[Path], Any], message: str) -> None:
    write(tmp_path)

    with pytest.raises(DataError, match=message):
        open_path(tmp_path if list(tmp_path.glob("*.np?")) else tmp_path / "*")


@pytest.mark.parametrize("num_bytes", [1, 9, 60, 140])
def test_a_file_that_is_cut_short(tmp_path: Path, num_bytes: int) -> None:
    whole = (save(tmp_path, x=X) / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:num_bytes])

    with pytest.raises(
        DataError, match=r"x.npy: is (not a NumPy array, or is cut short:|cut short: 6 rows need 176)"
    ):
        open_path(tmp_path)


def test_a_compressed_archive_that_is_damaged(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.random.default_rng(0).random(5000))
    whole = bytearray((tmp_path / "a.npz").read_bytes())
    whole[20_000:20_100] = bytes(100)
    (tmp_path / "a.npz").write_bytes(whole)

    with pytest.raises(DataError, match=r"a.npz: is not a whole .npz file"):
        list(open_path(tmp_path))


@pytest.mark.parametrize(
    ("text", "problem"), [(b"\xff", "is not UTF-8"), (b"a\0b", "has a zero character inside")]
)
def test_a_text_that_cannot_be_read_names_its_row(tmp_path: Path, text: bytes, problem: str) -> None:
    save(tmp_path, t=np.array([[b"a", b"b"], [b"c", text]]))

    with pytest.raises(DataError, match=rf"t.npy: row 1: column 't': value .* {problem}"):
        list(open_path(tmp_path))


def test_a_file_that_becomes_shorter_while_it_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3_000_000))
    stream = iter(open_path(tmp_path, share_bytes=32 * MIB))
    next(stream)
    (tmp_path / "x.npy").write_bytes(b"")

    with pytest.raises(DataError, match=r"x.npy: has become shorter while it was being read"):
        next(stream)


def test_a_position_in_other_arrays_is_refused(tmp_path: Path) -> None:
    saved = read_arrays({"x": X, "y": Y}).state_dict()
    saved_in_files = open_path(save(tmp_path, x=X, y=Y)).state_dict()
    save(tmp_path, y=Y + 1)

    read_arrays({"x": X.copy(), "y": Y}).load_state_dict(saved)
    with pytest.raises(CheckpointError, match=r"arrays in memory: is not the file"):
        read_arrays({"x": X + 1, "y": Y}).load_state_dict(saved)
    with pytest.raises(CheckpointError, match=r"is not the file that the position was saved with"):
        open_path(tmp_path).load_state_dict(saved_in_files)
