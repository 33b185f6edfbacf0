"""Models with task towers: names, losses, learning, masks and Pareto weights."""

import pytest
import torch
from torchrec.distributed.train_pipeline.tracing import Tracer

from penstock.config.errors import ConfigError
from penstock.metrics.auc import AUC
from penstock.metrics.sections import MetricConfig
from penstock.models import build_model
from penstock.models.model import TrainWrapper
from tests.models.small_data import (
    FEATURES,
    Training,
    assert_same_losses,
    load,
    multi_task,
    planted_batch,
    tower,
)

EXPERTS = {"num_expert": 3, "expert_mlp": {"hidden_units": [32]}}
TOWERS = [
    tower("click"),
    tower("logit", label="logit", loss="l2_loss", weight=0.1),
    tower("sign", loss="softmax_cross_entropy", num_class=2, sample_weight_name="importance"),
]
EVERY_MODEL = {
    "simple_multi_task": multi_task("simple_multi_task", TOWERS),
    "mmoe": multi_task("mmoe", TOWERS, **EXPERTS),
    "mmoe with gate_mlp": multi_task("mmoe", TOWERS, **EXPERTS, gate_mlp={"hidden_units": [8]}),
    "simple_multi_task with pareto weights": multi_task("simple_multi_task", TOWERS, pareto=True),
    "mmoe with pareto weights": multi_task("mmoe", TOWERS, pareto=True, **EXPERTS),
}
SLOW_TO_LEARN = ("mmoe with gate_mlp", "simple_multi_task with pareto weights")
every_model = pytest.mark.parametrize("config", EVERY_MODEL.values(), ids=EVERY_MODEL.keys())


def built(config, **options):
    torch.manual_seed(0)
    return build_model(config, FEATURES, ["clicked", "logit"], ["importance"], **options)


def multi_task_batch(num_rows, seed):
    """The planted batch with its true logits as a second label."""
    batch, logits = planted_batch(num_rows, seed)
    batch.labels["logit"] = torch.from_numpy(logits).float()
    return batch, logits


def auc(scores, batch):
    metric = AUC()
    metric.update(scores, batch.labels["clicked"])
    return metric.compute()


@every_model
def test_every_name_ends_in_its_tower(config):
    model, (batch, _) = built(config), multi_task_batch(7, seed=0)
    predictions = model.predict(batch)

    assert tuple(predictions) == model.prediction_names == (
        "logits_click", "probs_click", "y_logit", "logits_sign", "probs_sign", "probs1_sign",
    )  # fmt: skip
    assert list(model.loss(predictions, batch)) == [
        "binary_cross_entropy_click", "l2_loss_logit", "softmax_cross_entropy_sign",
    ]  # fmt: skip
    assert model.loss_weights(batch)["softmax_cross_entropy_sign"] == pytest.approx(
        batch.sample_weights["importance"].sum().item()
    )


LEARNING = [
    # Gates with layers and weights from Pareto on towers alone are slow to learn what the others show as well.
    pytest.param(config, id=name, marks=pytest.mark.slow if name in SLOW_TO_LEARN else ())
    for name, config in EVERY_MODEL.items()
]


@pytest.mark.parametrize("config", LEARNING)
def test_every_task_learns_almost_as_well_as_can_be(one_process, config):
    """Weights from Pareto leave more to the task of the smallest gradient, and the others are slower."""
    to_reach = 0.83 if config.simple_multi_task and config.use_pareto_loss_weight else 0.86
    model = built(config, table_device="meta")
    training = Training.start(model, sparse_lr=0.2)
    num_steps = 150 if config.mmoe else 200
    for step in range(num_steps):
        training.step(multi_task_batch(1024, seed=step % 40)[0])
    test, true_logits = multi_task_batch(8192, seed=1000)
    model.eval()
    with torch.no_grad():
        predictions = model.predict(test)

    assert auc(torch.sigmoid(torch.from_numpy(true_logits)), test) == pytest.approx(0.888, abs=0.001)
    assert auc(predictions["probs_click"], test) > to_reach
    assert auc(predictions["probs1_sign"], test) > to_reach
    assert (predictions["y_logit"] - test.labels["logit"]).square().mean() < 0.1 * test.labels["logit"].var()


@every_model
def test_the_gradient_reaches_every_parameter(config):
    model, (batch, _) = built(config), multi_task_batch(256, seed=0)
    TrainWrapper(model)(batch)[0].backward()

    assert [name for name, parameter in model.named_parameters() if not parameter.grad.abs().sum() > 0] == []


@every_model
def test_sharded_and_unsharded_agree_on_the_first_steps(one_process, config):
    plain = built(config)
    whole = {name: value.clone() for name, value in plain.state_dict().items()}
    training = Training.start(
        built(config, table_device="meta"), sparse_lr=0.1, dense_lr=0.1, sparse_name="sgd_optimizer"
    )
    load(training.module.module.model, whole)

    assert_same_losses(plain, training, multi_task_batch(256, seed=0)[0])


def test_looking_for_weights_does_not_move_the_tables(one_process):
    model = built(EVERY_MODEL["mmoe with pareto weights"], table_device="meta")
    training = Training.start(model)
    batch, _ = multi_task_batch(64, seed=0)
    first, second = (training.module(batch)[0].item() for _ in range(2))

    assert first == second


def test_pareto_weights_sum_to_one_and_keep_their_minimum():
    towers = [tower("click"), tower("logit", label="logit", loss="l2_loss", pareto_min_loss_weight=0.9)]
    model, (batch, _) = (
        built(multi_task("simple_multi_task", towers, pareto=True)),
        multi_task_batch(64, seed=0),
    )
    total, (losses, _, _) = TrainWrapper(model)(batch)
    click, logit = losses.values()
    weight_of_logit = ((total - click) / (logit - click)).item()

    assert 0.9 - 1e-5 <= weight_of_logit <= 1.0 + 1e-5


def test_masked_classes_are_never_predicted():
    masked = tower("sign", loss="softmax_cross_entropy", num_class=2, mask_name="allowed")
    model, (batch, _) = built(multi_task("simple_multi_task", [masked])), multi_task_batch(4, seed=0)
    batch.additional_infos["allowed"] = torch.tensor([[1, 1], [0, 1], [1, 0], [1, 1]], dtype=torch.int8)

    assert model.predict(batch)["probs1_sign"][1:3].tolist() == [1.0, 0.0]


@every_model
def test_a_pipeline_can_trace_it(config):
    graph = Tracer(leaf_modules=["model.embedding_group.tables"]).trace(TrainWrapper(built(config)))

    assert "model.embedding_group.tables" in [node.target for node in graph.nodes if node.op == "call_module"]


def test_what_cannot_be_built_is_named():
    with pytest.raises(
        ConfigError, match=r"model_config.mmoe.task_towers: is empty; a model needs a task to learn"
    ):
        built(multi_task("mmoe", [], **EXPERTS))
    with pytest.raises(ConfigError, match=r"task_towers\[1\].losses: is empty"):
        built(multi_task("mmoe", [tower("a"), tower("b", losses=[])], **EXPERTS))
    with pytest.raises(ConfigError, match=r"task_towers\[0\].tower_name: has a dot"):
        built(multi_task("mmoe", [tower("a.b")], **EXPERTS))
    two_groups = multi_task("mmoe", [tower("a")], **EXPERTS)
    two_groups.feature_groups.append(two_groups.feature_groups[0])
    with pytest.raises(
        ConfigError, match=r"feature_groups: has 2 groups; the tasks of this model stand on one"
    ):
        built(two_groups)


def test_a_tower_may_have_any_name_and_gives_it_to_its_parameters():
    model = built(multi_task("simple_multi_task", [tower("keys"), tower("type")]))
    of_towers = [name for name, _ in model.named_parameters() if name.startswith("towers.")]

    assert {name.split(".")[1] for name in of_towers} == {"keys_tower", "type_tower"}


def test_what_belongs_to_towers_is_refused_beside_them():
    config = multi_task("mmoe", [tower("a")], **EXPERTS)
    config.metrics.append(MetricConfig.model_validate({"auc": {}}))
    with pytest.raises(
        ConfigError, match=r"model_config.metrics: .* move it into model_config.mmoe.task_towers"
    ):
        built(config)
