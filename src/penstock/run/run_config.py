"""The run file: the only place that knows every section."""

from typing import Self

from pydantic import Field, model_validator

from penstock.config.section import Paths, Section, raise_problems
from penstock.data.sections import BatchingSection
from penstock.export.sections import ExportConfig
from penstock.features.sections import FeatureConfig, ParsingSection
from penstock.models.sections import ModelConfig
from penstock.prep.sections import Preprocessing
from penstock.readers.sections import ReadingSection
from penstock.run.checks import run_findings
from penstock.runtime.sections import MemorySection
from penstock.sampling.sections import SamplerSection
from penstock.tensors.sections import LoadingSection
from penstock.training.sections import EvalConfig, TrainConfig


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
        raise_problems(self, run_findings(self))
        return self
