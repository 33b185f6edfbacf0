"""A starting run file from data: what each column becomes, which rows are held out, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock

NUM_ROWS = 2000


def columns(**more):
    """A label, a number that says something about it, and more."""
    random = np.random.default_rng(0)
    number = random.normal(size=NUM_ROWS)
    label = (random.random(NUM_ROWS) < 1 / (1 + np.exp(-number))).astype(np.int64)
    return {"label": label, "number": number.round(3), **more}


def written(folder, table, name="data.parquet", **options):
    pq.write_table(pa.table(table), folder / name)
    return penstock.init(folder / name, folder / "run.yaml", **options)


def features(result):
    """By name: the kind of each feature and its options."""
    run = penstock.load_run(result.path)
    chosen = [config.chosen("feature") for config in run.feature_configs]
    return {section.feature_name: (kind, section) for kind, section in chosen}


RANDOM = np.random.default_rng(1)
DAYS = np.datetime64("2023-01-01") + RANDOM.integers(0, 900, NUM_ROWS)
COLUMNS = {
    "an id": ("user_id", RANDOM.integers(0, 300, NUM_ROWS), "id"),
    "a word": ("size", RANDOM.choice(["small", "large"], NUM_ROWS), "id"),
    "a code": ("zip", RANDOM.integers(1000, 1300, NUM_ROWS), "id"),
    "a number": ("weight", RANDOM.normal(size=NUM_ROWS), "number"),
    "a bool": ("new", RANDOM.random(NUM_ROWS) < 0.5, "number"),
    "strings that are numbers": ("grade", [f"{n}.5" for n in range(10)] * 200, "number"),
    "a moment": ("at", DAYS.astype("datetime64[s]") + RANDOM.integers(0, 86400, NUM_ROWS), "time"),
    "a day": ("born", DAYS, "time"),
    "a day as a string": ("born", DAYS.astype(str).tolist(), "time"),
    "seconds": ("timestamp", 1_700_000_000 + RANDOM.integers(0, 10**6, NUM_ROWS), "time"),
    "a list": ("tags", [["a", "b"], ["b"], []] * 666 + [["a"], ["c"]], "values"),
    "joined strings": ("tags", ["a|b", "b", "c|a", "b|c", "a|b|c", "b|a", "c|b", "a|c"] * 250, "values"),
    "a vector": ("image", pa.array([[0.5, 1.5]] * 1999 + [[1.0, 2.0]]), "vector"),
    "nothing but NaN": ("empty", [float("nan")] * NUM_ROWS, "left out"),
    "a constant": ("source", ["web"] * NUM_ROWS, "left out"),
    "a key of rows": ("row_id", np.arange(NUM_ROWS), "left out"),
    "free text": ("note", [f"note {n} of a kind" for n in range(NUM_ROWS)], "left out"),
    "the label again": ("score", columns()["label"] * 2 + 1, "left out"),
    "another outcome": ("is_bought", RANDOM.integers(0, 2, NUM_ROWS), "left out"),
}


@pytest.mark.parametrize(("name", "values", "role"), COLUMNS.values(), ids=COLUMNS.keys())
def test_the_role_of_a_column(tmp_path, name, values, role):
    result = written(tmp_path, columns(**{name: values}))

    [found] = [each for each in result.roles if each.name == name]
    assert found.role == role, found
    made = {feature.removesuffix("_").split("_")[0] for feature in features(result)}
    assert (name.split("_")[0] in made) == (role != "left out")


def test_numbers_are_cut_and_scaled_and_gaps_have_an_interval(tmp_path):
    price = np.where(RANDOM.random(NUM_ROWS) < 0.2, np.nan, RANDOM.lognormal(0, 2, NUM_ROWS))
    result = written(tmp_path, columns(price=pa.array(price, from_pandas=True)))

    made = features(result)
    assert len(made["price_interval"][1].boundaries) == 39
    assert made["price_interval"][1].missing_bucket
    assert made["price"][1].normalizer.startswith("method=expression,expr=(log(x + 1) - ")
    assert made["number"][1].normalizer.startswith("method=zscore,mean=")
    assert not made["number_interval"][1].missing_bucket


def test_a_moment_is_its_hour_and_weekday_and_a_day_its_month_and_year(tmp_path):
    moment = DAYS.astype("datetime64[s]")
    moment[0] += 3600
    result = written(tmp_path, columns(at=moment, born=DAYS))

    made = features(result)
    assert {name for name in made if name.startswith("at_")} == {"at_hour", "at_weekday"}
    assert {name for name in made if name.startswith("born_")} == {"born_weekday", "born_month", "born_year"}
    assert made["born_year"][1].boundaries == [2024, 2025]
    assert made["at_hour"][1].expression == "hour(at)"


def test_a_tenth_of_the_rows_is_held_out_where_nothing_stands_beside_them(tmp_path):
    result = written(tmp_path, columns())

    run = penstock.load_run(result.path)
    train, held_out = pq.read_table(run.train_input_path), pq.read_table(run.eval_input_path)
    assert train.num_rows + held_out.num_rows == NUM_ROWS
    assert 150 < held_out.num_rows < 250


def test_parts_in_one_folder_are_found_by_their_names(tmp_path):
    for name in ("train", "valid", "test"):
        pq.write_table(pa.table(columns()), tmp_path / f"{name}.parquet")

    for given in (tmp_path, tmp_path / "train.parquet"):
        parts = penstock.init(given, tmp_path / "run.yaml", overwrite=True).parts
        assert (parts.train, parts.evaluation, parts.test) == tuple(
            str(tmp_path / f"{name}.parquet") for name in ("train", "valid", "test")
        )


def test_of_many_files_the_last_are_held_out(tmp_path):
    (tmp_path / "data").mkdir()
    for index in range(20):
        pq.write_table(pa.table(columns()), tmp_path / "data" / f"part-{index:02d}.parquet")

    parts = penstock.init(tmp_path / "data", tmp_path / "run.yaml").parts

    assert parts.why == "the last 2 of 20 files"
    assert parts.evaluation.endswith("part-19.parquet")
    assert len(parts.train.split(",")) == 18


def test_codes_of_csv_files_keep_their_zeros(tmp_path):
    rows = "".join(f"{index % 2},{index % 7:03d}\n" for index in range(200))
    (tmp_path / "data.csv").write_text(f"label,shelf\n{rows}")

    result = penstock.init(tmp_path / "data.csv", tmp_path / "run.yaml")

    assert features(result)["shelf"][0] == "id_feature"
    assert pq.read_table(result.parts.train)["shelf"][0].as_py().startswith("00")


LABELS = {
    "words": (["no", "yes"] * 1000, {"y": {"no": 0.0, "yes": 1.0}}, "binary_cross_entropy"),
    "other numbers": ([1, 2] * 1000, {"y": {"1": 0.0, "2": 1.0}}, "binary_cross_entropy"),
    "many numbers": (np.arange(NUM_ROWS) / 7, {}, "l2_loss"),
}


@pytest.mark.parametrize(("values", "meanings", "loss"), LABELS.values(), ids=LABELS.keys())
def test_labels(tmp_path, values, meanings, loss):
    result = written(tmp_path, columns(y=values), label="y")

    run = penstock.load_run(result.path)
    assert run.data_config.label_map == meanings
    assert run.model.losses[0].chosen("loss")[0] == loss


REFUSED = {
    "no such label": (
        columns(),
        {"label": "lable"},
        "--label: there is no column 'lable'; did you mean 'label'?",
    ),
    "no label": (
        {"a": [1, 2, 3], "b": [1.5, 2.5, 3.5]},
        {},
        "no column looks like a label of 0 and 1; give --label NAME, one of a, b",
    ),
    "three words": (
        {"a": [1, 2, 3], "y": ["x", "y", "z"]},
        {"label": "y"},
        "--label: 'y' has 3 words; init writes files for two, or for numbers",
    ),
    "gaps in the label": (
        {"a": [1, 2, 3], "y": [0, 1, None]},
        {"label": "y"},
        "--label: 'y' is missing in 1 rows; every row needs a label",
    ),
    "no such template": (
        columns(),
        {"template": "deepfn"},
        "--template: there is no 'deepfn'; did you mean 'deepfm'?",
    ),
}


@pytest.mark.parametrize(("table", "options", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(tmp_path, table, options, text):
    with pytest.raises(penstock.ConfigError) as caught:
        written(tmp_path, table, **options)

    assert str(caught.value) == text


def test_a_file_is_not_replaced(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, columns())

    done = command("init", "data.parquet")

    assert (done.code, done.err) == (
        1,
        "error: run.yaml is there already; give another --out, or --overwrite\n",
    )


@pytest.mark.parametrize("template", ["deepfm", "wide_and_deep"])
def test_what_is_written_passes_check_without_a_remark(tmp_path, command, monkeypatch, template):
    monkeypatch.chdir(tmp_path)
    more = {name: values for name, values, _ in COLUMNS.values()}
    pq.write_table(pa.table(columns(**more)), "data.parquet")

    assert command("init", "data.parquet", "--template", template).code == 0
    done = command("check", "run.yaml")

    assert done.code == 0, done.err
    assert done.out.splitlines()[-1].split(maxsplit=1) == ["check", "all good; nothing was written"]
