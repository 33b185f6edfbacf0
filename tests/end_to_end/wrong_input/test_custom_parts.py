"""Parts of one's own that are wrong: one line that names the part, not a defect of Penstock."""

import sys

import pytest

from tests.end_to_end.wrong_input.mistake import Wrong

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


def loss(place: str) -> tuple[tuple[str, str], ...]:
    return ((LOSS, f'[{{custom_loss: {{import_path: "{place}"}}}}]'),)


def metric(place: str) -> tuple[tuple[str, str], ...]:
    return ((METRIC, f'[{{custom_metric: {{import_path: "{place}"}}}}]'),)


def rate(place: str) -> tuple[tuple[str, str], ...]:
    return (
        (
            OPTIMIZER,
            f'dense_optimizer: {{adam_optimizer: {{}}, custom_learning_rate: {{import_path: "{place}"}}}}',
        ),
    )


def optimizer(place: str) -> tuple[tuple[str, str], ...]:
    return ((OPTIMIZER, f'dense_optimizer: {{custom_optimizer: {{import_path: "{place}"}}}}'),)


PARTS = [
    Wrong("a metric whose update takes nothing", run=metric("wrong_parts:Silent")),
    Wrong("a metric whose value is a word", run=metric("wrong_parts:Wordy")),
    Wrong("a loss that is a number", run=loss("wrong_parts:number")),
    Wrong("a loss that nothing is learned from", run=loss("wrong_parts:constant_loss")),
    Wrong("a loss that fails", run=loss("wrong_parts:failing_loss")),
    Wrong("a schedule without a rate", run=rate("wrong_parts:no_rate")),
    Wrong("a schedule that fails", run=rate("wrong_parts:failing_rate")),
    Wrong("an optimizer that is none", run=optimizer("wrong_parts:no_optimizer")),
    Wrong("an optimizer that wants the loss again", run=optimizer("torch.optim:LBFGS")),
]


@pytest.mark.parametrize("wrong", PARTS, ids=str)
def test_a_wrong_part_is_told_in_one_line(desk, assert_refused, wrong, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("parts")
    (folder / "wrong_parts.py").write_text(OWN_PARTS)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "wrong_parts", raising=False)

    assert_refused(desk, wrong)
