"""Protobuf text format as plain data with positions."""

import pytest

from penstock.config.syntax import read
from penstock.config.text_syntax import read_text
from tests.config.toy import Run


def test_what_protobuf_allows_is_allowed():
    parsed = read_text(
        """
        # A comment.
        model_dir: "one" ' string'      # with a second part
        data_config: <
          batch_size: 0x10; shuffle: t,
          label_fields: ["a", "b"]
          label_fields: "c"
        >
        model_config { final: {} options { fields { key: "n" value { number_value: 3 } } } }
        """,
        Run,
    )

    assert parsed.problems == []
    assert parsed.data == {
        "model_dir": "one string",
        "data_config": {"batch_size": 16, "shuffle": True, "label_fields": ["a", "b", "c"]},
        "model_config": {"final": {}, "options": {"n": 3}},
    }


def test_the_last_of_a_scalar_that_is_written_twice_counts():
    parsed = read_text(
        'model_dir: "a"\ndata_config { fg_mode: FG_DAG fg_mode: FG_NONE }\nmodel_dir: "b"', Run
    )

    assert (parsed.data, parsed.problems) == ({"model_dir": "b", "data_config": {"fg_mode": "FG_NONE"}}, [])
    assert parsed.repeated == [("data_config", "fg_mode"), ("model_dir",)]
    assert parsed.positions["model_dir",] == (3, 1)


def test_escapes():
    data = read_text(r'model_dir: "\x3\035\n\"é\\\303\251\u00e9\U0001F600\q"', Run).data

    assert data == {"model_dir": '\x03\x1d\n"é\\éé\U0001f600\\q'}


@pytest.mark.parametrize(
    ("word", "value"),
    [("0x10", 16), ("010", 8), ("-3", -3), ("1.5f", 1.5), ("1.f", 1.0), ("2e-3", 2e-3), ("4GiB", "4GiB")],
)
def test_numbers_as_c_writes_them(word: str, value: object):
    assert read_text(f"data_config {{ null_cost: {word} }}", Run).data == {
        "data_config": {"null_cost": value}
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("data_config {}\ndata_config {}", "line 2, column 1: data_config: is written twice"),
        ("model_dir: word", "line 1, column 12: model_dir: is word; expected a string in quotes"),
        ('model_dir: "\\xff"', 'line 1, column 12: model_dir: has an escape that is no text: "\\xff"'),
        ('model_dir: "a', "line 1, column 12: is not valid text format: a quote is not closed"),
        ("data_config }", "line 1, column 13: is not valid text format: expected ':', found '}'"),
        (
            "data_config { 5 }",
            "line 1, column 15: is not valid text format: expected the name of a field, found '5'",
        ),
        (
            'model_config { options { fields { key: "a" value { str: 3 } } } }',
            (
                "line 1, column 52: model_config.options: cannot be read: unknown key 'str'; known: bool_value, "
                "list_value, null_value, number_value, string_value, struct_value"
            ),
        ),
        (
            'model_config { adam_by_part { name: "a" } }',
            'line 1, column 29: model_config.adam_by_part: expected entries such as {key: "name" value: 1}',
        ),
    ],
)
def test_problems_of_the_text(text: str, problem: str):
    assert [str(found) for found in read_text(text, Run).problems] == [problem]


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        ("text", "a{" * 20_000),
        ("yaml", "[" * 5000),
        ("yaml", f"model_dir: {'9' * 5000}"),
    ],
)
def test_endless_nesting_and_digits_are_a_problem_and_not_a_crash(syntax: str, text: str):
    parsed = read(text, syntax, Run)

    assert not parsed.readable
    assert len(parsed.problems) == 1
