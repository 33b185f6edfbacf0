"""Every model learns a planted signal, and its gradient reaches all of its parameters."""

import pytest
import torch

from penstock.metrics.auc import AUC
from tests.models.small_data import (
    DEEP_GROUP,
    Training,
    assert_same_losses,
    built,
    load,
    model_config,
    planted_batch,
)

FM_GROUP = {"group_name": "fm", "feature_names": ["user", "item"], "group_type": "DEEP"}
WIDE_GROUP = {"group_name": "wide", "feature_names": ["user", "item", "age"], "group_type": "WIDE"}
MLP = {"hidden_units": [32, 16]}
FINAL = {"hidden_units": [16]}

TWO_CLASSES = {"num_class": 2, "losses": [{"softmax_cross_entropy": {}}]}

EVERY_MODEL = {
    "deepfm": {"deepfm": {"deep": MLP}},
    "deepfm with final": {"deepfm": {"deep": MLP, "final": FINAL}},
    "deepfm with its own fm group": {
        "deepfm": {"deep": MLP},
        "feature_groups": [FM_GROUP, WIDE_GROUP, DEEP_GROUP],
    },
    "deepfm without wide": {"deepfm": {"deep": MLP}, "feature_groups": [DEEP_GROUP]},
    "wide_and_deep": {"deepfm": None, "wide_and_deep": {"deep": MLP}},
    "wide_and_deep with final": {
        "deepfm": None,
        "wide_and_deep": {"deep": MLP, "final": FINAL},
        "feature_groups": [WIDE_GROUP, DEEP_GROUP],
    },
    "deepfm with two classes": {"deepfm": {"deep": MLP}, **TWO_CLASSES},
    "wide_and_deep with two classes": {"deepfm": None, "wide_and_deep": {"deep": MLP}, **TWO_CLASSES},
}
every_model = pytest.mark.parametrize("changes", EVERY_MODEL.values(), ids=EVERY_MODEL.keys())


def auc(scores, batch):
    metric = AUC()
    metric.update(torch.sigmoid(torch.as_tensor(scores)), batch.labels["clicked"])
    return metric.compute()


@every_model
def test_it_learns_the_planted_signal_almost_as_well_as_can_be(one_process, changes):
    model = built(model_config(**changes), table_device="meta")
    training = Training.start(model, sparse_lr=0.2)
    # The products of a factorization machine find this signal at once; layers alone need longer.
    num_steps = 80 if changes["deepfm"] else 200
    for step in range(num_steps):
        training.step(planted_batch(1024, seed=step % 40)[0])
    test, true_logits = planted_batch(8192, seed=1000)
    model.eval()
    with torch.no_grad():
        logits = model.predict(test)["logits"]
        reached = auc(logits[:, 1] - logits[:, 0] if logits.ndim == 2 else logits, test)

    assert auc(true_logits, test) == pytest.approx(0.888, abs=0.001)
    assert reached > 0.87


@every_model
def test_the_gradient_reaches_every_parameter(changes):
    model = built(model_config(**changes))
    batch, _ = planted_batch(256, seed=0)
    sum(model.loss(model.predict(batch), batch).values()).backward()

    assert [name for name, parameter in model.named_parameters() if not parameter.grad.abs().sum() > 0] == []


@every_model
def test_sharded_and_unsharded_agree_on_the_first_steps(one_process, changes):
    plain = built(model_config(**changes))
    whole = {name: value.clone() for name, value in plain.state_dict().items()}
    sharded = built(model_config(**changes), table_device="meta")
    training = Training.start(sharded, sparse_lr=0.1, dense_lr=0.1, sparse_name="sgd_optimizer")
    load(training.module.module.model, whole)
    batch, _ = planted_batch(256, seed=0)

    assert_same_losses(plain, training, batch)
