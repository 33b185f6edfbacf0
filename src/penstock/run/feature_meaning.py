"""What the inputs of a model mean: everything that turns columns into the ids and numbers it was trained on.

A checkpoint fits a run file by the shapes of its tensors long before it fits by meaning: another order of vocab_list
gives every word another word's vector, and nothing would show it. So a checkpoint carries this description, and is used
only where the run file gives the same.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.checkpoint import Checkpoint
from penstock.config.errors import CheckpointError
from penstock.features.sections import FgMode, named_features
from penstock.run.requirements import model_section
from penstock.run.run_config import RunConfig
from penstock.run.run_defaults import OF_RAW_COLUMNS

FEATURES_DOCUMENT = "features"
"""The name of the description among the documents of a checkpoint."""
COLUMN_KINDS_DOCUMENT = "column_kinds"
"""The kind of every input column in training (features.value_counts); older checkpoints do not have it."""

Meaning = dict[str, Any]

_WITHOUT_MEANING = frozenset(
    {
        "feature_name",  # the key of the description
        "init_fn",
        "trainable",
        "embedding_constraints",
        "num_buckets",  # an id is its row; this and the next two show in the shapes and types of tensors
        "embedding_dim",
        "data_type",
        "use_mask",
        "operator_lib_file",
        "is_op_thread_safe",
    }
)
"""Options that change no id and no number. Every other option counts, also one that is added later."""

_OF_RECIPES = (
    *("map", "key", "nested_map", "pkey", "skey", "query", "title", "document", "method", "kv_delimiter"),
    *("combiner", "value_map", "value_separator", "need_discrete", "need_key", "show_pkey", "show_skey"),
)
_UNUSED_IN_MODE: Mapping[FgMode, frozenset[str]] = {
    FgMode.FG_NONE: frozenset({*OF_RAW_COLUMNS, *_OF_RECIPES, "fg_value_type"}),
    FgMode.FG_NORMAL: frozenset({"fg_encoded_default_value"}),
    FgMode.FG_DAG: frozenset({"fg_encoded_default_value"}),
}
"""Options that a mode does not read: with FG_NONE columns hold ids and numbers already."""

_EMPTY_IS_ABSENT = frozenset({"default_value", "fg_encoded_default_value", "normalizer", "value_dim"})
_MAX_SHOWN = 60


def feature_meaning(run: RunConfig) -> Meaning:
    """The description, as plain values; a default that is written and one that is left out are the same."""
    data, groups = run.data_config, model_section(run).feature_groups
    used = {name for group in groups for name in group.feature_names}
    mode = data.resolved_fg_mode()
    excluded = {*_WITHOUT_MEANING, *_UNUSED_IN_MODE.get(mode, ())}
    features: Meaning = {}
    for named in named_features(run.feature_configs):
        if named.name in used or named.section.stub_type:
            options = named.section.model_dump(mode="json", exclude=excluded)
            for name in _EMPTY_IS_ABSENT & options.keys():
                options[name] = options[name] or None
            if "embedding_name" in options:
                options["embedding_name"] = options["embedding_name"] or f"{named.section.feature_name}_emb"
            features[named.name] = {"kind": named.key[2], **options}
    meaning: Meaning = {
        "fg_mode": mode.value,
        "features": features,
        "feature_groups": {
            group.group_name: group.model_dump(mode="json", exclude={"group_name"}) for group in groups
        },
    }
    if mode is FgMode.FG_NONE:
        meaning["fg_encoded_multival_sep"] = data.fg_encoded_multival_sep
    return meaning


def require_same_meaning(checkpoint: Checkpoint, run: RunConfig) -> None:
    """Refuse a checkpoint whose inputs meant something else than they do in this run file."""
    if problem := other_meaning(checkpoint, run):
        raise CheckpointError(f"{problem}; train again, or start from it with --fine_tune_checkpoint")


def other_meaning(checkpoint: Checkpoint, run: RunConfig) -> str | None:
    if FEATURES_DOCUMENT not in checkpoint.documents:
        return f"{checkpoint.path}: does not say what its features mean"
    difference = next(differences(checkpoint.documents[FEATURES_DOCUMENT], feature_meaning(run)), None)
    return f"{checkpoint.path}: {difference}" if difference else None


def trained_kinds(checkpoint: Checkpoint) -> dict[str, str]:
    """The kinds of columns that a checkpoint was trained on, as far as it says them."""
    found: dict[str, str] = checkpoint.documents.get(COLUMN_KINDS_DOCUMENT, {})
    return found


def differences(saved: Meaning, current: Meaning) -> Iterator[str]:
    for key in ("fg_mode", "fg_encoded_multival_sep"):
        yield from _in_value(f"data_config.{key}", saved.get(key), current.get(key))
    for kind, key in (("feature", "features"), ("feature group", "feature_groups")):
        before, now = saved[key], current[key]
        for name in dict.fromkeys([*before, *now]):
            if name not in now:
                yield f"{kind} '{name}' is in the checkpoint, but not in this run file"
                continue
            if name not in before:
                yield f"{kind} '{name}' is in this run file, but not in the checkpoint"
                continue
            # The kind of a feature comes first: other differences follow from it.
            for option in sorted({*before[name], *now[name]}, key=lambda option: (option != "kind", option)):
                path = f"{kind} '{name}': {option}"
                yield from _in_value(path, before[name].get(option), now[name].get(option))


def _in_value(path: str, saved: Any, current: Any) -> Iterator[str]:
    """Differences of one value, named down to the item of a list; long values cut to where they begin to differ."""
    if saved == current:
        return
    if isinstance(saved, dict) and isinstance(current, dict):
        for key in sorted(saved.keys() | current.keys()):
            yield from _in_value(f"{path}['{key}']", saved.get(key), current.get(key))
    elif isinstance(saved, list) and isinstance(current, list) and saved and current:
        if len(saved) != len(current):
            yield f"{path} has another length: {len(saved)} in the checkpoint, {len(current)} in this run file"
        for index, (before, now) in enumerate(zip(saved, current, strict=False)):
            yield from _in_value(f"{path}[{index}]", before, now)
    else:
        texts = [json.dumps(value, ensure_ascii=False) for value in (saved, current)]
        pairs = enumerate(zip(*texts, strict=False))
        first = next((index for index, (mine, other) in pairs if mine != other), 0)
        start = max(0, first - _MAX_SHOWN // 2)
        end = start + _MAX_SHOWN
        before, now = (
            text
            if len(text) <= _MAX_SHOWN
            else ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")
            for text in texts
        )
        yield f"{path} differs: {before} in the checkpoint, {now} in this run file"
