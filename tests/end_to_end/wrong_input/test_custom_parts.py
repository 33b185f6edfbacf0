"""Parts of one's own that are wrong: one line that names the part, not a defect of Penstock."""

import sys

import pytest

from tests.cli.desk import Desk
from tests.end_to_end.wrong_input.mistake import Wrong, assert_told_in_one_line

OWN_PARTS = """
import torch


class Silent:
    undefined_because, num_left_out = None, 0

    def update(self): ...
    def merge(self, other): ...
    def compute(self): return "high"
    def reset(self): ...
    def state_dict(self): return {}
    def load_state_dict(self, state): ...


class Wordy(Silent):
    def update(self, preds, target): ...


def constant_loss():
    return lambda logits, labels: torch.zeros(len(labels))


def failing_loss():
    def loss(logits, labels):
        raise KeyError("margin")
    return loss


def number():
    return 5


def no_rate():
    return lambda base, completed: None


def failing_rate():
    return lambda base, completed: 1 / completed


def no_optimizer(parameters, lr):
    return object()
"""

LOSS = "[{binary_cross_entropy: {}}]"
METRIC = "[{auc: {}}]"
OPTIMIZER = "dense_optimizer: {adam_optimizer: {lr: 0.1}}"
DENSE = "run.yaml: train_config.dense_optimizer.custom_optimizer: custom_optimizer"
ROWS = "(rows 0 to 3 of clicks.parquet)"


def loss(place: str) -> tuple[tuple[str, str], ...]:
    return ((LOSS, f'[{{custom_loss: {{place: "{place}"}}}}]'),)


def metric(place: str) -> tuple[tuple[str, str], ...]:
    return ((METRIC, f'[{{custom_metric: {{place: "{place}"}}}}]'),)


def rate(place: str) -> tuple[tuple[str, str], ...]:
    return (
        (OPTIMIZER, f'dense_optimizer: {{adam_optimizer: {{}}, custom_learning_rate: {{place: "{place}"}}}}'),
    )


def optimizer(place: str) -> tuple[tuple[str, str], ...]:
    return ((OPTIMIZER, f'dense_optimizer: {{custom_optimizer: {{place: "{place}"}}}}'),)


PARTS = [
    Wrong(
        "a metric whose update takes nothing",
        "run.yaml: model_config.metrics[0].custom_metric: custom_metric 'wrong_parts:Silent': takes (), but is "
        "called with (preds, target): too many positional arguments",
        run=metric("wrong_parts:Silent"),
    ),
    Wrong(
        "a metric whose value is a word",
        "run.yaml: model_config.metrics[0].custom_metric: custom_metric 'wrong_parts:Wordy': compute gives 'high', "
        "no number",
        run=metric("wrong_parts:Wordy"),
    ),
    Wrong(
        "a loss that is a number",
        "run.yaml: model_config.losses[0].custom_loss: custom_loss 'wrong_parts:number': gives 5; it must give a "
        "function of (predictions, labels)",
        run=loss("wrong_parts:number"),
    ),
    Wrong(
        "a loss that nothing is learned from",
        "column 'click': custom_loss 'wrong_parts:constant_loss': has no gradient, so that nothing can be learned "
        f"from it; work it out from the predictions by torch functions, without detach or no_grad {ROWS}",
        run=loss("wrong_parts:constant_loss"),
    ),
    Wrong(
        "a loss that fails",
        f"column 'click': custom_loss 'wrong_parts:failing_loss': fails: KeyError: 'margin' {ROWS}",
        run=loss("wrong_parts:failing_loss"),
    ),
    Wrong(
        "a schedule without a rate",
        "custom_learning_rate 'wrong_parts:no_rate': gives None after 0, no rate",
        run=rate("wrong_parts:no_rate"),
    ),
    Wrong(
        "a schedule that fails",
        "custom_learning_rate 'wrong_parts:failing_rate': fails after 0: ZeroDivisionError: division by zero",
        run=rate("wrong_parts:failing_rate"),
    ),
    Wrong(
        "an optimizer that is none",
        f"{DENSE} 'wrong_parts:no_optimizer': gives object, no torch.optim.Optimizer",
        run=optimizer("wrong_parts:no_optimizer"),
    ),
    Wrong(
        "an optimizer that wants the loss again",
        f"{DENSE} 'torch.optim:LBFGS': its step needs a closure that computes the loss again, which there is not; "
        "choose an optimizer whose step is called alone",
        run=optimizer("torch.optim:LBFGS"),
    ),
]


@pytest.mark.parametrize("wrong", PARTS, ids=str)
def test_a_wrong_part_is_told_in_one_line(desk: Desk, wrong: Wrong, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("parts")
    (folder / "wrong_parts.py").write_text(OWN_PARTS)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "wrong_parts", raising=False)

    assert_told_in_one_line(desk, wrong)
