"""CSV: layouts, types, and errors that name the row."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.config.errors import DataError, PenstockError
from penstock.config.sizes import KIB, MIB
from penstock.readers.files import list_files
from penstock.readers.scan import BlockStream, ReadRequest, scan_files
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import Quarantine
from penstock.runtime.budget import Share
from tests.readers.samples import CSV_WITH_HEADER, flat, open_path

WITHOUT_HEADER = ReadingSection(input_fields_str="id:BIGINT;price:FLOAT;tags:ARRAY<STRING>")
ADVICE = "correct it, or declare another type in data_config.input_fields"


def _write(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


@pytest.mark.parametrize(
    ("text", "reading", "rows"),
    [
        ("1,0.5,a|b\n2,,\n", WITHOUT_HEADER, {"id": [1, 2], "price": [0.5, None], "tags": ["a|b", ""]}),
        (
            '\ufeffid,text\r\n1,"a, ""b""\n c"\r\n2,d\r\n',
            CSV_WITH_HEADER,
            {"id": [1, 2], "text": ['a, "b"\n c', "d"]},
        ),
        ('\ufeff\r\n\n"id"\n7\n', CSV_WITH_HEADER, {"id": [7]}),
        (
            "n,x,zip,none\n1,1,01234,\n2,2.5,01235,\n",
            ReadingSection(with_header=True, input_fields_str="zip:STRING"),
            {"n": [1, 2], "x": [1.0, 2.5], "zip": ["01234", "01235"], "none": ["", ""]},
        ),
        ("id\n1\n18446744073709551615\n", CSV_WITH_HEADER, {"id": ["1", "18446744073709551615"]}),
    ],
    ids=["declared columns", "quotes", "blank lines at first", "types", "ids that a float would round"],
)
def test_layouts(tmp_path: Path, text: str, reading: ReadingSection, rows: dict[str, list[object]]) -> None:
    (batch,) = open_path(_write(tmp_path, text), reading)

    assert batch.drop_columns("__row__").to_pydict() == rows


def test_a_type_is_sampled_from_all_of_the_file(tmp_path: Path) -> None:
    lines = ["1"] * (2 * MIB // 2)
    lines[-1000:] = ["1.5"] * 1000
    reader = open_path(_write(tmp_path, "x\n" + "\n".join(lines)), CSV_WITH_HEADER, share_bytes=64 * MIB)

    assert reader.schema.field("x").type == pa.float64()


def test_columns_of_strings_are_strings_in_every_file_set_unless_declared(tmp_path: Path) -> None:
    """Sampled alone, the second set would be numbers, and 2134 hashes to another row than "02134"."""
    for text in ("zip,id\n02134,7\nW1A,8\n", "zip,id\n02134,7\n"):
        reading = ReadingSection(with_header=True, input_fields_str="id:BIGINT")
        (batch,) = open_path(_write(tmp_path, text), reading, text_columns=["zip", "id", "not read"])

        assert batch["zip"][0].as_py() == "02134"
        assert batch["id"][0].as_py() == 7


@pytest.mark.parametrize(
    ("content", "reading", "problem"),
    [
        (
            b"1,0.5,ok\n2,0.5,Z\xfcrich\n",
            WITHOUT_HEADER,
            ": row 1: column 'tags': is not UTF-8 text; it may be cp1252: set data_config.encoding",
        ),
        (
            '1,2,a\n1,2,"open\n' + "2,3,b\n" * (3 * MIB),
            WITHOUT_HEADER,
            ": the record at byte 6 does not end within 16MiB; is a quote unbalanced?",
        ),
        ('1,"open' + "\n2,3" * 100_000, WITHOUT_HEADER, ": the first row: field larger than field limit"),
        ("1,2\n", WITHOUT_HEADER, ": the first row has 2 columns but data_config.input_fields names 3; "),
        (
            "a·b\n",
            ReadingSection(with_header=True, delimiter="·"),
            "data_config.delimiter: is '·'; use an ASCII character",
        ),
    ],
    ids=["not UTF-8", "open quote", "open at once", "number of columns", "delimiter"],
)
def test_what_cannot_be_read(tmp_path, content, reading, problem):
    path = _write(tmp_path, content)

    with pytest.raises(PenstockError) as caught:
        list(open_path(path, reading, share_bytes=128 * KIB))
    assert str(caught.value).removeprefix(str(path)).startswith(problem)


def _rows_with_quarantine(path: Path, quarantine: Quarantine, share_bytes: int = MIB) -> list[pa.RecordBatch]:
    wanted = ReadRequest(["id", "price", "tags"], quarantine=quarantine)
    found = scan_files(WITHOUT_HEADER, list_files(str(path)), wanted)
    return list(BlockStream(found, Share("reading", share_bytes)))


def test_bad_rows_go_to_the_quarantine(tmp_path: Path) -> None:
    path = _write(tmp_path, '1,0.5,a\n2,cheap,"b\nc"\n\n3,0.5\n4,0.5,d\nfive,dear,e\n')
    quarantine = Quarantine(tmp_path / "bad.jsonl", 10, [str(path)])
    batches = _rows_with_quarantine(path, quarantine)

    assert flat(batches, "id") == [1, 2, None, 4, None]
    assert flat(batches, "price") == [0.5, None, None, 0.5, None]
    assert flat(batches, "tags") == ["a", "b\nc", None, "d", "e"]
    keys = ("row", "column", "value", "problem", "content")
    lines = [json.loads(line) for line in quarantine.path.read_text().splitlines()]
    assert [tuple(line[key] for key in keys) for line in lines] == [
        (1, "price", "cheap", f"is not float; {ADVICE}", '2,cheap,"b\nc"'),
        (2, None, None, "has 2 columns, not 3; is data_config.delimiter right?", "3,0.5"),
        (4, "id", "five", f"is not int64; {ADVICE}", "five,dear,e"),
    ]


def test_every_row_keeps_its_position_whatever_is_bad(tmp_path: Path) -> None:
    rows = [f"{number},0.5,x" if number % 97 else f"{number},bad,x" for number in range(2000)]
    path = _write(tmp_path, "\n".join(rows))
    quarantine = Quarantine(None, 100, [str(path)])
    batches = _rows_with_quarantine(path, quarantine, 32 * KIB)

    assert flat(batches, "id") == flat(batches, "__row__") == list(range(2000))
    assert len(quarantine) == 21
    with pytest.raises(DataError, match=r"4 rows cannot be used, more than data_config.bad_rows_limit \(3\)"):
        _rows_with_quarantine(path, Quarantine(None, 3, [str(path)]))
