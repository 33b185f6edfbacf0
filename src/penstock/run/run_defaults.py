"""What a run file may leave out, by its syntax: text format keeps the rules of TorchEasyRec.

The data of a file are completed before they are checked, so that what was left out is written to model_dir/run.yaml
like everything else, and a run that goes on later sees the same.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from penstock.config.errors import Problem
from penstock.features.sections.tables import ID_SIZES
from penstock.training.sections import DENSE_OPTIMIZER, SPARSE_OPTIMIZER

Data = dict[str, Any]

TEXT_DEFAULTS: Mapping[str, Any] = {"delimiter": ",", "with_header": False, "fg_mode": "FG_NONE"}
"""Keys of data_config that YAML and JSON find out where they are absent."""

EMBEDDING_DIM = 16
DEEPFM = {
    "feature_groups": [
        {"group_name": "wide", "feature_names": "*", "group_type": "WIDE"},
        {"group_name": "fm", "feature_names": "*"},
        {"group_name": "deep", "feature_names": "*"},
    ],
    "deepfm": {"deep": {"hidden_units": [128, 64]}},
    "losses": [{"binary_cross_entropy": {}}],
    "metrics": [{"auc": {}}],
}
_MAKES_IDS = (*ID_SIZES, "boundaries")
OF_RAW_COLUMNS = (
    *("expression", "map", "nested_map", "query", "separator", "default_value", "normalizer", "boundaries"),
    *("hash_bucket_size", "vocab_list", "vocab_dict", "vocab_file", "default_bucketize_value"),
)
"""Options that count only where features are made of raw columns, which is FG_NORMAL."""


def complete(data: Data, syntax: str, source: Path | None, filled: list[str]) -> Iterator[Problem]:
    """Fill in, in place, what a file of this syntax may leave out; gives what it may not leave out.

    `filled` gets what is worth knowing of it, for the log. What is not of the form that it should have is left to the
    check.
    """
    if syntax == "text":
        yield from _complete_text(data)
        return
    features = [section for section in _feature_sections(data.get("feature_configs")) if section]
    if not features:  # a file for preparation, or one that is not finished
        return
    parsing = data.setdefault("data_config", {})
    if isinstance(parsing, dict) and not {"fg_mode", "fg_encoded"} & parsing.keys():
        reason = _raw_option(features)
        parsing["fg_mode"] = "FG_NONE" if reason is None else "FG_NORMAL"
        why = "columns are features already" if reason is None else reason
        filled.append(f"fg_mode {parsing['fg_mode']} ({why})")
    has_ids = [section for section in features if any(section.get(option) for option in _MAKES_IDS)]
    for section in has_ids:
        section.setdefault("embedding_dim", EMBEDDING_DIM)
    if data.get("model_config") is None:
        data["model_config"] = deepcopy(DEEPFM)
        filled.append("model_config DeepFM over all features")
    train = data.setdefault("train_config", {})
    for key, optimizer in (("sparse_optimizer", SPARSE_OPTIMIZER), ("dense_optimizer", DENSE_OPTIMIZER)):
        if isinstance(train, dict) and key not in train and (has_ids or key == "dense_optimizer"):
            train[key] = deepcopy(optimizer)
            [(name, options)] = optimizer.items()
            filled.append(f"{key} {name.removesuffix('_optimizer')} {options['lr']}")
    if source is not None and not data.get("model_dir"):
        data["model_dir"] = f"runs/{source.stem}"
        filled.append(f"model_dir {data['model_dir']}")


def _complete_text(data: Data) -> Iterator[Problem]:
    parsing, train = data.setdefault("data_config", {}), data.get("train_config")
    if isinstance(parsing, dict):
        for key, value in TEXT_DEFAULTS.items():
            if key != "fg_mode" or "fg_encoded" not in parsing:
                parsing.setdefault(key, value)
    if isinstance(train, dict):
        if "dense_optimizer" not in train:
            yield Problem(("train_config", "dense_optimizer"), "is required")
        if not {"num_steps", "num_epochs"} & train.keys():
            yield Problem(("train_config",), "one of num_steps, num_epochs is required")


def _feature_sections(configs: Any) -> Iterator[Data]:
    """The options of every feature, those of a sequence too."""
    for config in configs if isinstance(configs, list) else ():
        for section in config.values() if isinstance(config, dict) else ():
            if isinstance(section, dict) and "features" in section:
                yield from _feature_sections(section["features"])
            elif isinstance(section, dict):
                yield section


def _raw_option(features: list[Data]) -> str | None:
    """The first option that says that features are made of raw columns, and whose it is."""
    for section in features:
        for option in OF_RAW_COLUMNS:
            if section.get(option):
                return f"'{section.get('feature_name')}' has {option}"
    return None
