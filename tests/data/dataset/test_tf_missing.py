"""Without TensorFlow, one line says how to get it."""

import sys

import pytest

import penstock
from tests.data.dataset.samples import numbered


def test_to_tf_without_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)

    with pytest.raises(
        penstock.ConfigError, match=r"^to_tf: TensorFlow is not installed; pip install 'penstock\[tf\]'$"
    ):
        numbered(3).batch(2).to_tf()
