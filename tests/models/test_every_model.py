"""What every model promises: it learns, by all of its parameters, sharded or not, and a pipeline can trace it."""

import pytest
import torch
from torchrec.distributed.train_pipeline.tracing import Tracer

from penstock.config.errors import ConfigError
from penstock.metrics.auc import AUC
from penstock.metrics.sections import MetricConfig
from penstock.models.model import TrainWrapper
from tests.models.small_data import (
    DEEP_GROUP,
    Training,
    assert_same_losses,
    built,
    load,
    model_config,
    multi_task,
    planted_batch,
    tower,
)

FM_GROUP = {"group_name": "fm", "feature_names": ["user", "item"], "group_type": "DEEP"}
WIDE_GROUP = {"group_name": "wide", "feature_names": ["user", "item", "age"], "group_type": "WIDE"}
MLP, FINAL = {"hidden_units": [32, 16]}, {"hidden_units": [16]}
TWO_CLASSES = {"num_class": 2, "losses": [{"softmax_cross_entropy": {}}]}
EXPERTS = {"num_expert": 3, "expert_mlp": {"hidden_units": [32]}}
TOWERS = [
    tower("click"),
    tower("logit", label="logit", loss="l2_loss", weight=0.1),
    tower("sign", loss="softmax_cross_entropy", num_class=2, sample_weight_name="importance"),
]
HISTORY = {"feature_names": ["item", "past"]}
ENCODED = {
    "sequence_groups": [HISTORY],
    "sequence_encoders": [
        {"din_encoder": {"attn_mlp": {"hidden_units": [8]}}},
        {"simple_attention": {}},
        {"pooling_encoder": {}},
        {"multi_window_din_encoder": {"attn_mlp": {"hidden_units": [8]}, "windows_len": [1, 2]}},
        {"self_attention_encoder": {"multihead_attn_dim": 8, "num_heads": 2}},
    ],
}
ONE_TASK = {
    "deepfm": {"deepfm": {"deep": MLP}},
    "deepfm with final": {"deepfm": {"deep": MLP, "final": FINAL}},
    "deepfm with its own fm group": {
        "deepfm": {"deep": MLP},
        "feature_groups": [FM_GROUP, WIDE_GROUP, DEEP_GROUP],
    },
    "deepfm without wide": {"deepfm": {"deep": MLP}, "feature_groups": [DEEP_GROUP]},
    "deepfm with two classes": {"deepfm": {"deep": MLP}, **TWO_CLASSES},
    "wide_and_deep": {"deepfm": None, "wide_and_deep": {"deep": MLP}},
    "wide_and_deep with final": {
        "deepfm": None,
        "wide_and_deep": {"deep": MLP, "final": FINAL},
        "feature_groups": [WIDE_GROUP, DEEP_GROUP],
    },
    "wide_and_deep with two classes": {"deepfm": None, "wide_and_deep": {"deep": MLP}, **TWO_CLASSES},
    "deepfm with encoders of a history": {
        "deepfm": {"deep": MLP},
        "feature_groups": [WIDE_GROUP, {**DEEP_GROUP, **ENCODED}],
    },
    "multi_tower": {
        "deepfm": None,
        "multi_tower": {"towers": [{"input": "deep", "mlp": MLP}], "final": FINAL},
        "feature_groups": [DEEP_GROUP],
    },
    "multi_tower_din": {
        "deepfm": None,
        "multi_tower_din": {
            "towers": [{"input": "deep", "mlp": MLP}],
            "din_towers": [{"input": "past", "attn_mlp": {"hidden_units": [8]}}],
            "final": FINAL,
        },
        "feature_groups": [DEEP_GROUP, {"group_name": "past", "group_type": "SEQUENCE", **HISTORY}],
    },
}
SEVERAL_TASKS = {
    "simple_multi_task": multi_task("simple_multi_task", TOWERS),
    "mmoe": multi_task("mmoe", TOWERS, **EXPERTS),
    "mmoe with gate_mlp": multi_task("mmoe", TOWERS, **EXPERTS, gate_mlp={"hidden_units": [8]}),
    "simple_multi_task with pareto weights": multi_task("simple_multi_task", TOWERS, pareto=True),
    "mmoe with pareto weights": multi_task("mmoe", TOWERS, pareto=True, **EXPERTS),
}
EVERY_MODEL = {name: model_config(**changes) for name, changes in ONE_TASK.items()} | SEVERAL_TASKS
SLOW_TO_LEARN = ("mmoe with gate_mlp", "simple_multi_task with pareto weights")
every_model = pytest.mark.parametrize("config", EVERY_MODEL.values(), ids=EVERY_MODEL.keys())


def auc(scores, batch):
    metric = AUC()
    metric.update(scores, batch.labels["clicked"])
    return metric.compute()


LEARNING = [
    # Gates with layers and weights from Pareto on towers alone are slow to learn what the others show as well.
    pytest.param(config, id=name, marks=pytest.mark.slow if name in SLOW_TO_LEARN else ())
    for name, config in EVERY_MODEL.items()
]


@pytest.mark.parametrize("config", LEARNING)
def test_every_task_learns_almost_as_well_as_can_be(one_process, config):
    """Weights from Pareto leave more to the task of the smallest gradient, and the others are slower."""
    model = built(config, weights=["importance"] if config.task_towers else (), table_device="meta")
    training = Training.start(model, sparse_lr=0.2)
    # The products of a factorization machine find this signal at once; layers alone need longer.
    for step in range(80 if config.deepfm else 150 if config.mmoe else 200):
        training.step(planted_batch(1024, seed=step % 40)[0])
    test, true_logits = planted_batch(8192, seed=1000)
    model.eval()
    with torch.no_grad():
        predictions = model.predict(test)

    assert auc(torch.sigmoid(torch.from_numpy(true_logits)), test) == pytest.approx(0.888, abs=0.001)
    is_slow = config.simple_multi_task and config.use_pareto_loss_weight
    to_reach = 0.87 if not config.task_towers else 0.83 if is_slow else 0.86
    of_one_task = ["probs1" if config.num_class == 2 else "probs"]
    for name in ["probs_click", "probs1_sign"] if config.task_towers else of_one_task:
        assert auc(predictions[name], test) > to_reach
    if config.task_towers:
        errors = (predictions["y_logit"] - test.labels["logit"]).square()
        assert errors.mean() < 0.1 * test.labels["logit"].var()


@every_model
def test_the_gradient_reaches_every_parameter(config):
    model, (batch, _) = built(config), planted_batch(256, seed=0)
    TrainWrapper(model)(batch)[0].backward()

    assert [name for name, parameter in model.named_parameters() if not parameter.grad.abs().sum() > 0] == []


@every_model
def test_sharded_and_unsharded_agree_on_the_first_steps(one_process, config):
    plain = built(config)
    whole = {name: value.clone() for name, value in plain.state_dict().items()}
    sharded = built(config, table_device="meta")
    training = Training.start(sharded, sparse_lr=0.1, dense_lr=0.1, sparse_name="sgd_optimizer")
    load(training.module.module.model, whole)

    assert_same_losses(plain, training, planted_batch(256, seed=0)[0])


@every_model
def test_a_pipeline_can_trace_it(config):
    leaves = [f"model.embedding_group.{name}" for name in ("tables", "step_tables.dim8")]
    graph = Tracer(leaf_modules=leaves).trace(TrainWrapper(built(config)))

    assert "model.embedding_group.tables" in [node.target for node in graph.nodes if node.op == "call_module"]


@pytest.mark.parametrize("config", SEVERAL_TASKS.values(), ids=SEVERAL_TASKS.keys())
def test_every_name_ends_in_its_tower(config):
    model, (batch, _) = built(config), planted_batch(7, seed=0)
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


def test_looking_for_weights_does_not_move_the_tables(one_process):
    training = Training.start(built(EVERY_MODEL["mmoe with pareto weights"], table_device="meta"))
    batch, _ = planted_batch(64, seed=0)
    first, second = (training.module(batch)[0].item() for _ in range(2))

    assert first == second


def test_pareto_weights_sum_to_one_and_keep_their_minimum():
    towers = [tower("click"), tower("logit", label="logit", loss="l2_loss", pareto_min_loss_weight=0.9)]
    model = built(multi_task("simple_multi_task", towers, pareto=True))
    total, (losses, _, _) = TrainWrapper(model)(planted_batch(64, seed=0)[0])
    click, logit = losses.values()

    assert 0.9 - 1e-5 <= ((total - click) / (logit - click)).item() <= 1.0 + 1e-5


def test_a_tower_may_have_any_name_and_gives_it_to_its_parameters():
    model = built(multi_task("simple_multi_task", [tower("keys"), tower("type")]))
    of_towers = [name for name, _ in model.named_parameters() if name.startswith("towers.")]

    assert {name.split(".")[1] for name in of_towers} == {"keys_tower", "type_tower"}


HALF = {"pareto_min_loss_weight": 0.5}


@pytest.mark.parametrize(
    ("towers", "changes", "problem"),
    [
        ([], {}, r"mmoe.task_towers: is empty; a model needs a task to learn"),
        ([tower("a"), tower("b", losses=[])], {}, r"mmoe.task_towers\[1\].losses: is empty"),
        ([tower("a.b")], {}, r"mmoe.task_towers\[0\].tower_name: has a dot"),
        (
            [tower("a")],
            {"feature_groups": [DEEP_GROUP] * 2},
            "feature_groups: has 2 groups; the tasks of this",
        ),
        ([tower("a")], {"metrics": [MetricConfig(auc={})]}, "move it into model_config.mmoe.task_towers"),
        (
            [tower("a", **HALF), tower("b", **HALF)],
            {},
            "pareto_min_loss_weight adds up to 1; it must stay below 1",
        ),
    ],
)
def test_towers_that_cannot_be_built_are_named(towers, changes, problem):
    config = multi_task("mmoe", towers, pareto=True, **EXPERTS).model_copy(update=changes)
    with pytest.raises(ConfigError, match=problem):
        built(config)
