"""CSV files as people have them: header, delimiter, encoding, decimal comma, compression."""

import gzip
import io
import logging
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.config.errors import DataError, PenstockError
from penstock.readers.sections import ReadingSection
from tests.readers.samples import open_path, table_from

DECLARED = ReadingSection(input_fields_str="user:BIGINT;event:STRING;price:DOUBLE")
COLUMNS = ["user", "event", "price"]
DATA = "1,view,0.5\n2,click,1.5\n"


def _write(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


def _rows(path: Path, reading: ReadingSection | None = None, columns: Any = None) -> dict[str, list[Any]]:
    return table_from(open_path(path, reading, columns)).to_pydict()


@pytest.mark.parametrize(
    ("text", "reading", "columns", "told"),
    [
        (f"user,event,price\n{DATA}", None, COLUMNS, "a header: it has the names user, event, price"),
        (f"user,event,price\n{DATA}", None, None, "a header: it holds no number"),
        (f"user,event,price\n{DATA}", DECLARED, COLUMNS, "a header: it has the names user, event, price"),
        (f"user,event,price\n{DATA}", DECLARED, ["price"], "a header: it has the name price"),
        (
            DATA,
            DECLARED,
            COLUMNS,
            "data: of the names that the run uses it has none, and data_config.input_fields names its columns",
        ),
        (
            DATA.replace("view", "price"),
            DECLARED,
            COLUMNS,
            "data: of the names that the run uses it has only price, and data_config.input_fields names its columns",
        ),
    ],
)
def test_a_first_row_of_names_is_recognised(tmp_path, text, reading, columns, told, caplog):
    caplog.set_level(logging.INFO)
    path = _write(tmp_path, text)

    found = _rows(path, reading, columns)

    assert found["price"] == [0.5, 1.5]
    assert caplog.messages == [f"{path}: the first row is {told} (data_config.with_header)"]


def test_a_first_row_of_numbers_without_any_name_is_refused(tmp_path: Path):
    path = _write(tmp_path, DATA)

    with pytest.raises(PenstockError) as caught:
        open_path(path, columns=["user", "click"])
    assert str(caught.value) == (
        f"data_config.input_fields: must name the columns of {path}, whose first row holds none: "
        "'1', 'view', '0.5'; or set data_config.with_header to true"
    )


def test_a_name_that_is_misspelt_is_no_reason_to_read_the_header_as_data(tmp_path: Path):
    path = _write(tmp_path, f"user,event,price\n{DATA}")

    with pytest.raises(DataError, match=r"there is no column 'prize'; did you mean 'price'\?"):
        open_path(path, columns=["user", "prize"])


@pytest.mark.parametrize(
    ("text", "reading", "problem"),
    [
        (
            "user;price\n1;2\n",
            ReadingSection(delimiter=","),
            "no column 'user'; known: user;price. Is data_config.delimiter right?",
        ),
        (
            "user,price\n1,2.5\n",
            ReadingSection(decimal=","),
            "no column 'user'; known: user,price. Is data_config.delimiter right?",
        ),
        (
            "1,2.5\n3,4.5\n",
            ReadingSection(with_header=True),
            "no column 'user'; known: 1, 2.5. Is data_config.with_header right?",
        ),
        ("user,prize\n1,2\n", None, "no column 'price'; did you mean 'prize'?"),
    ],
)
def test_a_file_that_was_cut_wrongly_is_not_blamed_on_a_column(tmp_path, text, reading, problem, caplog):
    path = _write(tmp_path, text)

    with pytest.raises(DataError) as caught:
        open_path(path, reading, columns=["user", "price"])
    assert str(caught.value) == f"{path}: there is {problem}"
    assert "separated" not in caplog.text


def test_numbers_that_are_taken_for_names_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = _write(tmp_path, DATA)

    assert _rows(path, ReadingSection(with_header=True))["view"] == ["click"]
    assert caplog.messages == [
        f"{path}: the first row is taken for names, but 1, 0.5 are numbers; if it is data, read without a header"
    ]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a;b\n1;x,y\n2;z,w\n", ";"),
        ('a\tb\n1\t"x\ty; z"\n2\t"u,v"\n', "\t"),
        ("a|b\n1|2\n", "|"),
        ('a,b\n"1;2;3",x|y\n"4;5;6",z|w\n', ","),
        ("a\n1\n2\n", ","),
    ],
)
def test_the_delimiter_is_found(tmp_path, text, delimiter, caplog):
    caplog.set_level(logging.INFO)
    path = _write(tmp_path, text)

    found = open_path(path, ReadingSection(with_header=True))

    assert found.schema.names[:-1] == ["a", "b"][: 1 + (delimiter in text)]
    told = [f"{path}: columns are separated by {delimiter!r} (data_config.delimiter)"]
    assert caplog.messages == (told if delimiter != "," else [])


def test_wanted_names_decide_where_several_delimiters_fit(tmp_path: Path):
    path = _write(tmp_path, "a;x,b;y,c;z\n1;2,3;4,5;6\n")

    assert _rows(path, columns=["x,b"]) == {"x,b": ["2,3"]}
    assert _rows(path, columns=["b;y"]) == {"b;y": ["3;4"]}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig"])
def test_files_of_any_encoding(tmp_path: Path, encoding: str):
    text = "city,n\n" + "Zürich,1\nCórdoba,2\n" * 5000
    path = _write(tmp_path, text.encode(encoding))

    found = _rows(path, ReadingSection(encoding=encoding))

    assert found["city"] == ["Zürich", "Córdoba"] * 5000
    lines = _write(tmp_path, '{"city": "Zürich"}\n'.encode(encoding), "a.jsonl")
    assert _rows(lines, ReadingSection(encoding=encoding)) == {"city": ["Zürich"]}


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_utf8_that_is_read_as_another_encoding_is_told(tmp_path, name, caplog):
    """In a model that was trained on Zürich, ZÃ¼rich is another city."""
    content = "city,n\nZürich,1\n".encode()
    path = _write(tmp_path, gzip.compress(content) if name.endswith("gz") else content, name)

    assert _rows(path, ReadingSection(encoding="latin-1"))["city"] == ["ZÃ¼rich"]
    assert caplog.messages == [
        f"{path}: is UTF-8 text, but data_config.encoding is latin-1, which makes 'Ã¼' of 'ü'; set it to utf-8"
    ]


@pytest.mark.parametrize(
    ("content", "guess"),
    [
        ("city,n\nZürich,1\n".encode("cp1252"), "row 0: column 'city': is not UTF-8 text; it may be cp1252"),
        ("城市,n\n北京,1\n".encode("gbk"), "is not UTF-8 text; it may be gbk"),
        ("city,n\nx,1\n".encode("utf-16"), "is not UTF-8 text; it may be utf-16"),
    ],
)
def test_what_is_not_utf8_is_guessed(tmp_path: Path, content: bytes, guess: str):
    path = _write(tmp_path, content)

    with pytest.raises(DataError) as caught:
        list(open_path(path, ReadingSection(with_header=True)))
    assert str(caught.value) == f"{path}: {guess}: set data_config.encoding"
    with pytest.raises(
        DataError, match=r"is not ascii text: it has the bytes .*; is data_config.encoding right\?"
    ):
        list(open_path(path, ReadingSection(with_header=True, encoding="ascii")))


def test_a_lines_encoding_is_guessed_too(tmp_path: Path):
    path = _write(tmp_path, '{"city": "Zürich"}\n'.encode("cp1252"), "a.jsonl")

    with pytest.raises(
        DataError, match=r"row 0: is not UTF-8 text; it may be cp1252: set data_config.encoding"
    ):
        list(open_path(path, ReadingSection(input_fields_str="city:STRING")))


def test_decimal_commas(tmp_path, caplog):
    path = _write(tmp_path, "price;n\n;0\n2,5;1\n-0,25;2\n")

    assert _rows(path, ReadingSection(decimal=",")) == {"price": [None, 2.5, -0.25], "n": [0, 1, 2]}
    assert _rows(path)["price"] == ["", "2,5", "-0,25"]
    assert caplog.text.count("values such as") == 1
    assert caplog.messages[0] == (
        f"{path}: column 'price': values such as 2,5 are read as strings; where they are numbers, set "
        "data_config.decimal to ','"
    )
    with pytest.raises(DataError) as caught:
        _rows(path, ReadingSection(input_fields_str="price:DOUBLE"))
    assert str(caught.value) == (
        f"{path}: row 1: column 'price': value '2,5' is not double; where a comma is the decimal point, set "
        "data_config.decimal to ','"
    )


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.zst"])
@pytest.mark.parametrize("codec", [None, "gzip", "zstd"])
def test_compression_is_told_by_the_first_bytes(tmp_path: Path, name: str, codec: str | None):
    content = b"n,x\n1,a\n2,b\n"
    if codec is not None:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as target:
            target.write(content)
        content = sink.getvalue().to_pybytes()

    assert _rows(_write(tmp_path, content, name)) == {"n": [1, 2], "x": ["a", "b"]}


@pytest.mark.parametrize("name", ["a.csv.zip", "a.csv.gz", "a.csv"])
def test_a_zip_archive_is_refused_with_the_cure(tmp_path: Path, name: str):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr("a.csv", "n\n1\n")
    path = _write(tmp_path, archive.getvalue(), name)

    with pytest.raises(DataError) as caught:
        open_path(path)
    assert str(caught.value) == f"{path}: is a zip archive; unzip it, and name the file that is in it"


def test_ids_that_a_program_wrote_as_floats_are_numbers_even_where_they_are_hashed(tmp_path, caplog):
    """As the strings 138.0 they would hash to other rows than the 138 of the same table in Parquet."""
    caplog.set_level(logging.INFO)
    text = "user,zip,size,day,level,item\n,02134,1.5,5,1e3,1\n39.0,10115,2.0,6,2.0,2.0\n7,W1A,3.0,7,3.0,3\n"
    path = _write(tmp_path, text)
    names = text.split("\n", 1)[0].split(",")

    found = table_from(open_path(path, ReadingSection(with_header=True), text_columns=names))

    assert found["user"].to_pylist() == [None, 39.0, 7.0]
    assert set(found.schema.types[1:5]) == {pa.string()}
    [told] = caplog.messages
    assert told == (
        f"{path}: columns 'user', 'item': whole numbers such as 39.0 are read as numbers; input_type STRING in "
        "data_config.input_fields keeps a column as it is written"
    )
    declared = ReadingSection(with_header=True, input_fields_str="user:STRING")
    assert table_from(open_path(path, declared, text_columns=names))["user"][1].as_py() == "39.0"


def test_a_value_that_is_no_number_after_all_is_refused_with_the_cure(tmp_path: Path):
    lines = ["138.0"] * 400_000
    lines[300_017] = "guest"
    path = _write(tmp_path, "user\n" + "\n".join(lines))

    with pytest.raises(DataError) as caught:
        list(open_path(path, ReadingSection(with_header=True), text_columns=["user"], share_bytes=1 << 26))
    assert str(caught.value) == (
        f"{path}: row 300017: column 'user': value 'guest' is not double; sampled values of this column were whole "
        "numbers such as 138.0; input_type STRING in data_config.input_fields keeps a column as it is written"
    )


def test_gzip_of_another_encoding(tmp_path: Path):
    path = _write(tmp_path, gzip.compress("stadt;n\nKöln;1\n".encode("latin-1")), "a.csv.gz")

    assert _rows(path, ReadingSection(encoding="latin-1")) == {"stadt": ["Köln"], "n": [1]}
