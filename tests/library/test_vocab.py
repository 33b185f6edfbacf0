"""Vocabularies and statistics of a run's features: the command, the function, and the run file that follows."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock

RUN = """
train_input_path: train.parquet
data_config: {label_fields: [label], fg_mode: FG_NORMAL}
feature_configs:
  - id_feature: {feature_name: city, hash_bucket_size: 100}
  - id_feature: {feature_name: tags, vocab_file: later.txt, separator: "|"}
  - id_feature: {feature_name: last_tag, vocab_list: [x], embedding_name: tag}
  - id_feature: {feature_name: liked_tag, vocab_list: [x], embedding_name: tag}
  - id_feature: {feature_name: likes, expression: "user:weighted", hash_bucket_size: 9, weighted: true, separator: "|"}
  - id_feature: {feature_name: shop, num_buckets: 10}
  - raw_feature: {feature_name: age, default_value: mean, normalizer: "method=zscore"}
  - raw_feature: {feature_name: age_interval, expression: "user:age", boundaries: [1, 2], missing_bucket: true}
  - raw_feature: {feature_name: price, normalizer: "method=minmax", default_value: "1"}
"""
NUM_ROWS = 12


@pytest.fixture
def run_folder(tmp_path, monkeypatch):
    """A folder with a run file that nothing was counted for yet."""
    monkeypatch.chdir(tmp_path)
    table = pa.table(
        {
            "city": ["oslo", "rome", "oslo", None] * 3,
            "tags": ["new|sale", "new", "", "rare|new"] * 3,
            "last_tag": ["a", "b", "c", "a"] * 3,
            "liked_tag": ["b", "b", "b", None] * 3,
            "weighted": ["x:0.5|y:2", "x:1", "x:3", "x:2"] * 3,
            "shop": [1, 2, 3, 4] * 3,
            "age": [20.0, 30.0, None, 40.0] * 3,
            "price": [1.0, 3.0, 5.0, 2.0] * 3,
            "label": [0, 1] * 6,
        }
    )
    pq.write_table(table, "train.parquet")
    (tmp_path / "run.yaml").write_text(RUN)
    return tmp_path


def lines(path):
    return path.read_text().splitlines()


def test_the_command_writes_files_and_a_run_file_that_trains(run_folder, command):
    done = command("vocab", "run.yaml", "--write")

    assert done.code == 0, done.err
    assert done.out.splitlines()[:2] == [
        f"run_vocab: {NUM_ROWS} rows",
        "  city: 2 of 2 values occur 2 times or more, 100.0% of all; run_vocab/city.txt",
    ]
    assert done.out.splitlines()[-1] == (
        "run.vocab.yaml: run.yaml with what was found; its comments stay behind there"
    )
    assert lines(run_folder / "run_vocab" / "city.txt") == ["oslo", "rome"]
    assert lines(run_folder / "run_vocab" / "tags.txt")[0] == "new"
    assert lines(run_folder / "run_vocab" / "tag.txt")[0] == "b"
    assert sorted(lines(run_folder / "run_vocab" / "tag.txt")) == ["a", "b", "c"]
    assert lines(run_folder / "run_vocab" / "likes.txt") == ["x", "y"]
    sections = {}
    for config in penstock.load_run("run.vocab.yaml").feature_configs:
        _, section = config.chosen("feature")
        sections[section.feature_name] = section
    assert sections["city"].vocab_file == "run_vocab/city.txt"
    assert sections["city"].hash_bucket_size is None
    assert sections["liked_tag"].vocab_file == sections["last_tag"].vocab_file == "run_vocab/tag.txt"
    assert sections["shop"].num_buckets == 10
    assert sections["age"].default_value == "30"
    assert sections["age"].normalizer == "method=zscore,mean=30,standard_deviation=8.16497"
    assert sections["age_interval"].boundaries == [30, 40]
    assert sections["price"].normalizer == "method=minmax,min=1,max=5"
    checked = command("check", "run.vocab.yaml")
    assert checked.code == 0, checked.err


def test_the_function_gives_figures(run_folder):
    result = penstock.build_vocabularies(penstock.load_run("run.yaml"), "out", min_frequency=4)

    assert lines(run_folder / "out" / "city.txt") == ["oslo"]
    facts = result.tables["city"]
    assert (facts.num_values, facts.num_distinct, facts.num_kept, facts.num_missing) == (9, 2, 1, 3)
    assert facts.coverage == pytest.approx(6 / 9)
    age = result.numbers["age"]
    assert (age.num_values, age.num_missing, age.mean, age.min, age.max) == (9, 3, 30.0, 20.0, 40.0)
    stored = json.loads((run_folder / "out" / "statistics.json").read_text())
    assert stored["numbers"]["age"]["mean"] == 30.0
    assert stored["vocabularies"]["tag"]["features"] == ["last_tag", "liked_tag"]


REFUSED = {
    "nothing is frequent enough": (
        ("--min-frequency", "99"),
        "error: feature 'city': none of its 2 values occurs 99 times; lower --min-frequency, or leave it out\n",
    ),
    "columns are encoded": (
        ("--set", "data_config.fg_mode=FG_NONE"),
        "error: run.yaml: data_config.fg_mode: is FG_NONE: columns are encoded already, so that there is nothing ",
    ),
    "too little memory": (("--memory", "64MiB"), "error: run.yaml: memory.limit: is 64MiB; counting needs "),
}


@pytest.mark.parametrize(("words", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(run_folder, command, words, text):
    done = command("vocab", "run.yaml", *words)

    assert done.code == 1
    assert done.err.splitlines(keepends=True)[-1].startswith(text)
