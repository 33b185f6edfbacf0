"""The look that a run takes at its data: what it finds, when it is taken, and that no run fails for it."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.config.sizes import MIB
from penstock.observe import data_profile
from penstock.run.run_config import load_run
from penstock.run.session import computing
from penstock.run.training import plan_training, profile_training_data
from tests.cli.desk import Desk
from tests.run.training_runs import trained


def profile_of(desk: Desk, process_bytes: int | None = None, **sets: Any) -> dict[str, Any]:
    run = load_run(desk.folder / "run.yaml", sets)
    with computing(run) as session:
        plan = plan_training(run, session)
        return profile_training_data(
            run, plan, session.monitor.sample() if process_bytes is None else process_bytes
        ).record


def written(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((desk.folder / "run" / "data_profile.json").read_text())
    return found


def test_each_column_with_its_use_labels_first(desk: Desk) -> None:
    trained(desk)

    profile = written(desk)
    assert (profile["rows"], profile["rows_looked_at"], profile["columns_used"]) == (6, 6, 4)
    assert {column["column"]: column["used_for"] for column in profile["columns"]} == {
        "click": ["label"],
        "user_id": ["id_feature user"],
        "item_id": ["id_feature item"],
        "price": ["raw_feature price"],
    }
    price = profile["columns"][3]
    assert (price["type"], price["min"], price["max"], price["mean"]) == ("double", 0.5, 4.5, 2.5)
    assert price["null_part"] == pytest.approx(1 / 6)
    assert (price["distinct"], price["distinct_is"]) == (5, "exactly")
    assert profile["columns"][0]["column"] == "click"


def test_a_run_that_goes_on_keeps_its_profile_and_new_data_make_a_new_one(desk: Desk) -> None:
    trained(desk)
    (desk.folder / "run" / "data_profile.json").write_text("{}")

    trained(desk, {"train_config.num_epochs": 2}, resume=True)
    assert written(desk) == {}

    desk.write_clicks(price=[1.0] * 6)
    trained(desk, new_data=True)
    assert written(desk)["columns"][3]["distinct"] == 1


def test_a_look_ends_early_at_so_many_columns_and_cuts_long_values(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write_run(('item_id", num_buckets: 100', 'item_id", hash_bucket_size: 100'))
    for name in ("a", "b", "c"):
        desk.write_clicks(f"{name}.parquet", item_id=["a" * 10_000] * 6)
    monkeypatch.setattr(data_profile, "MAX_SECONDS", -1.0)
    monkeypatch.setattr(data_profile, "MAX_COLUMNS", 3)

    profile = profile_of(desk, train_input_path=str(desk.folder / "[abc].parquet"))

    assert (profile["rows"], profile["rows_looked_at"], profile["columns_used"]) == (18, 6, 4)
    assert [column["column"] for column in profile["columns"]] == ["click", "user_id", "item_id"]
    assert profile["columns"][0]["distinct_is"] == "at least"
    assert profile["columns"][2]["most_frequent"] == "a" * 99 + "…"


def test_without_room_below_the_limit_the_profile_says_so(desk: Desk) -> None:
    profile = profile_of(desk, process_bytes=8192 * MIB - 1 * MIB)

    assert profile["problem"].startswith("reading them needs ")
    assert profile["problem"].endswith("but beside the process only 1MiB of memory.limit are free")


def test_a_run_never_fails_for_its_profile_and_debug_shows_why(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*words: object, **more: object) -> None:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(data_profile, "profile_pieces", fail)

    result = trained(desk)

    assert written(desk)["problem"] == "looking at the data failed: the disk is gone"
    assert result.report is not None
    page = result.report.read_text()
    assert "There is no data profile: looking at the data failed: the disk is gone." in page
    done = desk.penstock("--debug", "train", "run.yaml", "--model_dir", "other")
    assert "the data were not profiled\nTraceback" in done.stderr


def test_bad_rows_are_written_aside_by_training_alone(desk: Desk, tmp_path: Path) -> None:
    lines = ["user_id,item_id,price,click", "1,9,0.5,0", "2,8,cheap,1", "3,7,1.5,0", "4,6,2.5,1"]
    desk.write("clicks.csv", "\n".join(lines) + "\n")
    sets = {
        "train_input_path": "clicks.csv",
        "data_config.with_header": True,
        "data_config.bad_rows": "quarantine",
        "data_config.input_fields": [{"input_name": "price", "input_type": "DOUBLE"}],
    }
    run = load_run(desk.folder / "run.yaml", sets)
    with computing(run) as session:
        plan = plan_training(run, session, run_folder=tmp_path / "run")
        profile = profile_training_data(run, plan, session.monitor.sample()).record

    assert profile["columns"][3]["null_part"] == 0.25
    assert plan.source.quarantine is not None
    assert len(plan.source.quarantine) == 0
    assert not list(tmp_path.rglob("bad_rows.jsonl"))
