"""What the parser of a run reads beside features and labels."""

import yaml

import penstock
from penstock.features.task_columns import SideColumns
from penstock.run.build import build_parser
from tests.cli.desk import RUN_FILE


def run_with(**model):
    run = yaml.safe_load(RUN_FILE)
    run["model_config"] = {**run["model_config"], **model}
    return penstock.RunConfig.model_validate(run)


def test_a_session_is_the_column_of_a_feature_or_the_column_of_this_name():
    feature = run_with(num_class=2, losses=[{"jrc_loss": {"session_name": "user"}}])
    other = run_with(num_class=2, losses=[{"jrc_loss": {"session_name": "visit_id"}}])

    assert build_parser(feature).side == SideColumns(sessions={"user": "user_id"})
    assert build_parser(other).side == SideColumns(sessions={"visit_id": "visit_id"})
    assert build_parser(other, with_labels=False).side == SideColumns()


def test_masks_are_read_for_prediction_too():
    head = {"tower_name": "move", "label_name": "click", "num_class": 3, "mask_name": "allowed"}
    losses = [{"softmax_cross_entropy": {}}]
    run = run_with(
        deepfm=None,
        losses=[],
        metrics=[],
        feature_groups=[{"group_name": "all", "feature_names": ["user"]}],
        simple_multi_task={"task_towers": [{**head, "losses": losses}]},
    )

    parser = build_parser(run, with_labels=False)

    assert parser.side == SideColumns(masks={"allowed": 3})
    assert parser.columns == ("user_id", "allowed")
