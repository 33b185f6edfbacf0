"""Options of features and of parsing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from penstock.config.errors import KeyPath, Problem, format_path, hint
from penstock.config.section import Later, Legacy, Probability, Section, raise_problems
from penstock.features.sections.tables import ID_SIZES
from penstock.features.sections.types import (
    BoolMaskFeature,
    CombineFeature,
    ComboFeature,
    CustomFeature,
    ExprFeature,
    IdFeature,
    KvDotProduct,
    LookupFeature,
    MatchFeature,
    OverlapFeature,
    RawFeature,
    TokenizeFeature,
    has_table,
    table_rows,
)


class FgMode(StrEnum):
    """How the columns of the data become features."""

    FG_NONE = "FG_NONE"
    FG_NORMAL = "FG_NORMAL"
    FG_DAG = "FG_DAG"
    FG_BUCKETIZE = "FG_BUCKETIZE"


class ParsingSection(Section):
    """The part of data_config about turning columns into features, labels and weights."""

    fg_mode: FgMode = FgMode.FG_NONE
    """FG_NONE: columns are features already. FG_NORMAL: each feature is made from raw columns on its own.
    FG_DAG: all in one graph. FG_BUCKETIZE: columns are values that still become ids."""

    fg_encoded: Annotated[bool, Legacy("fg_mode")] = True
    """Counts where it is written: true is FG_NONE; false is FG_DAG, or FG_NORMAL with fg_threads 0."""

    fg_encoded_multival_sep: str = "\x03"
    """Between the values of one row, where columns are features already."""

    fg_threads: NonNegativeInt = 1
    """Threads that work on the graph of features."""

    label_fields: list[str] = []
    """Columns with the labels."""

    label_map: dict[str, dict[str, float]] = {}
    """What the values of a label mean, by its column, such as {bought: {yes: 1, no: 0}}; absent: labels are numbers."""

    sample_weight_fields: list[str] = []
    """Columns with the weights of rows."""

    sample_mask_prob: Probability = 0.0
    """Share of the rows in which training hides the value of a feature with use_mask."""

    negative_sample_mask_prob: Annotated[Probability, Later("negative_sample_mask_prob")] = 0.0
    """The same for sampled negatives."""

    force_base_data_group: Annotated[bool, Later("force_base_data_group")] = False
    """Keep all features in one group of rows, whether or not there are negatives."""

    @model_validator(mode="after")
    def _maps_are_of_labels(self) -> Self:
        problems = []
        for column, numbers in self.label_map.items():
            if column not in self.label_fields:
                near = hint(column, self.label_fields) if self.label_fields else "there is none"
                problems.append(Problem(("label_map", column), f"is not in label_fields; {near}"))
            elif not numbers:
                message = "is empty; write what each value means, such as {yes: 1, no: 0}"
                problems.append(Problem(("label_map", column), message))
        if problems:
            raise_problems(self, problems)
        return self

    def resolved_fg_mode(self) -> FgMode:
        """The mode that counts: the old fg_encoded wins where it is written."""
        if "fg_encoded" not in self.model_fields_set:
            return self.fg_mode
        if self.fg_encoded:
            return FgMode.FG_NONE
        return FgMode.FG_DAG if self.fg_threads > 0 else FgMode.FG_NORMAL


class FeatureRow(NamedTuple):
    """One feature type: its options, and its recipe, as "package.module:attribute"; empty: not available yet."""

    section: type[Section]
    path: str = ""


FEATURES: Mapping[str, FeatureRow] = {
    "id_feature": FeatureRow(IdFeature, "penstock.features.id_feature:id_recipe"),
    "raw_feature": FeatureRow(RawFeature, "penstock.features.raw_feature:raw_recipe"),
    "combo_feature": FeatureRow(ComboFeature, "penstock.features.combo:combo_recipe"),
    "lookup_feature": FeatureRow(LookupFeature, "penstock.features.lookup:lookup_recipe"),
    "match_feature": FeatureRow(MatchFeature, "penstock.features.match:match_recipe"),
    "expr_feature": FeatureRow(ExprFeature, "penstock.features.expression:expr_recipe"),
    "overlap_feature": FeatureRow(OverlapFeature, "penstock.features.overlap:overlap_recipe"),
    "tokenize_feature": FeatureRow(TokenizeFeature, "penstock.features.tokenize:tokenize_recipe"),
    "custom_feature": FeatureRow(CustomFeature, "penstock.features.custom:custom_recipe"),
    "kv_dot_product": FeatureRow(KvDotProduct, "penstock.features.kv_dot_product:dot_product_recipe"),
    "bool_mask_feature": FeatureRow(BoolMaskFeature, "penstock.features.bool_mask:bool_mask_recipe"),
    "combine_feature": FeatureRow(CombineFeature, "penstock.features.combine:combine_recipe"),
}
"""The feature types of the run file, by the name of their section; sequence_NAME is the same of every step."""


_SECTIONS = {name: row.section for name, row in FEATURES.items()}


class SeqFeatureConfig(
    Section,
    group="feature",
    kinds=_SECTIONS,
    markers={name: Later(name) for name, row in FEATURES.items() if not row.path},
):
    """One feature of the steps of a sequence."""


class SequenceFeature(Section):
    """Several features of the same steps; their names become sequence_name__feature_name."""

    sequence_name: str
    """Name of the sequence."""

    sequence_length: PositiveInt
    """Longest sequence; longer ones are cut."""

    sequence_delim: str = ";"
    """Between the steps."""

    sequence_pk: str | None = None
    """Where the keys of the steps come from: side:column."""

    features: list[SeqFeatureConfig] = []
    """The features of a step."""


_SEQUENCES: dict[str, type[Section]] = {
    "sequence_feature": SequenceFeature,
    **{f"sequence_{name}": _SECTIONS[name] for name in FEATURES},
}
_LATER = tuple(kind for name, row in FEATURES.items() if not row.path for kind in (name, f"sequence_{name}"))


class FeatureConfig(
    Section,
    group="feature",
    kinds={**_SECTIONS, **_SEQUENCES},
    markers={name: Later(name) for name in _LATER},
):
    """One feature."""


@dataclass(frozen=True, slots=True)
class NamedFeature:
    """One feature of a run file: where it stands, its name, and its section."""

    key: KeyPath
    name: str
    section: Any
    alias: str | None = None
    """What older files call a feature of a sequence: sequence_feature."""
    sequence: "SequenceSpec | None" = None
    """Of a feature of steps."""


@dataclass(frozen=True, slots=True)
class SequenceSpec:
    """How the inputs of a feature hold steps."""

    delim: str
    max_steps: int = 0
    """Longer sequences are cut; 0: they are not."""

    prefix: str = ""
    """In front of the names of columns, in a grouped sequence."""

    fields: tuple[str, ...] = ()
    """The inputs that are sequences; none: all are."""

    is_made: bool = False
    """The feature makes the steps (tokens): no input is a sequence."""

    def is_sequence(self, expression: str, name: str) -> bool:
        if self.is_made:
            return False
        return not self.fields or expression in self.fields or name in self.fields


def named_features(configs: Sequence[FeatureConfig]) -> Iterator[NamedFeature]:
    """Every feature in order; those of a sequence are called sequence__feature."""
    for index, config in enumerate(configs):
        chosen = config.chosen("feature")
        if chosen is None:
            continue
        kind, section = chosen
        key: KeyPath = ("feature_configs", index, kind)
        if not isinstance(section, SequenceFeature):
            sequence = None
            is_made = not kind.startswith("sequence_") and getattr(section, "tokens_as_sequence", False)
            if kind.startswith("sequence_") or is_made:
                fields, max_steps = tuple(section.sequence_fields), section.sequence_length or 0
                sequence = SequenceSpec(section.sequence_delim, max_steps, fields=fields, is_made=is_made)
            yield NamedFeature(key, section.feature_name, section, sequence=sequence)
            continue
        for position, step in enumerate(section.features):
            if (inner := step.chosen("feature")) is not None:
                inner_key, name = (*key, "features", position, inner[0]), inner[1].feature_name
                prefix, fields = section.sequence_name, tuple(inner[1].sequence_fields)
                spec = SequenceSpec(section.sequence_delim, section.sequence_length, f"{prefix}__", fields)
                yield NamedFeature(inner_key, f"{prefix}__{name}", inner[1], f"{prefix}_{name}", spec)


_SHARED_OPTIONS = ("embedding_dim", "pooling", "init_fn", "trainable", "data_type")
"""What features that share a table must agree on, beside its rows."""


def feature_problems(features: Sequence[NamedFeature]) -> Iterator[Problem]:
    """Names are used once, and who shares a table means the same."""
    first: dict[str, KeyPath] = {}
    owners: dict[str, NamedFeature] = {}
    for feature in features:
        key, section = feature.key, feature.section
        earlier = first.setdefault(feature.name, key)
        if earlier != key:
            message = f"'{feature.name}' is there already, in {format_path(earlier)}"
            yield Problem((*key, "feature_name"), message)
        if (
            getattr(section, "tokens_as_sequence", False)
            and feature.sequence
            and not feature.sequence.is_made
        ):
            yield Problem((*key, "tokens_as_sequence"), "the steps are texts already; leave it out")
        if not has_table(section):
            continue
        table = section.embedding_name or f"{feature.name}_emb"
        owner = owners.setdefault(table, feature)
        shares = f"but '{owner.name}' shares the table '{table}' and has"
        for option in _SHARED_OPTIONS:
            mine, theirs = getattr(section, option), getattr(owner.section, option)
            if mine != theirs:
                own = "is absent" if mine is None else f"is {mine}"
                yield Problem((*key, option), f"{own}, {shares} {'none' if theirs is None else theirs}")
        rows, owner_rows = table_rows(section), table_rows(owner.section)
        if rows is not None and owner_rows is not None and rows != owner_rows:
            option = next((option for option in ID_SIZES if getattr(section, option, None)), "boundaries")
            yield Problem((*key, option), f"makes {rows} rows, {shares} {owner_rows}")
