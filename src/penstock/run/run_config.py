"""The run file: the only place that knows every section, and the checks that no section can make alone."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from penstock.config.errors import ConfigError, Problem
from penstock.config.load import Notice, load_section, notice_lines
from penstock.config.section import Paths, Section, raise_problems
from penstock.data.sections import BatchingSection
from penstock.export.sections import ExportConfig
from penstock.features.sections import (
    FeatureConfig,
    NamedFeature,
    ParsingSection,
    feature_problems,
    named_features,
)
from penstock.features.sections.types import has_table
from penstock.models.sections import ModelConfig
from penstock.prep.sections import Preprocessing
from penstock.readers.files import TYPE_OF_SUFFIX, data_suffix
from penstock.readers.sections import ReadingSection
from penstock.run.run_defaults import complete
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
        if data.sample_mask_prob and not any(feature.section.use_mask for feature in features):
            message = "hides nothing: no feature has use_mask: true"
            problems.append(Problem(("data_config", "sample_mask_prob"), message))
        if owner is not None and train is not None and train.sparse_optimizer is None:
            message = f"is required: '{owner}' has an embedding table"
            problems.append(Problem(("train_config", "sparse_optimizer"), message))
        if self.model is not None:
            by_name: dict[str, NamedFeature] = {}
            for feature in features:
                by_name.setdefault(feature.name, feature)
            self.model.resolve_names(by_name)
            problems += self.model.problems(by_name, data.label_fields, data.sample_weight_fields)
        if problems:
            raise_problems(self, problems)
        return self


def load_run(
    source: str | Path | Mapping[str, Any], edits: Edits | None = None, *, strict: bool = False
) -> RunConfig:
    """Read, edit and check a run file, given by its path, as a mapping, or as YAML text.

    `edits` maps paths to values, or lists 'PATH=VALUE'. Keys that are old or have no effect are warned of; `strict`
    makes errors of the latter. Raises a ConfigError that holds every problem of the file.
    """
    if not isinstance(source, str | Path | Mapping):
        raise ConfigError(f"load_run: expected the path of a run file, a mapping or YAML, not {source!r}")
    if not isinstance(edits, Mapping | Sequence | None):
        raise ConfigError(
            f"load_run: edits are a mapping of paths to values or a list of 'PATH=VALUE', not {edits!r}"
        )
    texts = [edits] if isinstance(edits, str) else edits or ()
    given = [*texts.items()] if isinstance(texts, Mapping) else [*texts]
    # A path may hold almost anything, but no line break, and hardly ever a key with its value.
    is_yaml = isinstance(source, str) and (
        "\n" in source or ": " in source or source.lstrip().startswith("{")
    )
    path = None if is_yaml or isinstance(source, Mapping) else Path(source)
    filled: list[str] = []
    loaded = load_section(
        RunConfig,
        source if path is None else path,
        edits=[*environment_edits(), *given],
        strict=strict,
        complete=lambda data, syntax: complete(data, syntax, path, filled),
    )
    run = loaded.section
    if filled:
        logger.info("not in the run file: %s", ", ".join(filled))
    for line in notice_lines([*used_notices(run, loaded.notices)]):
        logger.warning("%s", line)
    if ("data_config", "dataset_type") not in loaded.edited:
        for key in ("train_input_path", "eval_input_path"):
            if (key,) in loaded.edited:
                run = with_format_of(run, key, getattr(run, key))
    return run


def used_features(run: RunConfig) -> set[str]:
    """The names of the features that the model's groups read."""
    groups = [] if run.model is None else run.model.feature_groups
    return {name for group in groups for name in group.every_name()}


def used_notices(run: RunConfig, found: Iterable[Notice]) -> Iterator[Notice]:
    """Notices, in which something of a feature that no group uses does no harm, whether it is available or not."""
    used = used_features(run)
    in_use = {feature.key[:2] for feature in named_features(run.feature_configs) if feature.name in used}
    for notice in found:
        is_unused = notice.path[0] == "feature_configs" and notice.path[:2] not in in_use
        yield replace(notice, kind="harmless") if is_unused and notice.kind == "later" else notice


def with_format_of(run: RunConfig, key: str, path: str) -> RunConfig:
    """The run with the format that the suffix of a path says which was given in place of the run file's."""
    written = run.data_config.dataset_type
    suffixes = [data_suffix(part.strip()) for part in path.split(",")]
    found = {TYPE_OF_SUFFIX[suffix] for suffix in suffixes if suffix in TYPE_OF_SUFFIX} - {written}
    if written is None or not found:
        return run
    reading = " and ".join(sorted(found))
    logger.info("%s: %s is read as %s; data_config.dataset_type is %s", key, path, reading, written)
    # Without it each path says its own format, that of other data too.
    data = run.data_config.model_copy(update={"dataset_type": None})
    return run.model_copy(update={"data_config": data})


def environment_edits() -> list[str | tuple[str, Any]]:
    """What the environment says in an old way, as edits, with a warning that names the key."""
    tile = tile_from_environment()
    if tile is None:
        return []
    logger.warning("INPUT_TILE in the environment: use data_config.input_tile: %s instead", tile)
    return [("data_config.input_tile", tile)]
