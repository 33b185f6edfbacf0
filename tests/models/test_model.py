"""What every model offers, and how it is built from a run file."""

import pytest

from penstock.config.errors import ConfigError, PenstockError
from penstock.models import build_model
from penstock.models.model import TrainWrapper
from tests.models.small_data import FEATURES, built, model_config, multi_task, planted_batch, tower


def test_the_train_wrapper_gives_the_total_and_detached_parts():
    batch, _ = planted_batch(5, seed=0)
    total, (losses, predictions, same_batch) = TrainWrapper(built(weights=["importance"]))(batch)

    assert total.requires_grad
    assert total.item() == losses["binary_cross_entropy"].item()
    assert not any(tensor.requires_grad for tensor in (*losses.values(), *predictions.values()))
    assert same_batch is batch


REFUSED = {
    "model_config.dlrm: not available yet; "
    "available: deepfm, mmoe, multi_tower, multi_tower_din, simple_multi_task, wide_and_deep": {
        "deepfm": None,
        "dlrm": {"final": {}},
    },
    "model_config.use_pareto_loss_weight: weighs tasks; this model has only one": {
        "use_pareto_loss_weight": True
    },
    "model_config.deepfm.wide_embedding_dim: is 4; each of the 5 classes needs a column of its own": {
        "num_class": 5,
        "losses": [{"softmax_cross_entropy": {}}],
    },
    "model_config.deepfm.wide_init_fn: 'ones' is not an initialiser; did you mean 'ones_'?": {
        "deepfm": {"deep": {}, "wide_init_fn": "ones"}
    },
}


@pytest.mark.parametrize("problem", REFUSED)
def test_what_cannot_be_built_is_named(problem):
    with pytest.raises(ConfigError) as caught:
        build_model(model_config(**REFUSED[problem]), FEATURES, ["clicked"])

    assert str(caught.value) == problem


def test_a_model_without_metrics_says_where_they_come_from():
    with pytest.raises(
        PenstockError, match=r"this model has no metrics; build it with penstock.build_model\(run\)"
    ):
        built().compute_metric()


def test_a_model_needs_a_label():
    with pytest.raises(ConfigError, match=r"data_config.label_fields: is empty"):
        build_model(model_config(), FEATURES, [])


def test_the_binary_labels_are_the_first_of_a_model_and_those_of_towers():
    assert model_config().label_columns(["click", "buy"])[0] == ("click",)
    assert model_config(losses=[{"l2_loss": {}}]).label_columns(["click", "buy"])[0] == ()
    assert model_config().label_columns([])[0] == ()
    towers = [tower("a", "click", "binary_focal_loss"), tower("b", "stars", "l2_loss")]
    assert multi_task("simple_multi_task", towers).label_columns(["stars", "click"])[0] == ("click",)
