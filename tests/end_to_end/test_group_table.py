"""A run with grouped_auc has the AUC of its largest groups in its records and in its report."""

import json
from typing import Any

import pyarrow.dataset as ds

from tests.end_to_end.conftest import SMALL_RUN, Workplace, write_run


def test_the_report_shows_the_auc_of_the_largest_groups(workplace: Workplace) -> None:
    model: Any = SMALL_RUN["model_config"]
    metrics = [{"auc": {}}, {"grouped_auc": {"grouping_key": "category"}}]
    write_run(workplace.run_file, workplace.data, model_config={**model, "metrics": metrics})

    done = workplace.penstock("train", "run.yaml", "--set", "train_config.num_epochs=1")

    assert done.code == 0, done.err
    run = workplace.folder / "run"
    groups = json.loads((run / "eval_result.jsonl").read_text().splitlines()[-1])["group_auc"]
    counts = ds.dataset(workplace.data / "test").to_table(["category"])["category"].value_counts().to_pylist()
    expected = {str(count["values"] or "null"): count["counts"] for count in counts}
    assert {group["group"]: group["rows"] for group in groups}.items() <= expected.items()
    assert groups[0]["rows"] == max(expected.values())
    page = (run / "report.html").read_text("utf-8")
    for group in groups:
        assert f"{group['auc']:.4f}" in page
