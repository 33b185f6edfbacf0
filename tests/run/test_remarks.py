"""What trains without an error and is hardly meant: each trap on a small table, the line of `check`, and a twin."""

import json
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.observe import data_profile
from penstock.run.train import train
from tests.cli.desk import Desk

NUM_ROWS = 1280
RANDOM = np.random.default_rng(7)
USERS = RANDOM.integers(0, 160, NUM_ROWS)
CLICKS = RANDOM.integers(0, 2, NUM_ROWS)
PRICES = RANDOM.normal(size=NUM_ROWS)
COLUMNS: dict[str, Any] = {
    "user": USERS,
    "city": [("rome", "oslo", "bern", "kiel")[user % 4] for user in USERS],
    "price": PRICES,
    "click": CLICKS,
}
RUN_FILE = """\
train_input_path: train.parquet
eval_input_path: eval.parquet
model_dir: run
data_config: {batch_size: 64, fg_mode: FG_NORMAL, label_fields: [click]}
feature_configs:
  - id_feature: {feature_name: user, num_buckets: 160, embedding_dim: 4}
  - id_feature: {feature_name: city, hash_bucket_size: 16, embedding_dim: 4}
  - raw_feature: {feature_name: price}
model_config:
  feature_groups: [{group_name: deep, feature_names: "*"}]
  deepfm: {deep: {hidden_units: [4]}}
  losses: [{binary_cross_entropy: {}}]
train_config: {num_epochs: 1}
"""
PRICE = "{feature_name: price}"


@dataclass(frozen=True)
class Table:
    """Columns that are exchanged, and a piece of the run file with what stands there instead."""

    columns: dict[str, Any] = field(default_factory=dict)
    edit: tuple[str, str] = ("", "")
    num_rows: int = NUM_ROWS
    suffix: str = "parquet"

    def write(self, desk: Desk) -> None:
        table = pa.table({**COLUMNS, **self.columns}).slice(0, self.num_rows)
        for name in ("train", "eval"):
            pq.write_table(table, desk.folder / f"{name}.parquet")
            pyarrow.csv.write_csv(table, desk.folder / f"{name}.csv")
        assert self.edit[0] in RUN_FILE
        desk.write("run.yaml", RUN_FILE.replace(*self.edit).replace(".parquet", f".{self.suffix}"))


def price(**options: str) -> tuple[str, str]:
    return PRICE, "{feature_name: price" + "".join(
        f", {key}: {value}" for key, value in options.items()
    ) + "}"


def with_missing(values: Any, every: int, missing: Any = None) -> list[Any]:
    return [missing if index % every == 0 else value for index, value in enumerate(values)]


DAYS = [date(2023, 1, 1) + timedelta(days=int(user)) for user in USERS]
AGES = 20.0 + USERS % 60
BY_USER = np.argsort(USERS, kind="stable")
WORDS = np.array([f"word {index}" for index in range(NUM_ROWS)])
CSV = ("fg_mode: FG_NORMAL", "fg_mode: FG_NORMAL, with_header: true")
SHUFFLED = ("fg_mode: FG_NORMAL", "fg_mode: FG_NORMAL, shuffle: true")
RENAMED = (PRICE, "{feature_name: price, expression: item_id}")

TRAPS: dict[str, tuple[Table, str, Table]] = {
    "rows sorted by label": (
        Table({"click": np.sort(CLICKS)}),
        (
            "label 'click': rows are sorted by it: 0.1% of neighbours differ, 50% in random order, so that "
            "batches are of one kind; set data_config.shuffle: true"
        ),
        Table({"click": np.sort(CLICKS)}, SHUFFLED),
    ),
    "rows sorted by user": (
        Table({name: np.array(values)[BY_USER] for name, values in COLUMNS.items()}),
        (
            "column 'user': rows are sorted by it, about 8 of each value, so that a batch of 64 has about 8 "
            "values; set data_config.shuffle: true"
        ),
        Table({name: np.array(values)[BY_USER] for name, values in COLUMNS.items()}, SHUFFLED),
    ),
    "missing numbers": (
        Table(
            {"price": with_missing(AGES, 5)},
            price(normalizer='"method=zscore,mean=50,standard_deviation=20"'),
        ),
        (
            "column 'price': 20.0% of the values are missing and become 0 before they are normalised, among "
            'numbers from 20 to 79; give raw_feature \'price\' default_value: "46.33", their mean, or "0" if meant'
        ),
        Table({"price": with_missing(AGES, 5)}, price(default_value='"0"')),
    ),
    "n/a in a CSV file": (
        Table({"price": with_missing(map(str, AGES), 5, "n/a")}, CSV, suffix="csv"),
        (
            "column 'price': 20.0% of the values are missing and become 0, among numbers from 20 to 79; give "
            'raw_feature \'price\' default_value: "46.33", their mean, or "0" if meant'
        ),
        Table({"price": map(str, AGES)}, CSV, suffix="csv"),
    ),
    "missing numbers among those of an interval": (
        Table({"price": with_missing(AGES, 5)}, price(boundaries="[30, 40]", embedding_dim="4")),
        (
            "column 'price': 20.0% of the values are missing and become 0, among numbers from 20 to 79; give "
            'raw_feature \'price\' default_value: "46.33", their mean, or "0" if meant'
        ),
        Table({"price": with_missing(AGES, 5)}, price(boundaries="[1, 30, 40]", embedding_dim="4")),
    ),
    "a date as a number": (
        Table({"price": DAYS}),
        (
            "column 'price': is a time and enters as a plain number (19,358 to 19,517, days since 1970); "
            "give raw_feature 'price' boundaries or a normalizer, or make columns such as hour, weekday or age of it"
        ),
        Table({"price": DAYS}, price(boundaries="[19400, 19450]", embedding_dim="4")),
    ),
    "a constant": (
        Table({"city": ["rome"] * NUM_ROWS}),
        "column 'city': is rome in all 1,280 rows and teaches nothing; leave feature 'city' out",
        Table({"city": with_missing(["rome"] * NUM_ROWS, 5)}),
    ),
    "no value at all": (
        Table({"city": pa.nulls(NUM_ROWS, pa.string())}),
        "column 'city': has no value in any of 1,280 rows and teaches nothing; leave feature 'city' out",
        Table({"city": pa.array([*[None] * (NUM_ROWS - 2), "rome", "oslo"])}),
    ),
    "an id as a number": (
        Table({"item_id": USERS}, RENAMED),
        (
            "column 'item_id': looks like an id (160 values, 0 to 159) but enters as a number; make "
            "raw_feature 'price' an id_feature with hash_bucket_size: 512"
        ),
        Table({"bid": USERS}, (PRICE, "{feature_name: price, expression: bid}")),
    ),
    "too few buckets": (
        Table({"city": WORDS[USERS]}),
        (
            "column 'city': 160 distinct values share 16 buckets, 10.0 in each; give id_feature 'city' "
            "hash_bucket_size: 512"
        ),
        Table({"city": WORDS[USERS]}, ("hash_bucket_size: 16", "hash_bucket_size: 512")),
    ),
    "strings that stand in one row each": (
        Table({"city": WORDS}, ("hash_bucket_size: 16", "hash_bucket_size: 4096")),
        (
            "column 'city': 1,280 of 1,280 values are distinct, so that ids are learned from one row each; "
            "leave id_feature 'city' out, or split it into words by its separator"
        ),
        Table({"city": WORDS}, ("hash_bucket_size: 16", 'hash_bucket_size: 16, separator: " "')),
    ),
    "infinite numbers": (
        Table({"price": [*PRICES[:200], *[np.inf] * (NUM_ROWS - 200)]}),
        (
            "column 'price': value inf is not a finite float32; training ends at such a row, unless "
            "data_config.bad_rows is quarantine"
        ),
        Table({"price": PRICES}),
    ),
    "a word among numbers, after the first batch": (
        Table({"price": [*map(str, PRICES[:-1]), "unknown"]}),
        (
            "column 'price': value 'unknown' is not a number; leave it empty if it is missing, or make it an "
            "id_feature if it is a string; training ends at such a row, unless data_config.bad_rows is quarantine"
        ),
        Table(
            {"price": [*map(str, PRICES[:-1]), "unknown"]},
            ("fg_mode: FG_NORMAL", "fg_mode: FG_NORMAL, bad_rows: quarantine"),
        ),
    ),
    "a label that is missing, after the first batch": (
        Table({"click": [*CLICKS.tolist()[:-1], None]}),
        (
            "column 'click': is null; every row needs a label; training ends at such a row, unless "
            "data_config.bad_rows is quarantine"
        ),
        Table(),
    ),
    "labels of a binary loss that are not in the first batch": (
        Table({"click": [*CLICKS[:200], *CLICKS[200:] * 5]}),
        (
            "label 'click': is 0 to 5, and a binary loss takes 0 to 1: training ends at the first other one; "
            "say what they mean in data_config.label_map: {click: {0: 0, 5: 1}}"
        ),
        Table({"click": [*CLICKS[:200], *CLICKS[200:] * 5]}, ("binary_cross_entropy", "l2_loss")),
    ),
    "labels between 0 and 1": (
        Table({"click": (USERS % 5) / 4}),
        (
            "label 'click': has 5 values between 0 and 1, which a binary loss takes for probabilities; if "
            "they are none, use l2_loss, or write 0 and 1"
        ),
        Table({"click": CLICKS.astype(float)}),
    ),
    "one label": (
        Table({"click": np.zeros(NUM_ROWS)}),
        "label 'click': is 0 in all 1,280 rows; there is nothing to learn",
        Table(),
    ),
    "the label among the features": (
        Table({}, (PRICE, "{feature_name: price, expression: click}")),
        "feature 'price': reads 'click', which is the label: it knows the answer; leave it out",
        Table(),
    ),
    "one file for train and eval": (
        Table({}, ("eval.parquet", "train.parquet")),
        (
            "eval_input_path: train.parquet is in train_input_path too (1 of 1 file), so that metrics say "
            "nothing of new rows; name files that are not trained on (Dataset.split makes them)"
        ),
        Table(),
    ),
    "large numbers": (
        Table({"price": PRICES * 1000}),
        (
            "column 'price': -3,661 to 2,988 enter as they are and drown smaller numbers; give raw_feature "
            "'price' normalizer: \"method=zscore,mean=4.835,standard_deviation=1022\", or boundaries"
        ),
        Table({"price": PRICES * 1000}, price(normalizer='"method=zscore,mean=0,standard_deviation=1000"')),
    ),
    "fewer rows than a batch": (
        Table(num_rows=60),
        "data_config.batch_size: is 64 but there are only 60 rows: an epoch is one step; set it to 4",
        Table(num_rows=64),
    ),
}


def remarks_of(desk: Desk) -> list[str]:
    """What `check` prints, each remark in one line again; its last line counts them."""
    done = desk.penstock("check", "run.yaml")
    assert done.exit_code == 0, done.output
    found: list[str] = []
    for line in done.stdout.splitlines():
        name, text = line[:13].strip(), line[13:]
        if name == "remark":
            found.append(text)
        elif not name:
            found[-1] += f" {text}"
    count = f"{len(found)} remark{'s' * (len(found) > 1)}" if found else "all good"
    assert done.stdout.splitlines()[-1] == f"check        {count}; nothing was written"
    return found


@pytest.mark.parametrize(("table", "line", "twin"), TRAPS.values(), ids=TRAPS.keys())
def test_a_trap_and_its_twin(desk: Desk, table: Table, line: str, twin: Table):
    table.write(desk)
    assert remarks_of(desk) == [line]

    twin.write(desk)
    assert remarks_of(desk) == []


def test_train_warns_of_each_when_it_starts_and_not_when_it_goes_on(
    desk: Desk, caplog: pytest.LogCaptureFixture
):
    table, line, _ = TRAPS["a constant"]
    table.write(desk)
    run = penstock.load_run("run.yaml")

    def warnings(**options: bool) -> list[str]:
        caplog.clear()
        train(run, **options)
        return [record.getMessage() for record in caplog.records if record.name == "penstock.run.train"]

    assert warnings() == [line]
    assert json.loads((desk.folder / "run" / "data_profile.json").read_text())["remarks"] == [line]
    assert warnings(resume=True) == []
    assert warnings(new_data=True) == [line]


def test_rows_sorted_by_a_number_that_is_the_label(desk: Desk):
    Table({"click": np.sort(PRICES)}, ("binary_cross_entropy", "l2_loss")).write(desk)

    assert remarks_of(desk) == [
        "label 'click': rows are sorted by it: 100% of neighbours go one way; set data_config.shuffle: true"
    ]


def test_rows_sorted_by_words_that_are_the_label(desk: Desk):
    words = np.array(["no", "yes"])[np.sort(CLICKS)]
    Table({"click": words}, ("[click]", "[click], label_map: {click: {yes: 1, no: 0}}")).write(desk)

    assert remarks_of(desk) == [TRAPS["rows sorted by label"][1]]


def test_missing_numbers_that_become_their_mean_are_no_trap(desk: Desk):
    Table({"price": with_missing(PRICES, 5)}).write(desk)

    assert remarks_of(desk) == []


def test_many_columns_in_one_trap_are_named_together(desk: Desk):
    names = ["a", "b", "c", "d", "e"]
    features = "}\n  - raw_feature: {".join(f"feature_name: {name}" for name in names)
    Table(dict.fromkeys(names, np.ones(NUM_ROWS)), (PRICE, f"{{{features}}}")).write(desk)

    found = remarks_of(desk)

    assert found[0] == "column 'a': is 1 in all 1,280 rows and teaches nothing; leave feature 'a' out"
    assert found[3:] == ["column 'd', column 'e': the same (constant)"]


def test_a_map_that_is_the_same_in_all_rows_is_no_trap(desk: Desk):
    lookup = (
        '{feature_name: price}\n  - lookup_feature: {feature_name: size, map: "user:sizes", key: "user:city"}'
    )
    Table({"sizes": ["rome:2\x1doslo:1"] * NUM_ROWS}, (PRICE, lookup)).write(desk)

    assert remarks_of(desk) == []


def test_of_a_few_rows_nothing_is_said(desk: Desk):
    Table({"city": ["rome"] * NUM_ROWS, "price": with_missing(AGES, 2)}, num_rows=63).write(desk)
    desk.write("run.yaml", RUN_FILE.replace("batch_size: 64", "batch_size: 16"))

    assert remarks_of(desk) == []


def test_where_no_look_can_be_taken_check_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    Table().write(desk)

    def fail(*arguments: Any, **options: Any) -> None:
        raise ValueError("the disk is wet")

    monkeypatch.setattr(data_profile, "profile_pieces", fail)

    done = desk.penstock("check", "run.yaml")

    assert done.stdout.splitlines()[-3:] == [
        "look         the columns were not looked at: looking at the data failed: the",
        "             disk is wet",
        "check        all good; nothing was written",
    ]
