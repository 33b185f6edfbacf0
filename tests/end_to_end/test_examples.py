"""Every run file of examples/ that needs only generated data works on it."""

import json
from pathlib import Path

from penstock.prep.sample_data.blocks import read_summary
from penstock.prep.sample_data.write import write_sample_data
from tests.end_to_end.conftest import Workplace

EXAMPLES = Path(__file__).parents[2] / "examples"


def train_on_samples(folder, example, kind, num_rows, file_format="parquet"):
    data = folder / "data"
    write_sample_data(kind, num_rows, data, format=file_format)
    place = Workplace(folder, data, EXAMPLES / example)
    done = place.process(  # the limit of an example is for a process of its own
        "train", EXAMPLES / example, "--model_dir", "run",
        "--train_input_path", f"{data}/train/*.{file_format}", "--eval_input_path", f"{data}/test/*.{file_format}",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads((folder / "run/data_profile.json").read_text())["remarks"] == []
    evaluated = json.loads((folder / "run/eval_result.jsonl").read_text().splitlines()[-1])
    return done, evaluated["metrics"]["auc"], read_summary(data).splits["test"].labels


def test_quickstart_learns(tmp_path):
    _, auc, labels = train_on_samples(tmp_path, "quickstart.yaml", "clicks", 100_000)

    assert 0.76 < auc < labels["click"].attainable_auc


def test_a_text_format_file_in_the_old_style_trains(tmp_path):
    done, auc, labels = train_on_samples(tmp_path, "deepfm_criteo.config", "criteo", 100_000)

    assert 0.75 < auc < labels["label"].attainable_auc
    assert "Traceback" not in done.err


def test_wide_and_deep_on_csv_learns(tmp_path):
    _, auc, labels = train_on_samples(tmp_path, "wide_and_deep.yaml", "clicks", 60_000, file_format="csv")

    assert 0.73 < auc < labels["click"].attainable_auc


def test_attention_to_histories_learns(tmp_path):
    _, auc, labels = train_on_samples(tmp_path, "din.yaml", "clicks", 60_000)

    assert 0.73 < auc < labels["click"].attainable_auc


def test_the_shortest_run_file_trains_on_csv_with_a_header(tmp_path):
    text = (EXAMPLES / "shortest.yaml").read_text()
    readme = (EXAMPLES.parent / "README.md").read_text()

    done, auc, labels = train_on_samples(tmp_path, "shortest.yaml", "clicks", 60_000, file_format="csv")

    assert 0.72 < auc < labels["click"].attainable_auc
    assert (
        "part-00000.csv and 3 more: the first row is a header: it has the names user_id, item_id" in done.err
    )
    run_file = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(run_file) < 15
    assert "\n".join(run_file) in readme


def test_the_demonstration_tells_how_near_it_came(tmp_path):
    (tmp_path / "examples").symlink_to(EXAMPLES)
    place = Workplace(tmp_path, tmp_path / "data", EXAMPLES / "quickstart.yaml")
    done = place.penstock("demo", "--rows", "5000", "--plain")

    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("result  auc 0.")
    assert " is attainable)  binary_cross_entropy " in lines[0]
    assert [line.split()[0] for line in lines] == ["result", "speed", "memory", "where", "next"]
    assert max(map(len, lines)) <= 80


def test_batches_by_cost_learn_too(tmp_path):
    _, auc, labels = train_on_samples(tmp_path, "cost_batching.yaml", "clicks", 100_000)
    log = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]

    assert 0.68 < auc < labels["click"].attainable_auc
    assert log[-1]["shuffle"]["block_coverage"] > 0.9
    assert log[-1]["memory"]["stages"]["shuffle"]["measured_bytes"] > 0
