"""Labels that are words, or other numbers than a loss takes: data_config.label_map says what they mean."""

from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.config.write import dump_text, dump_yaml
from penstock.run.data import build_parser
from tests.cli.desk import Desk
from tests.run.training_runs import trained

WORDS = ["no", "yes", "no", "yes", "no", "yes"]
YES_NO = {"data_config.label_map": {"click": {"yes": 1, "no": 0}}}
CSV = {"train_input_path": "clicks.csv", "eval_input_path": "clicks.csv", "data_config.with_header": True}


def write_csv(desk: Desk, labels: list[str]) -> None:
    rows = [f"{index},{index},0.5,{label}" for index, label in enumerate(labels)]
    desk.write("clicks.csv", "\n".join(["user_id,item_id,price,click", *rows]) + "\n")


def labels_of(**run: Any) -> list[list[float]]:
    with penstock.create_dataloader(penstock.load_run("run.yaml", run)) as batches:
        return [batch.labels["click"].tolist() for batch in batches]


@pytest.mark.parametrize("name", ["clicks.parquet", "clicks.csv"])
def test_words_train_and_evaluate_as_the_numbers_that_they_mean(desk: Desk, name: str):
    write_csv(desk, ["0", "1"] * 3)
    paths = CSV if name == "clicks.csv" else {}
    expected = trained(desk, {**paths, "model_dir": "numbers"})

    desk.write_clicks(click=WORDS)
    write_csv(desk, WORDS)
    found = trained(desk, {**paths, **YES_NO})

    assert (found.metrics, found.losses) == (expected.metrics, expected.losses)
    assert penstock.evaluate(penstock.load_run("run/run.yaml")) == found.metrics | found.losses


@pytest.mark.parametrize(
    ("column", "meanings"),
    [
        ([1, 2, 1, 2, 1, 2], {"1": 0, "2": 1}),
        ([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0], {"-1": 0, "1": 1}),
        ([False, True] * 3, {"true": 1, "false": 0}),
        (pa.array(WORDS).dictionary_encode(), {"yes": 1, "no": 0}),
        (["05", "5"] * 3, {"05": 0, "5": 1}),
    ],
    ids=["integers", "numbers", "booleans", "dictionaries", "codes"],
)
def test_values_of_every_type_may_have_a_meaning(desk: Desk, column: Any, meanings: dict[str, float]):
    desk.write_clicks(click=column)

    assert labels_of(**{"data_config.label_map": {"click": meanings}}) == [[0, 1, 0, 1], [0, 1]]


def test_in_csv_the_values_are_compared_as_they_are_written(desk: Desk):
    write_csv(desk, ["05", "5"] * 3)

    found = labels_of(**CSV, **{"data_config.label_map": {"click": {"05": 0.25, "5": 0.75}}})

    assert found == [[0.25, 0.75, 0.25, 0.75], [0.25, 0.75]]


REFUSED = {
    "words without a map": (
        WORDS,
        {},
        (
            "column 'click': holds strings (no, yes) where a label is a number; say what they mean in "
            "data_config.label_map: {click: {no: 0, yes: 1}}"
        ),
    ),
    "words that need quotes": (
        ["<=50K", ">50K"] * 3,
        {},
        (
            """column 'click': holds strings ("<=50K", ">50K") where a label is a number; say what they mean in """
            """data_config.label_map: {click: {"<=50K": 0, ">50K": 1}}"""
        ),
    ),
    "a word that the map does not have": (
        [*WORDS[:5], "maybe"],
        YES_NO,
        "row 5: column 'click': value 'maybe' is not in data_config.label_map.click (yes, no)",
    ),
}


@pytest.mark.parametrize("name", ["clicks.parquet", "clicks.csv"])
@pytest.mark.parametrize(("labels", "edits", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_has_no_meaning_is_refused(
    desk: Desk, name: str, labels: list[str], edits: dict[str, Any], problem: str
):
    desk.write_clicks(click=labels)
    write_csv(desk, labels)

    with pytest.raises(penstock.DataError) as error:
        labels_of(**(CSV if name == "clicks.csv" else {}), **edits)

    assert str(error.value) == f"{name}: {problem}"


def test_a_missing_label_and_words_for_numbers_are_refused(desk: Desk):
    desk.write_clicks(click=[*WORDS[:5], None])
    with pytest.raises(penstock.DataError, match="row 5: column 'click': is null; every row needs a label"):
        labels_of(**YES_NO)

    desk.write_clicks()
    with pytest.raises(penstock.DataError, match=r"is a int64, but data_config.label_map.click has 'yes'"):
        labels_of(**YES_NO)


def test_a_map_is_of_a_label_and_not_empty(desk: Desk):
    for label_map, problem in (
        ({"clik": {"yes": 1}}, "data_config.label_map.clik: is not in label_fields; did you mean 'click'?"),
        (
            {"click": {}},
            "data_config.label_map.click: is empty; write what each value means, such as {yes: 1, no: 0}",
        ),
    ):
        with pytest.raises(penstock.ConfigError) as error:
            penstock.load_run("run.yaml", {"data_config.label_map": label_map})
        assert str(error.value) == f"run.yaml: {problem}"


def test_the_map_of_a_run_is_written_in_every_syntax(desk: Desk):
    run = penstock.load_run("run.yaml", YES_NO)
    for name, text in (("again.yaml", dump_yaml(run)), ("again.config", dump_text(run))):
        desk.write(name, text)
        assert penstock.load_run(name).data_config.label_map == {"click": {"yes": 1.0, "no": 0.0}}


def test_prediction_needs_no_label(desk: Desk):
    run = penstock.load_run("run.yaml", YES_NO)

    assert "click" not in build_parser(run, with_labels=False).columns
