"""What has changed since a preparation was begun, in words."""

import pytest

from penstock.prep.preparing.changes import change_since

OLD = {"batch_size": 4, "level": None}
ANEW = "start anew with --restart, or choose another intermediate_dir"


@pytest.mark.parametrize(
    ("settings", "paths", "line"),
    [
        (
            {"batch_size": 5},
            ["a", "b"],
            f"something else: batch_size was 4 and is 5; put it back as it was, {ANEW}",
        ),
        ({"batch_size": 4}, ["a", "b", "c"], f"other files: c was added; {ANEW}"),
        ({"batch_size": 4}, ["x", "a", "b", "c"], f"other files: 2 were added, the first of them x; {ANEW}"),
        ({"batch_size": 4}, ["a"], f"other files: b is gone; put back, {ANEW}"),
        ({"batch_size": 4}, [], f"other files: 2 are gone, the first of them a; put back, {ANEW}"),
        (
            {"batch_size": 4},
            ["b", "a"],
            f"other files: they are in another order; put it back as it was, {ANEW}",
        ),
    ],
)
def test_the_first_difference_is_told(settings: dict, paths: list[str], line: str):
    change = change_since(OLD, settings, ["a", "b"], paths)

    assert change is not None
    assert (change.line, change.may_keep_done) == (f"was begun with {line}", False)


def test_of_a_section_only_the_keys_that_differ_are_told():
    old = {"schema": {"fill_value": -1.0, "labels": {}, "masks": {"move": 4, "turn": 2}, "num_features": 3}}
    new = {"schema": {"fill_value": 0.0, "labels": {"move": "int8"}, "masks": {"move": 5, "turn": 2}}}

    change = change_since(old, new, ["a"], ["a"])

    assert change is not None
    assert change.line == (
        'was begun with something else: schema.fill_value was -1.0 and is 0.0, schema.labels was {} and is {"move": '
        '"int8"}, schema.masks.move was 4 and is 5, schema.num_features was 3 and is null; put it back as it was, '
        f"{ANEW}"
    )


def test_what_is_the_same():
    assert change_since(OLD, {"batch_size": 4}, ["a"], ["a"]) is None
