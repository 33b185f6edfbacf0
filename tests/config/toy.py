"""A small schema with every kind of field that a run file can hold."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from penstock.config.section import Ignored, Later, Legacy, Refused, Section
from penstock.config.sizes import MIB, ByteSize


class Mode(StrEnum):
    FG_NONE = "FG_NONE"
    FG_NORMAL = "FG_NORMAL"
    FG_DAG = "FG_DAG"


class Adam(Section):
    """Adam."""

    lr: float = 0.002
    """The rate."""

    amsgrad: bool = False


class Sgd(Section):
    lr: float = 0.1


class IdFeature(Section):
    feature_name: str
    embedding_dim: int
    num_buckets: int | None = None
    vocab_list: list[str] = []
    vocab_dict: dict[str, int] = {}
    separator: str = "\x1d"


class RawFeature(Section):
    feature_name: str
    embedding_dim: int = 4
    boundaries: list[float] = []
    weights_by_name: dict[str, float] = {}


class FeatureConfig(Section):
    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {"feature": ("id_feature", "raw_feature")}
    required_one_of: ClassVar[tuple[str, ...]] = ("feature",)

    id_feature: IdFeature | None = None
    raw_feature: RawFeature | None = None


class Model(Section):
    feature_names: list[str] = []
    modes: list[Mode] = []
    options: dict[str, Any] = {}
    adam_by_part: dict[str, Adam] = {}
    final: Adam | None = None


class DataConfig(Section):
    batch_size: int = Field(default=1024, gt=0)
    """How many rows make a batch."""

    fg_mode: Mode = Mode.FG_NONE
    fg_encoded: Annotated[bool, Legacy("fg_mode")] = True
    label_fields: list[str] = []
    shuffle: bool = False
    shuffle_buffer: ByteSize = 64 * MIB
    null_cost: float | str = "error"
    sample_cost_field: str = ""
    bucket_by: str | None = None
    quota: Annotated[str, Ignored("Penstock has no quotas")] = ""
    kafka: Annotated[bool, Refused("Kafka is not supported")] = False

    @field_validator("shuffle_buffer")
    @classmethod
    def _large_enough(cls, value: int) -> int:
        if value < MIB:
            raise ValueError(f"is {value}; a shuffle needs at least 1MiB")
        return value


class TrainConfig(Section):
    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "optimizer": ("adam_optimizer", "sgd_optimizer"),
        "length": ("num_steps", "num_epochs"),
    }

    adam_optimizer: Adam | None = None
    sgd_optimizer: Sgd | None = None
    num_steps: int | None = None
    num_epochs: int | None = None
    mixed_precision: Annotated[str, Later("mixed precision")] = ""


class Run(Section):
    """A whole run."""

    model_dir: str = ""
    data_config: DataConfig = Field(default_factory=DataConfig)
    feature_configs: list[FeatureConfig] = []
    model: Model | None = Field(default=None, alias="model_config")
    train_config: TrainConfig | None = None
    matrix: list[list[int]] = []
    groups: dict[str, list[str]] = {}

    @model_validator(mode="after")
    def _cost_has_a_field(self) -> Self:
        if self.data_config.null_cost != "error" and not self.data_config.sample_cost_field:
            raise ValueError("null_cost needs sample_cost_field")
        return self
