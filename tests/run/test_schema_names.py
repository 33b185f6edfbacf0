"""Every name of the pipeline file's catalogue is known here, with its type and default."""

from enum import StrEnum
from typing import Any

import pytest

from penstock.config.section import Section
from penstock.config.shape import (
    AnyShape,
    EnumShape,
    ListShape,
    MapShape,
    ScalarShape,
    SectionShape,
    Shape,
    UnionShape,
    fields_of,
)
from penstock.run.run_config import RunConfig
from tests.run.schema_catalogue import CATALOGUE, CatalogueField, read_catalogue

pytestmark = pytest.mark.skipif(
    not CATALOGUE.exists(), reason="the list of TorchEasyRec's names is not part of the repository"
)

SCALARS = {"int": int, "float": float, "str": str, "bool": bool}
RENAMED_MESSAGES = {"EasyRecConfig": "RunConfig"}
NOT_SECTIONS = {"Struct": "a plain mapping", "Value": "a plain value", "ListValue": "a plain list"}
NOT_ENUMS = {"NullValue": "a plain null"}
MAP_VALUES = {"VocabDictEntry": int, "ValueMapEntry": float}
ONE_COLUMN, ID_TYPES = ("Id", "Raw", "Combine", "Tokenize"), ("Id", "Tokenize", "BoolMask")
ENCODERS = (
    "DINEncoder",
    "SimpleAttention",
    "PoolingEncoder",
    "SelfAttentionEncoder",
    "MultiWindowDINEncoder",
)
DIFFERENCES = {
    # type
    ("KvDotProduct", "kv_delimiter"): "a text here; its old type, a number, is accepted",
    ("CustomFeature", "operator_params"): "a plain mapping instead of a Struct",
    # default
    ("DataConfig", "num_workers"): "absent means measured; 8 is the default of old files",
    ("DataConfig", "dataset_type"): "absent means that it follows from the path",
    ("DataConfig", "delimiter"): "absent means found out; a comma in text format",
    ("DataConfig", "with_header"): "absent means found out; false in text format",
    ("AUC", "thresholds"): "absent means a histogram of 100,000 bins",
    ("MulticlassAUC", "thresholds"): "absent means a histogram of 100,000 bins",
    ("TrainConfig", "tensorboard_summaries"): "the default is written down: loss and learning_rate",
    # presence
    ("EasyRecConfig", "train_input_path"): "required only by the commands that read it",
    ("EasyRecConfig", "eval_input_path"): "required only by the commands that read it",
    ("EasyRecConfig", "model_dir"): "required only by the commands that use it",
    ("TrainConfig", "sparse_optimizer"): "required only where features have embedding tables",
    ("TrainConfig", "dense_optimizer"): "required in text format",
    ("CustomFeature", "operator_lib_file"): "ignored: operators are Python classes",
    **{
        (f"{kind}Feature", "expression"): "absent: the column is called like the feature"
        for kind in ONE_COLUMN
    },
    **{(f"{kind}Feature", "embedding_dim"): "required only where a group embeds it" for kind in ID_TYPES},
    **{(kind, "input"): "absent: the only sequence group" for kind in ENCODERS},
    **{(kind, "output_dim"): "0 where it is absent" for kind in ("DSSM", "DSSMV2", "DAT", "MIND")},
    **{
        (f"HardNegativeSampler{version}", "num_hard_sample"): "0 where it is absent" for version in ("", "V2")
    },
    ("ExponentialDecayLR", "decay_size"): "required: without it there is no decay",
    ("CosineAnnealingLR", "T_max"): "required: without it there is no wave",
    ("CosineAnnealingWarmRestartsLR", "T_0"): "required: without it there is no wave",
}


def every_section() -> dict[str, type[Section]]:
    found, waiting = {}, [RunConfig]
    while waiting:
        section = waiting.pop()
        if section.__name__ in found:
            assert found[section.__name__] is section, f"two sections are called {section.__name__}"
            continue
        found[section.__name__] = section
        shapes = [innermost(field.shape) for field in fields_of(section).values()]
        waiting += [shape.section for shape in shapes if isinstance(shape, SectionShape)]
    return found


def innermost(shape: Shape) -> Shape:
    while isinstance(shape, ListShape | MapShape):
        shape = shape.item if isinstance(shape, ListShape) else shape.value
    return shape


def every_enum() -> dict[str, tuple[str, ...]]:
    shapes = [
        innermost(field.shape) for section in SECTIONS.values() for field in fields_of(section).values()
    ]
    return {shape.title: shape.names for shape in shapes if isinstance(shape, EnumShape)}


SECTIONS = every_section()
ENUMS = every_enum()
NAMES = read_catalogue() if CATALOGUE.exists() else None
MESSAGES = sorted(NAMES.messages.keys() - NOT_SECTIONS.keys()) if NAMES else []


@pytest.mark.parametrize("message", MESSAGES)
def test_names_types_defaults_and_groups_are_those_of_the_catalogue(message):
    section = SECTIONS[RENAMED_MESSAGES.get(message, message)]
    fields = fields_of(section)
    for field in NAMES.messages[message]:
        assert field.name in fields
        if field.group is not None:
            assert field.name in section.one_of[field.group]
        is_listed = (message, field.name) in DIFFERENCES
        assert (difference(field, fields[field.name]) is not None) == is_listed, field.name


def test_every_enum_name_is_known():
    for enum, names in NAMES.enums.items():
        if enum not in NOT_ENUMS:
            assert set(names) - set(ENUMS[enum]) == set(), enum


def difference(field: CatalogueField, ours: Any) -> str | None:
    if expected_shape(field) != simple(ours.shape):
        return f"holds {ours.shape}"
    if required(field) != ours.info.is_required():
        return "is required" if ours.info.is_required() else "is not required"
    if not required(field) and not same_default(field, ours.default):
        return f"is {ours.default!r} by default, not {field.default!r}"
    return None


def required(field: CatalogueField) -> bool:
    """A field that is required and has a default need not be written."""
    return field.required and field.default is None


def expected_shape(field: CatalogueField) -> object:
    if field.type in MAP_VALUES:
        return ("map", MAP_VALUES[field.type])
    inner = SCALARS.get(field.type, field.type)
    return ("list", inner) if field.is_list else inner


def simple(shape: Shape) -> object:
    match shape:
        case ScalarShape():
            return shape.type
        case EnumShape():
            return shape.title
        case SectionShape():
            return shape.section.__name__
        case ListShape():
            return ("list", simple(shape.item))
        case MapShape():
            return ("map", simple(shape.value))
        case AnyShape() | UnionShape():
            return shape
    return shape


def same_default(field: CatalogueField, default: object) -> bool:
    if field.is_list:
        return not default
    if isinstance(default, Section):
        return field.default is None and default == type(default)()
    if field.default is None:
        return default is None
    if isinstance(default, bool):
        return field.default == str(default).lower()
    if isinstance(default, int | float) and not isinstance(default, StrEnum):
        return float(field.default) == default
    return field.default.encode().decode("unicode_escape") == default
