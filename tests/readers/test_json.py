"""JSON lines: keys, types, and errors that name the line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.files import list_files
from penstock.readers.scan import BlockStream, ReadRequest, scan_files
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import Quarantine
from penstock.runtime.budget import Share
from tests.readers.samples import flat, open_path


def _write(folder: Path, *lines: object, name: str = "a.jsonl") -> Path:
    """A file with these lines; what is no string is written as JSON."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / name).write_text("\n".join(texts) + "\n")
    return folder / name


def _types(path: Path, **options: Any) -> dict[str, str]:
    schema = open_path(path, **options).schema
    return {field.name: str(field.type) for field in list(schema)[:-1]}


def test_each_kind_of_value_has_its_type(tmp_path: Path) -> None:
    row = {"i": 1, "f": 0.5, "b": True, "s": "2020-01-01", "l": [1, 2.5], "ll": [[1]], "e": [], "big": 2**63}

    assert _types(_write(tmp_path, row)) == {
        "i": "int64",
        "f": "double",
        "b": "bool",
        "s": "string",
        "l": "list<item: double>",
        "ll": "list<item: list<item: int64>>",
        "e": "list<item: string>",
        "big": "string",
    }


def test_declared_types_win(tmp_path: Path) -> None:
    fields = "i:INT;f:FLOAT;zip:STRING;l:ARRAY<FLOAT>;m:MAP<STRING,BIGINT>;later:DOUBLE"
    pairs = [{"key": "a", "value": 1}, {"key": "b", "value": None}]
    row = {"i": 1, "f": 2, "zip": 2134, "l": [1, 2], "m": pairs}
    (batch,) = open_path(_write(tmp_path, row, {"m": []}), ReadingSection(input_fields_str=fields))

    types = "int32, float, string, list<item: float>, map<string, int64>, double, int64"
    assert ", ".join(map(str, batch.schema.types)) == types
    assert batch.column("zip").to_pylist() == ["2134", None]
    assert batch.column("l").to_pylist() == [[1.0, 2.0], None]
    assert batch.column("m").to_pylist() == [[("a", 1), ("b", None)], []]


@pytest.mark.parametrize(
    ("values", "strings"),
    [
        (["02134"], ["02134"]),
        ([2134, None], ["2134", None]),
        ([[5, 6], [], None], [["5", "6"], [], None]),
        ([2**64 - 1, 7], ["18446744073709551615", "7"]),
        ([1, "a", 2.5, [1]], ["1", "a", "2.5", "[1]"]),
    ],
)
def test_what_is_read_as_strings(tmp_path: Path, values: list[object], strings: list[object]) -> None:
    """Sampled alone, a file may have numbers where another has strings."""
    path = _write(tmp_path, *({"x": value} for value in values))

    assert flat(open_path(path, text_columns=["x"]), "x") == strings


def test_blank_lines_line_ends_and_byte_order_marks(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf\r\n{"x": 1}\r\n  \t\n\n {"x": 2}\n{"x": 3}')

    assert flat(open_path(tmp_path), "x") == [1, 2, 3]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_text_is_one_block(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.json{suffix}"
    with pa.output_stream(path, compression="detect") as stream:
        stream.write(b"".join(b'{"x": %d}\n' % number for number in range(100_000)))
    found = scan_files(ReadingSection(), list_files(str(path)), ReadRequest())
    reader = BlockStream(found, Share("reading", found.sizes.min_bytes))

    assert found.blocks.num_rows.tolist() == [100_000]
    assert flat(reader, "x") == list(range(100_000))


ADVICE = "; correct it, or declare another type in data_config.input_fields"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"x": "many"}', f"column 'x': value 'many' is not int64{ADVICE}"),
        ('{"x": 1.5}', f"column 'x': value 1.5 is not int64{ADVICE}"),
        ('{"x": true}', f"column 'x': value True is not int64{ADVICE}"),
        ('{"x": 9223372036854775808}', f"value 9223372036854775808 is too large for int64{ADVICE}"),
        ('{"m": {"a": 1}}', 'is not map<string, int64>, which is written as [{"key": ..., "value": ...}'),
        ('{"m": [{"value": 1}]}', 'has an entry that is not {"key": ..., "value": ...}'),
        ('{"x": 1', "is not JSON: Expecting ',' delimiter: column 8 of the line"),
        ('{"x": 1} {"x": 2}', "is not JSON: Extra data: column 10 of the line"),
        ("[1, 2]", "is not a JSON object; every line must be one"),
        ('{"x": "\udcff"}', "is not UTF-8 text"),
    ],
)
def test_a_line_that_cannot_be_read(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"x": 0}\n' * 2500 + line.encode(errors="surrogateescape") + b'\n{"x": 2}\n')
    reading = ReadingSection(input_fields_str="x:BIGINT;m:MAP<STRING,BIGINT>")

    with pytest.raises(DataError) as caught:
        list(open_path(path, reading, share_bytes=64 * KIB))
    assert str(caught.value).startswith(f"{path}: row 2500: ")
    assert problem in str(caught.value)


def test_one_array_is_not_json_lines(tmp_path: Path) -> None:
    path = _write(tmp_path, '[{"x": 1},', '{"x": 2}]', name="a.json")

    with pytest.raises(DataError) as caught:
        open_path(path)
    assert str(caught.value) == (
        f"{path}: is one JSON array, not JSON lines; write one object per line (jq -c '.[]' does it)"
    )


def test_a_truncated_compressed_file(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b'{"x": %d}\n' % (number * 7919 % 10007) for number in range(50_000)))
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])

    with pytest.raises(DataError, match=r"a.jsonl.gz: cannot be read to its end, it is damaged"):
        open_path(tmp_path)


def test_bad_lines_go_to_the_quarantine(tmp_path: Path) -> None:
    path = _write(tmp_path, {"x": 1, "y": "a"}, '{"x": 1', {"x": "many", "y": "b"}, {"x": 4, "y": "c"})
    quarantine = Quarantine(tmp_path / "bad.jsonl", 10, [str(path)])
    wanted = ReadRequest(["x", "y"], quarantine=quarantine)
    found = scan_files(ReadingSection(input_fields_str="x:INT"), list_files(str(path)), wanted)
    (batch,) = BlockStream(found, Share("reading", MIB))

    assert batch.column("x").to_pylist() == [1, None, None, 4]
    assert batch.column("y").to_pylist() == ["a", None, "b", "c"]
    written = [json.loads(line) for line in quarantine.path.read_text().splitlines()]
    assert [(entry["row"], entry["column"], entry["value"]) for entry in written] == [
        (1, None, None),
        (2, "x", "many"),
    ]
    assert [entry["content"] for entry in written] == ['{"x": 1', '{"x": "many", "y": "b"}']
