"""YAML and JSON as plain data with positions."""

import math

import pytest

from penstock.config.syntax import read, read_json, resolve_plain
from tests.config.toy import Run

PLAIN = {"1e-4": 1e-4, "-0.5": -0.5, "0x10": 16, "010": 10, ".inf": math.inf, "true": True, "~": None}
STRINGS = ("no", "2024-01-01", "12:30", "1_000", "4GiB")


@pytest.mark.parametrize(("text", "value"), [*PLAIN.items(), *zip(STRINGS, STRINGS, strict=True)])
def test_plain_scalars_follow_yaml_1_2(text: str, value: object):
    assert resolve_plain(text) == value
    assert type(resolve_plain(text)) is type(value)


def test_every_key_and_entry_has_its_place():
    parsed = read("model_dir: x\ndata_config:\n  label_fields:\n    - a\n    - b\n", "yaml", Run)

    assert parsed.data == {"model_dir": "x", "data_config": {"label_fields": ["a", "b"]}}
    assert parsed.positions == {
        ("model_dir",): (1, 1),
        ("data_config",): (2, 1),
        ("data_config", "label_fields"): (3, 3),
        ("data_config", "label_fields", 0): (4, 7),
        ("data_config", "label_fields", 1): (5, 7),
    }


def test_a_key_without_a_value_is_an_empty_section_where_one_belongs():
    data = read("train_config:\n  adam_optimizer:\nmodel_dir:\n", "yaml", Run).data

    assert data == {"train_config": {"adam_optimizer": {}}, "model_dir": None}


def test_anchors_and_merge_keys_save_typing():
    text = "a: &shared {x: 1, y: 2}\nb:\n  <<: *shared\n  y: 3\nc: *shared\n"

    assert read(text, "yaml", Run).data == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
        "c": {"x": 1, "y": 2},
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1: a: is written twice"),
        ("a: [1, 2\nb: 3", "line 2, column 2: is not valid YAML: did not find expected ',' or ']'"),
        ("a: 1\n---\nb: 2\n", "line 3, column 1: holds more than one YAML document"),
        ("a: &x [*x]", "line 1, column 4: a[0]: repeats itself without end through its anchors"),
        (
            "a: !!python/name:os.system {}",
            "line 1, column 4: a: has the tag 'tag:yaml.org,2002:python/name:os.system'; tags are not supported",
        ),
        ("? [1]\n: 2\n", "line 1, column 3: has a key that is not a name"),
    ],
)
def test_problems_of_the_text(text: str, problem: str):
    assert [str(found) for found in read(text, "yaml", Run).problems] == [problem]


def test_every_key_of_json_has_its_place_whatever_its_strings_hold():
    text = '{"😀é": "\x7f\u2028 \\ud83d\\ude00",\n\t"b": {"c": [true,\n  null]}}'
    parsed = read_json(text)

    assert parsed.data == {"😀é": "\x7f\u2028 \U0001f600", "b": {"c": [True, None]}}
    assert parsed.positions == {
        ("😀é",): (1, 2),
        ("b",): (2, 2),
        ("b", "c"): (2, 8),
        ("b", "c", 0): (2, 14),
        ("b", "c", 1): (3, 3),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,\n "a": 2}', "line 2, column 2: a: is written twice"),
        ("[1 2]", "line 1, column 4: is not valid JSON: expected ',' delimiter"),
    ],
)
def test_problems_of_a_json_text(text: str, problem: str):
    assert [str(found) for found in read_json(text).problems] == [problem]
