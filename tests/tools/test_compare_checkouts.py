"""What the comparison of two checkouts says, without the runs."""

import pytest

from compare_checkouts import first_difference, lines

RUN = {"rows": 4, "losses": [0.5, 0.25], "evaluation": {"auc": 1.0}, "tensors": {"weight": "F32 [2] ab"}}


def results(**changes: object) -> dict[str, object]:
    return {"data": {"a.parquet": "1f"}, "runs": {"quickstart": {**RUN, **changes}}}


def test_equal_results():
    assert list(lines(results(), results())) == [
        ("sample data: equal, 1 files", True),
        ("quickstart: equal, 4 rows, 2 losses, 1 tensors", True),
    ]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"losses": [0.5, 0.25000001]}, "losses[1]: 0.25 became 0.25000001"),
        ({"losses": [0.5]}, "losses: [0.5, 0.25] became [0.5]"),
        ({"tensors": {"weight": "F32 [2] cd"}}, "tensors/weight: 'F32 [2] ab' became 'F32 [2] cd'"),
        ({"tensors": {}}, "tensors/weight: is only in OLD"),
    ],
)
def test_the_first_difference_is_named(changes: dict[str, object], line: str):
    assert list(lines(results(), results(**changes)))[1] == (f"quickstart: {line}", False)


def test_a_run_that_only_one_side_has():
    assert first_difference({"a": 1}, {"a": 1, "b": 2}) == "b: is only in NEW"
    assert list(lines({"data": {}, "runs": {}}, results()))[1][1] is False
