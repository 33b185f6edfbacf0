"""The run file: the only place that knows every section, and the checks that no section can make alone."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from penstock.config.errors import ConfigError, Problem
from penstock.config.load import load_section
from penstock.config.section import Paths, Section, raise_problems
from penstock.data.sections import BatchingSection
from penstock.export.sections import ExportConfig
from penstock.features.sections import FeatureConfig, ParsingSection, feature_problems, named_features
from penstock.features.sections.types import has_table
from penstock.models.sections import ModelConfig
from penstock.prep.sections import Preprocessing
from penstock.readers.sections import ReadingSection
from penstock.runtime.sections import MemorySection
from penstock.runtime.world import tile_from_environment
from penstock.sampling.sections import SamplerSection
from penstock.tensors.sections import LoadingSection
from penstock.training.sections import EvalConfig, TrainConfig

logger = logging.getLogger(__name__)

Edits = Mapping[str, Any] | Sequence[str]


class DataConfig(LoadingSection, SamplerSection, ParsingSection, BatchingSection, ReadingSection):
    """Reading and batching; each part stands beside its owner."""


class RunConfig(Section):
    """A whole run file."""

    train_input_path: Paths = ""
    """Training data: a path, glob, directory or URL; several with commas between them, or as a list."""

    eval_input_path: Paths = ""
    """Evaluation data, written in the same ways."""

    model_dir: str = ""
    """Where everything of the run goes."""

    memory: MemorySection = Field(default_factory=MemorySection)
    """How much memory the run may use."""

    data_config: DataConfig = Field(default_factory=DataConfig)
    """Reading and batching."""

    feature_configs: list[FeatureConfig] = []
    """The features."""

    model: ModelConfig | None = Field(default=None, alias="model_config")
    """What is learned; `model_config` in the file."""

    train_config: TrainConfig | None = None
    """How long to train, how often to save, and with what."""

    eval_config: EvalConfig = Field(default_factory=EvalConfig)
    """How evaluation runs."""

    export_config: ExportConfig = Field(default_factory=ExportConfig)
    """Which checkpoint is used or becomes an artifact."""

    preprocessing: Preprocessing | None = None
    """From raw files to array stores."""

    @model_validator(mode="after")
    def _sections_agree(self) -> Self:
        features = list(named_features(self.feature_configs))
        problems = list(feature_problems(features))
        owner = next((feature.name for feature in features if has_table(feature.section)), None)
        train, data = self.train_config, self.data_config
        if owner is not None and train is not None and train.sparse_optimizer is None:
            message = f"is required: '{owner}' has an embedding table"
            problems.append(Problem(("train_config", "sparse_optimizer"), message))
        if self.model is not None:
            by_name = {feature.name: feature for feature in reversed(features)}
            problems += self.model.problems(by_name, data.label_fields, data.sample_weight_fields)
        if problems:
            raise_problems(self, problems)
        return self


def load_run(path: str | Path, edits: Edits | None = None) -> RunConfig:
    """Read, edit and check a run file. `edits` maps paths to values, or lists 'PATH=VALUE'.

    Raises a ConfigError that holds every problem of the file.
    """
    if not isinstance(path, str | Path):
        raise ConfigError(f"load_run: expected the path of a run file, not {path!r}")
    if not isinstance(edits, Mapping | Sequence | None):
        raise ConfigError(
            f"load_run: edits are a mapping of paths to values or a list of 'PATH=VALUE', not {edits!r}"
        )
    texts = [edits] if isinstance(edits, str) else edits or ()
    given = [*texts.items()] if isinstance(texts, Mapping) else [*texts]
    return load_section(RunConfig, Path(path), edits=[*environment_edits(), *given]).section


def environment_edits() -> list[str | tuple[str, Any]]:
    """What the environment says in an old way, as edits, with a warning that names the key."""
    tile = tile_from_environment()
    if tile is None:
        return []
    logger.warning("INPUT_TILE in the environment: use data_config.input_tile: %s instead", tile)
    return [("data_config.input_tile", tile)]
