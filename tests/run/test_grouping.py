"""Metrics that group rows get the column of their grouping_key."""

from penstock.run.metrics import group_columns
from penstock.run.run_file import load_run
from tests.run.training_runs import trained

BY_USER = {"model_config.metrics": [{"auc": {}}, {"grouped_auc": {"grouping_key": "user"}}]}
BY_ITEM_COLUMN = {"model_config.metrics": [{"grouped_auc": {"grouping_key": "item_id"}}]}


def test_a_grouping_key_is_a_feature_or_a_column(desk):
    by_user, by_item = (load_run(desk.folder / "run.yaml", sets) for sets in (BY_USER, BY_ITEM_COLUMN))

    assert group_columns(by_user, training=False) == {"user": "user_id"}
    assert group_columns(by_item, training=False) == {"item_id": "item_id"}
    assert group_columns(by_user, training=True) == {}


def test_no_feature_is_called_unread_because_a_metric_groups_by_another(desk, caplog):
    caplog.set_level("INFO")
    group_columns(load_run(desk.folder / "run.yaml", BY_USER), training=False)

    assert not [message for message in caplog.messages if "not read" in message]


def test_rows_are_grouped_in_evaluation(desk):
    desk.write_clicks(user_id=[1, 1, 2, 2, 3, 3])

    result = trained(desk, BY_USER)

    assert result.metrics["grouped_auc"] in (0.0, 1 / 3, 2 / 3, 1.0)  # three users, one pair of rows each
