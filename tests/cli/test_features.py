"""penstock features: what reads what, and what becomes of the first rows."""

from datetime import datetime

import pyarrow as pa

from tests.cli.desk import Desk

MADE = """\
feature_configs:
  - expr_feature: {feature_name: hour, expression: "hour(seen)", stub_type: true}
  - expr_feature: {feature_name: night, expression: "hour < 6", variables: ["feature:hour"]}
  - combo_feature: {feature_name: pair, expression: ["user:user_id", "item:city"], vocab_list: ["1_rome"]}
  - combo_feature: {feature_name: name, expression: ["const:in", "item:city"], stub_type: true}
  - combo_feature: {feature_name: twice, expression: ["feature:name", "item:city"], vocab_list: ["in_rome_rome"]}
  - id_feature: {feature_name: tastes, weighted: true, num_buckets: 10}
  - raw_feature: {feature_name: price, default_value: "0", normalizer: "method=zscore,mean=1,standard_deviation=2"}
train_input_path: made.parquet
data_config: {fg_mode: FG_DAG, label_fields: [click]}
"""

SHOWN = """\
7 features of 5 columns, FG_DAG
  seen ─────────── hour    a number, only feeds others
  user_id ──────┐
  city ─────────┴─ pair    looked up in 1, 3 rows x 16 of pair_emb
  const:in ─────┐
  city ─────────┴─ name    strings, only feeds others
  tastes ───────── tastes  ids as given, weighted, 10 rows x 16 of tastes_emb
  price ────────── price   a number, method=zscore,mean=1,standard_deviation=2
  feature:hour ─── night   a number
  feature:name ─┐
  city ─────────┴─ twice   looked up in 1, 3 rows x 16 of twice_emb

first 2 rows of made.parquet
  feature  row  raw                            parsed
  hour     0    "2024-01-01 05:10:00"      ->  5
           1    null                       ->  0
  pair     0    user_id 1, city "rome"     ->  2
           1    user_id 2, city "lima"     ->  1
  name     0    "rome"                     ->  in_rome
           1    "lima"                     ->  in_lima
  tastes   0    {"3": 0.5, "4": 1.0}       ->  3:0.5 4:1
           1    {}                         ->  none
  price    0    0.5                        ->  -0.25
           1    1.5                        ->  0.25
  night    0    5                          ->  1
           1    0                          ->  1
  twice    0    name in_rome, city "rome"  ->  2
           1    name in_lima, city "lima"  ->  1
"""


def test_the_graph_and_the_first_rows(desk: Desk):
    columns = {"seen": [datetime(2024, 1, 1, 5, 10), *[None] * 5], "city": ["rome", "lima"] * 3}
    tastes = pa.array([{3: 0.5, 4: 1.0}, *[{}] * 5], pa.map_(pa.int64(), pa.float32()))
    desk.write_clicks("made.parquet", **columns, tastes=tastes)
    desk.write("made.yaml", MADE)

    done = desk.penstock("features", "made.yaml", "--rows", "2")

    assert done.exit_code == 0, done.stderr
    assert done.stdout == SHOWN


def test_a_bad_value_is_named_and_nothing_is_written(desk: Desk):
    desk.write_clicks(user_id=[1, 2, 300, 4, 5, 6])
    before = desk.content()

    done = desk.penstock("features", "run.yaml")

    assert done.exit_code == 1
    assert done.stderr == (
        "error: clicks.parquet: row 2: column 'user_id': value 300 is outside 0 to 99, the ids of feature 'user'\n"
    )
    assert desk.content() == before
