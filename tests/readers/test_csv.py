"""CSV: layouts, types, and errors that name the row."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.files import list_files
from penstock.readers.framing import CsvRecords
from penstock.readers.quarantine import Quarantine
from penstock.readers.reading import BlockStream
from penstock.readers.scan import ReadRequest, scan_files
from penstock.readers.sections import ReadingSection
from penstock.runtime.budget import Share
from tests.readers.samples import CSV_WITH_HEADER, flat, open_path

WITHOUT_HEADER = ReadingSection(input_fields_str="id:BIGINT;price:FLOAT;tags:ARRAY<STRING>")


def _write(folder: Path, text: str, name: str = "a.csv") -> Path:
    (folder / name).write_text(text, newline="")
    return folder / name


def test_declared_columns_without_a_header(tmp_path: Path) -> None:
    (batch,) = open_path(_write(tmp_path, "1,0.5,a|b\n2,,\n"), WITHOUT_HEADER)

    assert batch.schema.types == [pa.int64(), pa.float32(), pa.string(), pa.int64()]
    assert batch.to_pydict() == {"id": [1, 2], "price": [0.5, None], "tags": ["a|b", ""], "__row__": [0, 1]}


def test_types_are_found_and_declared_ones_win(tmp_path: Path) -> None:
    reading = ReadingSection(with_header=True, input_fields_str="zip:STRING")
    reader = open_path(_write(tmp_path, "n,x,zip,word,none\n1,1,01234,a,\n2,2.5,01235,b,\n"), reading)

    assert [str(value_type) for value_type in reader.schema.types[:-1]] == [
        "int64",
        "double",
        "string",
        "string",
        "string",
    ]


def test_a_type_is_sampled_from_all_of_the_file(tmp_path: Path) -> None:
    lines = ["1"] * (2 * MIB // 2)
    lines[-1000:] = ["1.5"] * 1000
    reader = open_path(_write(tmp_path, "x\n" + "\n".join(lines)), CSV_WITH_HEADER, share_bytes=64 * MIB)

    assert reader.schema.field("x").type == pa.float64()


def test_ids_that_a_float_would_round_stay_text(tmp_path: Path) -> None:
    reader = open_path(_write(tmp_path, "id\n1\n18446744073709551615\n"), CSV_WITH_HEADER)

    assert flat(reader, "id") == ["1", "18446744073709551615"]


def test_quotes_line_ends_and_byte_order_marks(tmp_path: Path) -> None:
    text = '\ufeffid,text\r\n1,"a, ""b""\n c"\r\n2,d\r\n'
    reader = open_path(_write(tmp_path, text), CSV_WITH_HEADER)

    assert [batch.to_pydict() for batch in reader] == [
        {"id": [1, 2], "text": ['a, "b"\n c', "d"], "__row__": [0, 1]}
    ]


def _end_of_last(text: bytes, delimiter: str = ",") -> int:
    return CsvRecords(delimiter).whole_records(text, is_all=False)[0]


def test_a_tab_as_delimiter_and_a_header_only(tmp_path: Path) -> None:
    reader = open_path(_write(tmp_path, "a\tb\n"), ReadingSection(with_header=True, delimiter="\t"))

    assert reader.schema.names == ["a", "b", "__row__"]
    assert list(reader) == []


def test_columns_may_stand_in_another_order_in_each_file(tmp_path: Path) -> None:
    _write(tmp_path, "a,b\n1,2\n", "1.csv")
    _write(tmp_path, "b,a\n4,3\n", "2.csv")

    assert flat(open_path(tmp_path, CSV_WITH_HEADER), "a") == [1, 3]


def test_a_value_that_does_not_fit_names_file_row_column_and_value(tmp_path: Path) -> None:
    rows = [f"{number},0.5,x" for number in range(3000)]
    rows[2500] = "2500,cheap,x"
    path = _write(tmp_path, "\n".join(rows))

    with pytest.raises(DataError) as caught:
        list(open_path(path, WITHOUT_HEADER, columns=["tags", "price"], share_bytes=128 * KIB))
    assert str(caught.value) == (
        f"{path}: row 2500: column 'price': value 'cheap' is not float; "
        "correct it, or declare another type in data_config.input_fields"
    )


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,text\n1,ok\n2,\xff\xfe\n")
    reading = ReadingSection(with_header=True, input_fields_str="id:INT;text:STRING")

    with pytest.raises(DataError, match=r"a.csv: row 1: column 'text': .*invalid UTF8"):
        list(open_path(tmp_path, reading))


def test_an_unbalanced_quote(tmp_path: Path) -> None:
    path = _write(tmp_path, 'id,text\n1,"open\n' + "2,b\n" * (4 * MIB + 1))
    reading = ReadingSection(with_header=True, input_fields_str="id:INT;text:STRING")

    with pytest.raises(DataError, match=r"a.csv: the record at byte 8 does not end within 16MiB; is a quote"):
        list(open_path(path, reading, share_bytes=128 * KIB))


def test_columns_must_be_named_somewhere(tmp_path: Path) -> None:
    path = _write(tmp_path, "1,2\n")

    with pytest.raises(
        ConfigError, match=r"data_config.input_fields: must name the columns of .*a.csv, unless"
    ):
        open_path(path, ReadingSection())
    with pytest.raises(DataError, match=r"the first row has 2 columns but data_config.input_fields names 3"):
        open_path(path, WITHOUT_HEADER)


def test_zip_codes_are_text_in_every_file_set(tmp_path: Path) -> None:
    """Sampled alone, the second set would be numbers, and 2134 hashes to another row than "02134"."""
    first = open_path(
        _write(tmp_path, "zip\n02134\nW1A\n", "train.csv"), CSV_WITH_HEADER, text_columns=["zip"]
    )
    second = open_path(_write(tmp_path, "zip\n02134\n", "eval.csv"), CSV_WITH_HEADER, text_columns=["zip"])

    assert flat(first, "zip") == ["02134", "W1A"]
    assert flat(second, "zip") == ["02134"]


def test_a_declared_type_counts_more_than_text_columns(tmp_path: Path) -> None:
    reading = ReadingSection(with_header=True, input_fields_str="id:BIGINT")
    reader = open_path(_write(tmp_path, "id\n7\n"), reading, text_columns=["id", "not read"])

    assert flat(reader, "id") == [7]


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_quote_inside_an_unquoted_cell_is_a_character(tmp_path: Path, delimiter: str) -> None:
    names = [f'{number}" disk' if number % 3 == 0 else "plain" for number in range(3000)]
    rows = [f'{number}{delimiter}{name}{delimiter}"a\n""b"' for number, name in enumerate(names)]
    text = delimiter.join(["id", "name", "text"]) + "\n" + "\n".join(rows)
    reading = ReadingSection(with_header=True, delimiter=delimiter)
    batches = list(open_path(_write(tmp_path, text), reading, share_bytes=128 * KIB))

    assert len(batches) > 5
    assert flat(batches, "name") == names
    assert set(flat(batches, "text")) == {'a\n"b'}


def test_the_end_of_records_with_stray_quotes() -> None:
    assert _end_of_last(b'5" disk\n2\n3') == 10
    assert _end_of_last(b'5" disk,"a\nb"\n"c\n') == 14
    assert _end_of_last(b'"a"b"c\nd') == 7
    assert _end_of_last(b'1|5"\n"|\n', "|") == 5
    assert CsvRecords(",").starts(b'5" a,"b\nc"\nd\n').tolist() == [0, 11]


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
    assert [json.loads(line) for line in quarantine.path.read_text().splitlines()] == [
        {
            "file": str(path),
            "row": 1,
            "column": "price",
            "value": "cheap",
            "problem": "is not float; correct it, or declare another type in data_config.input_fields",
            "content": '2,cheap,"b\nc"',
        },
        {
            "file": str(path),
            "row": 2,
            "column": None,
            "value": None,
            "problem": "has 2 columns, not 3; is data_config.delimiter right?",
            "content": "3,0.5",
        },
        {
            "file": str(path),
            "row": 4,
            "column": "id",
            "value": "five",
            "problem": "is not int64; correct it, or declare another type in data_config.input_fields",
            "content": "five,dear,e",
        },
    ]


def test_every_row_keeps_its_position_whatever_is_bad(tmp_path: Path) -> None:
    rows = [f"{number},0.5,x" if number % 97 else f"{number},bad,x" for number in range(5000)]
    path = _write(tmp_path, "\n".join(rows))
    quarantine = Quarantine(tmp_path / "bad.jsonl", 100, [str(path)])
    batches = _rows_with_quarantine(path, quarantine, 32 * KIB)

    assert flat(batches, "id") == list(range(5000))
    assert len(quarantine) == 52
    assert flat(batches, "__row__") == list(range(5000))


def test_too_many_bad_rows_are_an_error(tmp_path: Path) -> None:
    path = _write(tmp_path, "1,a,x\n" * 10)

    with pytest.raises(DataError, match=r"4 rows cannot be used, more than data_config.bad_rows_limit \(3\)"):
        _rows_with_quarantine(path, Quarantine(tmp_path / "bad.jsonl", 3, [str(path)]))


def test_blank_lines_before_the_header(tmp_path: Path) -> None:
    assert flat(open_path(_write(tmp_path, '\ufeff\r\n\n"id"\n7\n'), CSV_WITH_HEADER), "id") == [7]


def test_a_delimiter_must_be_ascii(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data_config.delimiter: is '·'; use an ASCII character"):
        open_path(_write(tmp_path, "a·b\n"), ReadingSection(with_header=True, delimiter="·"))
