"""Data that a model is used on and was not trained on: new ids, words outside the vocabulary, another type."""

import json
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import penstock

ROWS = np.arange(20)
VOCABULARY = ('item_id", hash_bucket_size: 50', 'item_id", vocab_list: [{}]')


def table(**columns) -> pa.Table:
    """The clicks of conftest with other columns."""
    return pa.table({**pq.read_table("clicks.parquet").to_pydict(), **columns})


def use(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def scores(run: penstock.RunConfig, rows: pa.Table) -> list[float]:
    return penstock.predict(run, rows)["probs"].to_pylist()


def test_a_new_id_is_scored_as_no_id(trained_folder, command):
    run = penstock.load_run("run/run.yaml")
    users = [[int(row)] for row in ROWS]
    new = table(user_id=[*users[:3], [500], *users[4:]])
    empty = table(user_id=[*users[:3], [], *users[4:]])

    assert scores(run, new) == scores(run, empty)

    pq.write_table(table(user_id=[*range(3), 500, *range(4, 20)]), "new.parquet")
    done = command("predict", "run/run.yaml", "--input", "new.parquet", "--output", "scores.parquet")

    assert done.code == 0, done.err
    assert "unknown  user 5.0% outside 0 to 99" in done.out.splitlines()
    assert pq.read_table("scores.parquet")["probs"].to_pylist() == scores(run, new)


def test_an_evaluation_counts_new_ids(trained_folder, command):
    pq.write_table(table(user_id=[*range(18), 500, None]), "new.parquet")

    done = command(
        "eval", "run/run.yaml", "--eval_input_path", "new.parquet", "--eval_result_filename", "found.json"
    )

    assert done.code == 0, done.err
    assert "unknown  user 5.3% outside 0 to 99, user missing in 5.0% of the rows" in done.out.splitlines()
    found = json.loads(Path("run/found.json").read_text())["value_counts"]
    assert found == {
        "user": {"rows": 20, "missing": 1, "values": 19, "unknown": 1, "outside": "outside 0 to 99"}
    }


def test_training_ends_at_a_new_id_as_ever(folder):
    pq.write_table(table(user_id=[*range(19), 500]), "clicks.parquet")

    with pytest.raises(penstock.DataError, match="row 19: column 'user_id': value 500 is outside 0 to 99"):
        penstock.train(penstock.load_run("run.yaml"))


def test_a_vocabulary_that_knows_no_value_is_told_before_training(folder, command, caplog):
    use(folder / "run.yaml", VOCABULARY[0], VOCABULARY[1].format("drama, action"))

    checked = command("check", "run.yaml")
    result = penstock.train(penstock.load_run("run.yaml"))

    remark = (
        "feature 'item': every value of column 'item_id', such as 'item 0', is outside its vocabulary ('drama', ...), "
        "and all such values are one; correct or complete the vocabulary, or use hash_bucket_size"
    )
    assert remark in " ".join(checked.out.split())
    assert remark in caplog.messages
    last = json.loads((result.model_dir / "eval_result.jsonl").read_text().splitlines()[-1])
    assert last["value_counts"]["item"]["unknown"] == 20
    page = (result.model_dir / "report.html").read_text()
    assert "item 100% not in its vocabulary" in page
    assert "100% not in its vocabulary</td>" in page


def test_a_part_of_the_words(folder, command, caplog):
    words = ", ".join(f"item {item}" for item in range(6))
    use(folder / "run.yaml", VOCABULARY[0], VOCABULARY[1].format(words))

    checked = command("check", "run.yaml")
    penstock.evaluate(trained(folder))

    assert "10% of the values of column 'item_id' are outside its vocabulary" in " ".join(checked.out.split())
    assert "values that the model does not know: item 10% not in its vocabulary" in caplog.messages


def trained(folder: Path) -> penstock.RunConfig:
    return penstock.load_run(penstock.train(penstock.load_run(folder / "run.yaml")).model_dir / "run.yaml")


def test_a_model_of_strings_refuses_numbers(folder, command):
    """Such as ids that one program wrote with leading zeros, and another as integers."""
    codes = table(item_id=[f"{row % 7:03}" for row in ROWS])
    pyarrow.csv.write_csv(codes, "clicks.csv")
    use(folder / "run.yaml", "clicks.parquet", "clicks.csv")
    use(folder / "run.yaml", "data_config: {", "data_config: {with_header: true, ")
    run = trained(folder)
    numbers = table(item_id=ROWS % 7)
    pq.write_table(numbers, "numbers.parquet")
    problem = (
        "column 'item_id': value 0 is a number, but the model was trained on strings here, which have other ids; cast "
        "the column to strings, or where files say no types (CSV, JSON), set data_config.input_fields: [{input_name: "
        "item_id, input_type: STRING}]"
    )

    done = command("predict", "run/run.yaml", "--input", "numbers.parquet", "--output", "scores.parquet")
    with pytest.raises(penstock.DataError) as in_a_table:
        penstock.predict(run, numbers)
    with pytest.raises(penstock.DataError) as in_an_evaluation:
        penstock.evaluate(penstock.load_run("run/run.yaml", {"eval_input_path": "numbers.parquet"}))

    assert done.err.splitlines()[-1] == f"error: numbers.parquet: {problem}"
    assert str(in_a_table.value) == problem
    assert str(in_an_evaluation.value) == f"numbers.parquet: {problem}"
    assert scores(run, codes) == scores(run, table(item_id=codes["item_id"].cast(pa.large_string())))


def test_a_model_of_numbers_refuses_strings_that_have_other_ids(folder):
    pq.write_table(table(item_id=ROWS % 7), "clicks.parquet")
    run = trained(folder)

    expected = scores(run, table(item_id=ROWS % 7))
    assert scores(run, table(item_id=(ROWS % 7).astype(float))) == expected
    assert scores(run, table(item_id=[str(row % 7) for row in ROWS])) == expected
    with pytest.raises(penstock.DataError, match=r"value '0.0' is a string, but .* input_type: DOUBLE"):
        penstock.predict(run, table(item_id=[f"{row % 7}.0" for row in ROWS]))
    # A column without a value says nothing of a kind, whatever its type is.
    assert scores(run, table(item_id=[""] * 20)) == scores(run, table(item_id=[np.nan] * 20))


def test_evaluation_data_of_another_kind_are_refused_before_training(folder):
    pq.write_table(table(item_id=ROWS % 7), "numbers.parquet")
    run = penstock.load_run("run.yaml", {"eval_input_path": "numbers.parquet"})

    with pytest.raises(
        penstock.DataError, match=r"^numbers.parquet: column 'item_id': value \d is a number, but"
    ):
        penstock.train(run)


def test_a_run_does_not_go_on_in_data_of_another_kind(trained_folder):
    pq.write_table(table(item_id=ROWS % 7), "numbers.parquet")
    run = penstock.load_run("run/run.yaml", {"train_input_path": "numbers.parquet"})

    with pytest.raises(
        penstock.DataError, match=r"^numbers.parquet: column 'item_id': value \d is a number, but"
    ):
        penstock.train(run, new_data=True)


def test_an_older_checkpoint_knows_no_kinds_and_scores_as_before(trained_folder):
    for manifest in Path("run/checkpoints").glob("*/manifest.json"):
        body = json.loads(manifest.read_text())["checkpoint"]
        body["documents"].remove("column_kinds")
        del body["files"]["column_kinds.json"]
        crc32 = zlib.crc32(json.dumps(body, sort_keys=True).encode())
        manifest.write_text(json.dumps({"checkpoint": body, "crc32": crc32}))

    assert len(scores(penstock.load_run("run/run.yaml"), table(item_id=ROWS % 7))) == 20
