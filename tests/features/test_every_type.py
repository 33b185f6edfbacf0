"""Every type of feature: one row of the table, run plain, as a sequence and in a grouped sequence, in every mode.

A new type gets a row of CASES: options, columns, and what comes out, row by row. The rest comes for free.
"""

from dataclasses import dataclass, field
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import ConfigError, DataError
from penstock.features import build_features
from penstock.features.parser import Parser
from penstock.features.sections import FeatureConfig, ParsingSection
from penstock.features.values import SparseColumn, Strings


@dataclass(frozen=True, eq=False)
class Case:
    """A feature and what it makes of some rows."""

    kind: str
    options: dict[str, Any]
    columns: dict[str, list[Any]]
    expected: list[list[Any]]
    """The ids of each row, or its numbers."""

    draws: dict[str, st.SearchStrategy[Any]] = field(default_factory=dict)
    """Any values of the columns, for the properties."""

    types: dict[str, pa.DataType] = field(default_factory=dict)
    """Of columns, where Arrow does not guess them."""


def joined(tokens: str, separator: str = "\x1d") -> st.SearchStrategy[str | None]:
    """Strings of these tokens (one a word): none, several, empty ones, separators at the ends; and nulls."""
    return st.none() | st.lists(st.sampled_from([*tokens.split(), ""]), max_size=4).map(separator.join)


ANY_STRING = st.text(max_size=4)

CASES = {
    "id_feature": Case(
        "id_feature",
        {"vocab_list": ["a", "é"], "default_value": "none"},
        {"x": ["a\x1dé", "", None, "b"]},
        [[2, 3], [0], [0], [1]],
        {"x": joined("a é b none") | ANY_STRING},
    ),
    "raw_feature": Case(
        "raw_feature",
        {"value_dim": 2, "default_value": "5"},
        {"x": ["1\x1d2.5", None, "", "3\x1d4"]},
        [[1, 2.5], [5, 5], [5, 5], [3, 4]],
        {"x": st.none() | st.sampled_from(["1\x1d-2", "", "0.25\x1d1e3"])},
    ),
    "raw_feature with boundaries": Case(
        "raw_feature",
        {"boundaries": [1, 2], "default_value": "1.5"},
        {"x": ["1", None, "2\x1d0", ""]},
        [[1], [1], [2, 0], [1]],
        {"x": st.none() | st.sampled_from(["1", "2\x1d1.5", "", "-3"])},
    ),
    "combo_feature": Case(
        "combo_feature",
        {"expression": ["user:x", "user:y"], "vocab_list": ["a_1", "a_2", "é_1"], "default_value": "none"},
        {"x": ["a\x1dé", "a", None, "\x1da\x1d"], "y": [[1, 2], [], [2], [1]]},
        [[2, 3, 4, 1], [0], [0], [2]],
        {"x": joined("a é _ b") | ANY_STRING, "y": st.none() | st.lists(st.integers(0, 3), max_size=3)},
    ),
    "combo_feature of three": Case(
        "combo_feature",
        {"expression": ["user:x", "const:c", "user:y"], "vocab_list": ["a_c_b", "a_c_d", "e_c_b"]},
        {"x": ["a", "a\x1de", "", "e"], "y": ["b\x1dd", "b", "b", None]},
        [[2, 3], [2, 4], [], []],
        {"x": joined("a é"), "y": joined("b d _")},
    ),
    "combine_feature": Case(
        "combine_feature",
        {"combiner": "mean", "default_value": "-1"},
        {"x": ["1\x1d2", "", None, "4"]},
        [[1.5], [-1], [-1], [4]],
        {"x": joined("1 -2 0.5")},
    ),
    "combine_feature max of lists": Case(
        "combine_feature",
        {"combiner": "max", "num_buckets": 10},
        {"x": [[1, 7, 2], [], None, [3]]},
        [[7], [], [], [3]],
        {"x": st.none() | st.lists(st.integers(0, 9), max_size=4)},
    ),
    "combine_feature of words": Case(
        "combine_feature",
        {"value_map": {"low": 1, "hoch ü": 10}, "combiner": "min", "boundaries": [1, 5]},
        {"x": ["low\x1dhoch ü", "hoch ü", None, "low"]},
        [[1], [2], [], [1]],
        {"x": joined("low") | st.just("hoch ü")},
    ),
    "combine_feature count": Case(
        "combine_feature",
        {"combiner": "count"},
        {"x": ["a\x1db\x1d", "", None, "é"]},
        [[2], [0], [0], [1]],
        {"x": joined("a b é") | ANY_STRING},
    ),
    "lookup_feature": Case(
        "lookup_feature",
        {"map": "user:m", "key": "user:k", "default_value": "-1"},
        {
            "m": ["a:1\x1db:2", "a:1\x1da:5\x1dé:0.5", None, "a:1", "\x1da:3\x1d"],
            "k": ["a\x1db", "a\x1dé\x1dz", "a", "z", "a"],
        },
        [[3], [1.5], [-1], [-1], [3]],
        {"m": joined("a:1 b:-2 é:0.5 b:7 c:"), "k": joined("a b é z")},
    ),
    "lookup_feature of a map column": Case(
        "lookup_feature",
        {"map": "user:m", "key": "user:k", "combiner": "max", "boundaries": [1, 2]},
        {"m": [[(7, 1.0), (8, 2.5)], [(8, None)], None, [(9, 0.25)]], "k": [[7, 8], [8], [7], [9]]},
        [[2], [0], [0], [0]],
        {
            "m": st.none() | st.dictionaries(st.integers(-2, 3), st.sampled_from([0.5, 2.0, None])),
            "k": st.none() | st.lists(st.integers(-2, 3), max_size=5),
        },
        {"m": pa.map_(pa.int64(), pa.float64())},
    ),
    "lookup_feature of vectors": Case(
        "lookup_feature",
        {"map": "user:m", "key": "user:k", "value_dim": 2, "combiner": "mean"},
        {"m": ["a:1,2\x1db:3,4", "a:1,2", "", "b:3,4"], "k": ["a\x1db", "b", "a", "b"]},
        [[2, 3], [0, 0], [0, 0], [3, 4]],
        {"m": joined("a:1,2 b:3,4"), "k": joined("a b c")},
    ),
    "lookup_feature of ids": Case(
        "lookup_feature",
        {
            "map": "user:m",
            "key": "user:k",
            "need_discrete": True,
            "need_key": True,
            "vocab_list": ["a:b_x", "c_é"],
            "default_value": "none",
        },
        {"m": [{"a:b": "x", "c": "é"}, {"c": "x"}, {}, None], "k": ["a:b\x1dc", "c", "c", "c"]},
        [[2, 3], [1], [0], [0]],
        {
            "m": st.none() | st.dictionaries(st.sampled_from(["a:b", "c", ""]), st.sampled_from("xé")),
            "k": joined("a:b c"),
        },
        {"m": pa.map_(pa.string(), pa.string())},
    ),
    "lookup_feature of all numbers": Case(
        "lookup_feature",
        {"map": "user:m", "key": "user:k", "combiner": "", "boundaries": [-0.5, 0.5, 1.5, 2.5]},
        {"m": ["ca:1\x1dcb:2", "ca:1\x1dcb:2", "ca:1", ""], "k": ["ca\x1dcb", "cd", "ca", "ca"]},
        [[2, 3], [1], [2], [1]],
        {"m": joined("a:1 b:2 b:3"), "k": joined("a b c")},
    ),
    "match_feature": Case(
        "match_feature",
        {"nested_map": "user:m", "pkey": "user:p", "skey": "user:s"},
        {
            "m": ["p^a:1,b:2|q^a:3,b:4", "p^a:1,b:2|q^a:3", "|p^a:7,|", "", "p^a:1"],
            "p": ["p", "p\x1dq", "p", "p", None],
            "s": ["b", "a", "a", "a", "a"],
        },
        [[2], [4], [7], [0], [0]],
        {"m": joined("p^a:1,b:2 q^a:3,é:0.5 r^", "|"), "p": joined("p q z"), "s": joined("a é z")},
    ),
    "match_feature of all": Case(
        "match_feature",
        {
            "nested_map": "user:m",
            "pkey": "ALL",
            "skey": "user:s",
            "show_pkey": True,
            "show_skey": True,
            "vocab_list": ["p_a_1", "q_a_3"],
            "default_value": "",
        },
        {
            "m": [{"p": "a:1,b:2", "q": "a:3"}, {"p": "a:9"}, None, {"q": "a:3"}],
            "s": ["a", "a", "a", "b"],
        },
        [[2, 3], [1], [], []],
        {
            "m": st.none() | st.dictionaries(st.sampled_from("pqé"), st.sampled_from(["a:1", "a:3,b:2", ""])),
            "s": joined("a b z"),
        },
        {"m": pa.map_(pa.string(), pa.string())},
    ),
    "match_feature of the first key": Case(
        "match_feature",
        {"nested_map": "user:m", "pkey": "user:p", "skey": "ALL", "num_buckets": 10},
        {"m": ["p^a:1,b:2|q^c:3", "p^a:1", "", "q^a:5"], "p": ["q\x1dp", "q", "p", "q"]},
        [[3, 1, 2], [0], [0], [5]],
        {"m": joined("p^a:1,b:2 q^a:3 r^", "|"), "p": joined("p q z")},
    ),
    "overlap_feature of the query": Case(
        "overlap_feature",
        {"query": "user:q", "title": "user:t", "method": "query_common_ratio"},
        {"q": ["a\x1db", "a\x1dé", "", "a", "a"], "t": ["a\x1dc\x1dd\x1de", "é\x1dx\x1da", "a", None, "b"]},
        [[0.5], [1], [0], [0], [0]],
        {"q": joined("a b é c d") | ANY_STRING, "t": joined("a b é")},
    ),
    "overlap_feature of the title": Case(
        "overlap_feature",
        {"query": "user:q", "title": "user:t", "method": "title_common_ratio", "boundaries": [0.25, 1]},
        {"q": ["a\x1db", "a\x1dé", "", "a"], "t": ["a\x1dc\x1dd\x1de", "é\x1da", "a", None]},
        [[1], [2], [0], [0]],
        {"q": joined("a b é"), "t": joined("a b é")},
    ),
    "overlap_feature is_contain": Case(
        "overlap_feature",
        {"query": "user:q", "title": "user:t", "method": "is_contain"},
        {"q": ["a\x1db", "b\x1da", "", "a\x1da", None], "t": ["a\x1dx\x1db", "a\x1db", "a", "a", None]},
        [[1], [0], [0], [0], [0]],
        {"q": joined("a é"), "t": joined("a b é")},
    ),
    "overlap_feature is_equal": Case(
        "overlap_feature",
        {"query": "user:q", "title": "user:t", "method": "is_equal"},
        {"q": ["a\x1db", "a\x1db", "", "é"], "t": ["a\x1db", "b\x1da", "", "é\x1dé"]},
        [[1], [0], [0], [0]],
        {"q": joined("a é") | ANY_STRING, "t": joined("a é")},
    ),
    "kv_dot_product": Case(
        "kv_dot_product",
        {"query": "user:q", "document": "user:d", "separator": "|", "default_value": "0.125"},
        {"q": ["a:0.5|b:0.5", "a|b|c", "a|b", None, "a:2|a:1"], "d": ["a:0.5|b:0.5", "a|b", "", "", "x|a:4"]},
        [[0.5], [2], [0.125], [0.125], [12]],
        {"q": joined("a:0.5 b é:-2", "|"), "d": joined("a b:0.25 é:4 x:1", "|")},
    ),
    "kv_dot_product of maps": Case(
        "kv_dot_product",
        {"query": "user:q", "document": "user:d", "kv_delimiter": "=", "boundaries": [0.5, 1]},
        {"q": [{"a": 0.5, "b:": 1}, {"a": 1}, None, {}], "d": [["a=1", "b:=1"], ["b"], ["a"], ["a=2"]]},
        [[2], [0], [0], [0]],
        {
            "q": st.none() | st.dictionaries(st.sampled_from("abé"), st.sampled_from([0.5, -2.0])),
            "d": st.none() | st.lists(st.sampled_from(["a", "b=2", "é=0.25"]), max_size=3),
        },
        {"q": pa.map_(pa.string(), pa.float32())},
    ),
    "bool_mask_feature": Case(
        "bool_mask_feature",
        {"expression": ["user:x", "user:y"], "vocab_list": ["a", "é"], "separator": ","},
        {"x": ["a,é,a", "é", None, "a,a"], "y": ["true,FALSE,1", "0", "1", None]},
        [[2, 2], [], [], []],
        {"x": st.just("a,é,b") | st.none(), "y": st.sampled_from(["1,0,1", "true,false,true", "0,0,0", ""])},
    ),
    "bool_mask_feature of booleans": Case(
        "bool_mask_feature",
        {"expression": ["user:x", "user:y"], "num_buckets": 10, "default_value": "9"},
        {"x": [[1, 2], [3], [], [4]], "y": [[False, True], [False], None, [True]]},
        [[2], [9], [9], [4]],
        {"x": st.just([1, 2]) | st.none(), "y": st.lists(st.booleans(), min_size=2, max_size=2)},
    ),
    "expr_feature": Case(
        "expr_feature",
        {"expression": "x * 2 if x > y else y", "variables": ["user:x", "user:y"], "default_value": "-1"},
        {"x": ["1", "4", None, "2"], "y": [3, 3, 3, None]},
        [[3], [8], [-1], [-1]],
        {"x": st.none() | st.sampled_from(["1", "-2.5", ""]), "y": st.none() | st.integers(-3, 3)},
    ),
    "expr_feature with boundaries": Case(
        "expr_feature",
        {"expression": "x + y", "variables": ["user:x", "user:y"], "boundaries": [1, 2], "fill_missing": 1},
        {"x": ["1\x1d0", "-4", None, ""], "y": [0, 3, 0, None]},
        [[1, 0], [0], [1], [2]],
        {"x": joined("1 -2.5 0"), "y": st.none() | st.integers(-3, 3)},
    ),
    "expr_feature of dates": Case(
        "expr_feature",
        {"expression": "weekday(x)", "variables": ["user:x"], "default_value": "7"},
        {"x": [date(2024, 1, 1), None, date(1969, 12, 31), date(2024, 2, 29)]},
        [[0], [7], [2], [3]],
        {"x": st.none() | st.dates()},
    ),
    "custom_feature": Case(
        "custom_feature",
        {"operator_name": "EditDistance", "expression": ["user:x", "user:y"], "default_value": "-1"},
        {"x": ["kitten", "é", None, "a"], "y": ["sitting", "e", "a", ""]},
        [[3], [1], [-1], [-1]],
        {"x": st.none() | st.text("aé", max_size=3), "y": st.none() | st.text("aéb", max_size=3)},
    ),
}

SHAPES = ("plain", "sequence", "grouped sequence")


def config_of(case: Case, shape: str) -> FeatureConfig:
    section = {"feature_name": "f", "embedding_dim": 4, **case.options}
    if case.kind in ("id_feature", "raw_feature", "combine_feature", "tokenize_feature"):
        section = {"expression": "user:x", **section}
    if shape == "plain":
        return FeatureConfig.model_validate({case.kind: section})
    if shape == "sequence":
        return FeatureConfig.model_validate({f"sequence_{case.kind}": section})
    group = {"sequence_name": "clicks", "sequence_length": 100, "features": [{case.kind: section}]}
    return FeatureConfig.model_validate({"sequence_feature": group})


@cache
def feature_of(case: Case, shape: str, fg_mode: str):
    parsing = ParsingSection.model_validate({"fg_mode": fg_mode, "fg_encoded_multival_sep": "\x1d"})
    return build_features([config_of(case, shape)], parsing)[0]


def table_of(case: Case, shape: str, columns: dict[str, list[Any]]) -> pa.Table:
    """The columns; of a sequence every row is a step, and the last one a sequence of its own."""
    arrays = {}
    for name, rows in columns.items():
        # A column without a value has no type of its own.
        kind = case.types.get(name) or pa.array(case.columns[name]).type
        if shape == "plain":
            arrays[name] = pa.array(rows, kind)
        else:
            prefix = "clicks__" if shape == "grouped sequence" else ""
            arrays[prefix + name] = pa.array([rows[:-1], rows[-1:]], pa.list_(kind))
    return pa.table(arrays)


def parsed(feature, table: pa.Table):
    return Parser([feature]).parse(table).features[feature.name]


def rows_of(column) -> list[Any]:
    """A list of each row; of a sequence, a list of its steps."""
    rows = column.values.tolist()
    if isinstance(column, SparseColumn):
        rows = nested(rows, column.lengths)
    return rows if column.steps is None else nested(rows, column.steps)


def nested(items: list[Any], lengths) -> list[list[Any]]:
    ends = np.cumsum(lengths).tolist()
    return [items[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def expected_of(case: Case, shape: str) -> list[Any]:
    return case.expected if shape == "plain" else [case.expected[:-1], case.expected[-1:]]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_values(case, shape):
    feature = feature_of(case, shape, "FG_NORMAL")

    assert rows_of(parsed(feature, table_of(case, shape, case.columns))) == expected_of(case, shape)


def made_of(feature, table: pa.Table) -> pa.Array:
    """What the feature makes of its inputs, before it is encoded, as a column."""
    [(_, values)] = Parser([feature]).graph.values(table, [feature.name])
    items = values.items
    lists = nested([items[i] for i in range(len(items))], values.lengths)
    kind = pa.string() if isinstance(items, Strings) else pa.from_numpy_dtype(items.dtype)
    if values.steps is None:
        return pa.array(lists, pa.list_(kind))
    return pa.array(nested(lists, values.steps), pa.list_(pa.list_(kind)))


@st.composite
def case_columns(draw, case: Case) -> dict[str, list[Any]]:
    num_rows = draw(st.integers(1, 6))
    return {name: [draw(each) for _ in range(num_rows)] for name, each in case.draws.items()}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@settings(max_examples=25)
@given(data=st.data())
def test_the_modes_agree(case, shape, data):
    table = table_of(case, shape, data.draw(case_columns(case)))
    feature = feature_of(case, shape, "FG_NORMAL")

    found = rows_of(parsed(feature, table))

    assert rows_of(parsed(feature_of(case, shape, "FG_DAG"), table)) == found
    values = pa.table({feature.name: made_of(feature, table)})
    assert rows_of(parsed(feature_of(case, shape, "FG_BUCKETIZE"), values)) == found
    encoded = pa.table({feature.name: pa.array(found, encoded_type(feature, shape))})
    assert rows_of(parsed(feature_of(case, shape, "FG_NONE"), encoded)) == found


def encoded_type(feature, shape: str) -> pa.DataType:
    of_row = pa.list_(pa.float32() if feature.table is None else pa.int64())
    return of_row if shape == "plain" else pa.list_(of_row)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_sliced_and_chunked_columns_are_the_same(case, shape):
    feature = feature_of(case, shape, "FG_NORMAL")
    table = table_of(case, shape, case.columns)
    doubled = pa.concat_tables([table, table])
    sliced = doubled.combine_chunks().slice(1, table.num_rows)
    chunked = pa.concat_tables([doubled.slice(1, 1), doubled.slice(2, table.num_rows - 1)])
    rows = [*expected_of(case, shape)[1:], expected_of(case, shape)[0]]

    assert rows_of(parsed(feature, sliced)) == rows
    assert rows_of(parsed(feature, chunked)) == rows


BAD_VALUES = {
    "row 1: column 'x': value 'two' is not a number": (
        "combine_feature",
        {"expression": "user:x"},
        {"x": ["1", "1\x1dtwo"]},
    ),
    "row 1: column 'x': value 'mid' is not in value_map": (
        "combine_feature",
        {"expression": "user:x", "value_map": {"low": 1}},
        {"x": ["low", "low\x1dmid"]},
    ),
    "row 1: column 'x': value 1.5 is not a whole number, so no id": (
        "combine_feature",
        {"expression": "user:x", "combiner": "mean", "num_buckets": 5},
        {"x": [[1], [1, 2]]},
    ),
    "row 1: column 'm': value 'b' is no entry of a map: key:value": (
        "lookup_feature",
        {"map": "user:m", "key": "user:k"},
        {"m": ["a:1", "a:1\x1db"], "k": ["a", "a"]},
    ),
    "row 1: column 'm': value 'x' is not a number": (
        "lookup_feature",
        {"map": "user:m", "key": "user:k"},
        {"m": ["a:1", "a:1\x1db:x"], "k": ["a", "b"]},
    ),
    "row 1: column 'm': value '1,2,3' has 3 numbers; value_dim is 2": (
        "lookup_feature",
        {"map": "user:m", "key": "user:k", "value_dim": 2},
        {"m": ["a:1,2", "b:1,2,3"], "k": ["a", "b"]},
    ),
    "row 1: column 'm': value 7 is outside 0 to 4, the ids of feature 'f'": (
        "lookup_feature",
        {"map": "user:m", "key": "user:k", "num_buckets": 5},
        {"m": ["a:1", "a:7"], "k": ["a", "a"]},
    ),
    "column 'm': is a map<bool, double>; the keys of a map are strings or integers": (
        "lookup_feature",
        {"map": "user:m", "key": "user:k"},
        {"m": pa.array([{True: 1.0}], pa.map_(pa.bool_(), pa.float64())), "k": ["a"]},
    ),
    "column 'm': is a map<string, date32[day]>; the values of a map are strings or numbers": (
        "lookup_feature",
        {"map": "user:m", "key": "user:k"},
        {"m": pa.array([None], pa.map_(pa.string(), pa.date32())), "k": ["a"]},
    ),
    "row 1: column 'm': value 'c' is no entry of a map: key:value": (
        "match_feature",
        {"nested_map": "user:m", "pkey": "ALL", "skey": "ALL"},
        {"m": ["p^a:1|q^a:1", "p^a:1|q^a:2,c"]},
    ),
    "row 0: column 'm': value 'p:a' is no entry of a map: key^value": (
        "match_feature",
        {"nested_map": "user:m", "pkey": "ALL", "skey": "ALL"},
        {"m": ["p:a"]},
    ),
    "row 1: column 'd': value 'x' is not a number": (
        "kv_dot_product",
        {"query": "user:q", "document": "user:d"},
        {"q": ["a:1", "a:1"], "d": ["a", "a:1\x1db:x"]},
    ),
    "row 1: column 'y': value 'maybe' is neither true nor false": (
        "bool_mask_feature",
        {"expression": ["user:x", "user:y"], "num_buckets": 5},
        {"x": [1, 2], "y": ["true", "maybe"]},
    ),
    "row 1: column 'x': has 2 values, and 1 in its mask": (
        "bool_mask_feature",
        {"expression": ["user:x", "user:y"], "num_buckets": 5},
        {"x": [[1], [2, 3]], "y": [[True], [False]]},
    ),
    "column 'x': is a map or has weights, which this feature cannot use": (
        "combo_feature",
        {"expression": ["user:x", "user:y"], "hash_bucket_size": 5},
        {"x": pa.array([{"a": 1.0}], pa.map_(pa.string(), pa.float64())), "y": ["a"]},
    ),
}


@pytest.mark.parametrize("message", BAD_VALUES)
def test_a_bad_value_is_named(message):
    kind, options, columns = BAD_VALUES[message]
    feature = feature_of(Case(kind, options, {}, []), "plain", "FG_NORMAL")

    with pytest.raises(DataError) as caught:
        parsed(feature, pa.table(columns))

    assert str(caught.value) == message


def test_a_bad_value_of_a_sequence_is_named_with_its_row():
    options = {"map": "user:m", "key": "item:k", "sequence_length": 9}
    feature = feature_of(Case("lookup_feature", options, {}, []), "sequence", "FG_NORMAL")
    table = pa.table({"m": ["a:1", "a:x"], "k": ["b;b;a", "b;a"]})

    with pytest.raises(DataError, match="row 1: column 'm': value 'x' is not a number"):
        parsed(feature, table)


def test_columns_of_one_sequence_have_the_same_steps():
    options = {"expression": ["user:x", "user:y"], "hash_bucket_size": 5}
    feature = feature_of(Case("combo_feature", options, {}, []), "sequence", "FG_NORMAL")

    with pytest.raises(DataError, match="row 1: column 'x': has 2 steps, but 1 in column 'y'"):
        parsed(feature, pa.table({"x": ["a;b", "a;b"], "y": ["c;d", "c"]}))


ONE_SEQUENCE = {
    "that of items": {"map": "user:m", "key": "item:k"},
    "the one that is named": {"map": "user:m", "key": "user:k", "sequence_fields": ["k"]},
}


@pytest.mark.parametrize("options", ONE_SEQUENCE.values(), ids=ONE_SEQUENCE.keys())
def test_other_inputs_belong_to_every_step(options):
    feature = feature_of(Case("lookup_feature", options, {}, []), "grouped sequence", "FG_NORMAL")
    table = pa.table({"m": ["a:1\x1db:2", "a:3"], "clicks__k": ["a;b;z", "a"]})

    assert feature.inputs == ("m", "clicks__k")
    assert rows_of(parsed(feature, table)) == [[[1], [2], [0]], [[3]]]


def test_a_map_column_belongs_to_every_step():
    options = {"map": "user:m", "key": "user:k"}
    feature = feature_of(Case("lookup_feature", options, {}, []), "sequence", "FG_NORMAL")
    table = pa.table({"m": pa.array([{"a": 1, "b": 2}], pa.map_(pa.string(), pa.int8())), "k": ["a;b;z"]})

    assert rows_of(parsed(feature, table)) == [[[1], [2], [0]]]


EMPTY_SEQUENCES = {
    "ids without a default": ("id_feature", {"num_buckets": 5}, [[[1], [2]], [[]], [[]]]),
    "ids": ("id_feature", {"num_buckets": 5, "default_value": "3"}, [[[1], [2]], [[3]], [[3]]]),
    "numbers": ("raw_feature", {"default_value": "3"}, [[[1], [2]], [[3]], [[3]]]),
    "buckets without a default": (
        "raw_feature",
        {"default_value": "", "boundaries": [2]},
        [[[0], [1]], [[]], [[]]],
    ),
}


@pytest.mark.parametrize("kind", EMPTY_SEQUENCES)
def test_an_empty_sequence_has_one_step(kind):
    """So that the features of a group have the same steps, whatever their defaults are."""
    kind, options, expected = EMPTY_SEQUENCES[kind]
    feature = feature_of(Case(kind, options, {}, []), "sequence", "FG_NORMAL")
    encoded = feature_of(Case(kind, options, {}, []), "sequence", "FG_NONE")

    for column in (["1;2", "", None], [[1, 2], [], None]):
        assert rows_of(parsed(feature, pa.table({"x": column}))) == expected
    assert rows_of(parsed(encoded, pa.table({"f": [[1, 0], [], None]}))) == [[[1], [0]], [], []]


def test_features_of_features_and_stubs():
    configs = [
        {"combine_feature": {"feature_name": "clicks", "combiner": "count", "stub_type": True}},
        {
            "lookup_feature": {
                "feature_name": "place",
                "map": "user:places",
                "key": "user:day",
                "need_discrete": True,
                "stub_type": True,
            }
        },
        {"raw_feature": {"feature_name": "level", "expression": "feature:clicks", "boundaries": [1, 3]}},
        {
            "combo_feature": {
                "feature_name": "cross",
                "expression": ["feature:level", "feature:place"],
                "vocab_list": ["0_rom", "2_rom"],
            }
        },
    ]
    parsing = ParsingSection.model_validate({"fg_mode": "FG_DAG"})
    features = build_features([FeatureConfig.model_validate(config) for config in configs], parsing)
    table = pa.table(
        {"clicks": ["a\x1db\x1dc", None], "places": ["mo:rom", "mo:oslo\x1dtu:rom"], "day": ["mo", "tu"]}
    )

    found = Parser(features).parse(table).features

    assert {name: rows_of(column) for name, column in found.items()} == {
        "level": [[2], [0]],
        "cross": [[3], [2]],
    }


def test_features_that_are_made_of_each_other_are_refused():
    configs = [
        {"combo_feature": {"feature_name": a, "expression": [f"feature:{b}"], "hash_bucket_size": 5}}
        for a, b in (("one", "two"), ("two", "three"), ("three", "one"))
    ]
    parsing = ParsingSection.model_validate({"fg_mode": "FG_DAG"})
    features = build_features([FeatureConfig.model_validate(config) for config in configs], parsing)

    with pytest.raises(
        ConfigError, match="feature_configs: features are made of each other: one -> two -> three -> one"
    ):
        Parser(features)


WRONG_OPTIONS = {
    "lookup_feature.key: 'itm:k': unknown side 'itm'; did you mean 'item'?": {
        "map": "user:m",
        "key": "itm:k",
    },
    "lookup_feature.map: 'feature:m': features of features need data_config.fg_mode: FG_DAG": {
        "map": "feature:m",
        "key": "item:k",
    },
    "combo_feature.expression: names no column; write those to cross: [user:a, item:b]": {
        "hash_bucket_size": 5,
    },
    "bool_mask_feature.expression: has 1 inputs; write two, values and mask: [user:items, user:mask]": {
        "expression": ["user:x"],
        "num_buckets": 5,
    },
    "match_feature.value_dim: is 2; numbers of a match are one, their sum": {
        "nested_map": "user:m",
        "pkey": "ALL",
        "skey": "ALL",
        "value_dim": 2,
    },
}


@pytest.mark.parametrize("problem", WRONG_OPTIONS)
def test_wrong_options(problem):
    case = Case(problem.partition(".")[0], WRONG_OPTIONS[problem], {}, [])

    with pytest.raises(ConfigError) as caught:
        feature_of(case, "plain", "FG_NORMAL")

    assert str(caught.value) == f"feature_configs[0].{problem}"
