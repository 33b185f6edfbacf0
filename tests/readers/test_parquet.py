"""Parquet: schemas, damage, and how row groups fit the share."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB
from tests.readers.samples import flat, numbers, open_path, scan_path, table_of, write_parquet


def test_a_batch_is_a_row_group(tmp_path: Path) -> None:
    reader = open_path(write_parquet(tmp_path, [5, 3], row_group_size=4))

    assert numbers(reader) == [[0, 1, 2, 3], [4], [5, 6, 7]]
    assert reader.num_rows == 8


def test_nested_columns_are_read_alone_and_whole(tmp_path: Path) -> None:
    table = pa.table(
        {
            "pairs": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "deep": pa.array([[[1], []], None, [[2, 3]]], pa.list_(pa.list_(pa.int32()))),
            "deep.er": [1, 2, 3],
            "other": [1, 2, 3],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    (batch,) = open_path(tmp_path, columns=["deep", "pairs"])

    assert batch.schema.names == ["deep", "pairs", "__row__"]
    assert batch.column("deep").to_pylist() == [[[1], []], None, [[2, 3]]]
    assert batch.column("pairs").to_pylist() == [[("a", 1)], None, []]


def test_a_type_that_changed_names_both_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [1.5]}), tmp_path / "b.parquet")

    with pytest.raises(DataError, match=r"column 'x' is int64 in .*a.parquet but double in .*b.parquet"):
        open_path(tmp_path)


def test_a_file_without_rows_may_have_other_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"number": pa.nulls(0)}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"number": [1, 2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"other": ["a"]}).slice(0, 0), tmp_path / "2.parquet")

    assert flat(open_path(tmp_path, columns=["number"])) == [1, 2]


def test_files_without_any_row_still_have_a_schema(tmp_path: Path) -> None:
    for name in ("0", "1"):
        pq.write_table(pa.table({"number": [1]}).slice(0, 0), tmp_path / f"{name}.parquet")

    assert open_path(tmp_path, columns=["number"]).schema.names == ["number", "__row__"]


def test_a_column_that_is_missing_in_a_later_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1], "y": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b.parquet")

    with pytest.raises(DataError, match=r"b.parquet: there is no column 'y'; known: x"):
        open_path(tmp_path)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (pa.array([b"a"]), "column 'x': has type binary, which cannot be used; write it as string"),
        (
            pa.array([{"a": 1}]),
            r"has type struct<a: int64>, which cannot be used; write its fields as columns",
        ),
        (pa.array([[b"a"]]), "has type list<element: binary>, which cannot be used; write it as string"),
        (pa.nulls(1), "has type null, which cannot be used; it has no value at all"),
    ],
)
def test_types_that_cannot_be_used(tmp_path: Path, values: pa.Array, problem: str) -> None:
    pq.write_table(pa.table({"x": values}), tmp_path / "a.parquet")

    with pytest.raises(DataError, match=problem):
        open_path(tmp_path, columns=["x"])


def test_text_that_is_not_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("number\n1\n")

    with pytest.raises(
        DataError, match=r"a.parquet: is not a whole Parquet file: Parquet magic bytes not found"
    ):
        open_path(tmp_path)


def test_a_truncated_file(tmp_path: Path) -> None:
    write_parquet(tmp_path, [100, 100])
    whole = (tmp_path / "part-001.parquet").read_bytes()
    (tmp_path / "part-001.parquet").write_bytes(whole[: len(whole) // 2])

    with pytest.raises(DataError, match=r"part-001.parquet: is not a whole Parquet file"):
        open_path(tmp_path)


def test_a_file_with_damaged_pages(tmp_path: Path) -> None:
    pq.write_table(table_of(0, 1000), tmp_path / "a.parquet", compression="zstd")
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[60:2000] = bytes(1940)
    (tmp_path / "a.parquet").write_bytes(content)
    reader = open_path(tmp_path, columns=["number"])

    with pytest.raises(DataError, match=r"a.parquet: cannot be read to its end, it is damaged: "):
        list(reader)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    reader = open_path(write_parquet(tmp_path, [8]))
    write_parquet(tmp_path, [3])

    with pytest.raises(DataError, match=r"part-000.parquet: has changed while it was being read"):
        list(reader)


def test_a_column_with_the_reserved_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"__row__": [1]}), tmp_path / "a.parquet")

    with pytest.raises(DataError, match="column '__row__': this name is reserved"):
        open_path(tmp_path)


def test_string_and_large_string_are_read_as_one_type(tmp_path: Path) -> None:
    for index, text in enumerate((pa.string(), pa.large_string(), pa.string())):
        columns = {"x": pa.array(["a"], text), "list": pa.array([["b"]], pa.list_(text))}
        pq.write_table(pa.table(columns), tmp_path / f"{index}.parquet")
    reader = open_path(tmp_path)
    batches = list(reader)

    assert reader.schema.types[:2] == [pa.large_string(), pa.list_(pa.large_string())]
    assert [batch.schema for batch in batches] == [reader.schema] * 3
    assert flat(batches, "x") == ["a"] * 3
    assert open_path(tmp_path / "0.parquet").schema.field("x").type == pa.string()


def test_texts_are_counted_as_they_are_in_memory(tmp_path: Path) -> None:
    """A dictionary-encoded text is tiny in the file and large in memory, and not all rows are alike."""
    texts = ["short"] * 15_000 + ["always the same long text" * 40] * 5_000
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    reader = open_path(tmp_path, share_bytes=MIB)

    assert (tmp_path / "a.parquet").stat().st_size < 4 * KIB
    assert max(batch.nbytes for batch in reader) < MIB / 3
    assert scan_path(tmp_path).row_bytes == (15_000 * 5 + 5_000 * 1000) // 20_000 + 4 + 8 + 1
