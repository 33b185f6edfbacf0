"""Batch -> predictions and losses; one file for each architecture.

A model joins its feature groups from embedding tables (`embeddings`, planned by `table_plan`), runs its
layers (`layers/`) and hands the logits to its tasks (`task`), which name predictions and work out losses.
`build_model` goes from the run file to a module; importing this package does not import torch.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.config.errors import ConfigError
from penstock.config.registry import Registry
from penstock.models.sections import MODELS, ModelConfig

if TYPE_CHECKING:
    import torch

    from penstock.features.feature import Feature
    from penstock.models.model import Model

_BUILDERS: Registry[Any] = Registry("model", {name: row.path for name, row in MODELS.items() if row.path})


def build_model(
    model: ModelConfig,
    features: "Sequence[Feature]",
    label_fields: Sequence[str],
    sample_weight_fields: Sequence[str] = (),
    *,
    table_device: "torch.device | str | None" = None,
) -> "Model":
    """The model of a run file. With table_device="meta" its tables are not allocated before it is sharded."""
    from penstock.models.model import ModelInputs

    chosen = model.chosen("model")
    available = ", ".join(_BUILDERS)
    if chosen is None:
        raise ConfigError.at("model_config", f"choose a model; available: {available}")
    name, section = chosen
    if name not in _BUILDERS:
        raise ConfigError.at(f"model_config.{name}", f"not available yet; available: {available}")
    inputs = ModelInputs(features, tuple(label_fields), tuple(sample_weight_fields), table_device)
    built: Model = _BUILDERS.get(name)(model, section, inputs)
    return built
