"""Gradients of dense parameters stay in bounds."""

import pytest
import torch

from penstock.training.precision import gradient_clipper
from penstock.training.sections import GradClipping


def clipped(**options):
    """The gradients (3, 4) of two parameters, after clipping."""
    parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    for parameter, gradient in zip(parameters, (3.0, 4.0), strict=True):
        parameter.grad = torch.tensor([gradient])
    gradient_clipper(GradClipping(**options) if options else None, parameters)()
    return [parameter.grad.item() for parameter in parameters]


def test_nothing_is_asked_for():
    assert clipped() == clipped(clipping_type="none") == [3.0, 4.0]


def test_the_norm_of_all_together():
    assert clipped(clipping_type="norm", max_gradient=1.0) == pytest.approx([0.6, 0.8], abs=1e-5)
    assert clipped(clipping_type="norm", max_gradient=3.5, norm_type=1.0) == pytest.approx(
        [1.5, 2.0], abs=1e-5
    )
    assert clipped(clipping_type="norm", max_gradient=10.0) == [3.0, 4.0]


def test_each_number_alone():
    assert clipped(clipping_type="value", max_gradient=3.5) == [3.0, 3.5]
