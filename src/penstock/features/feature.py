"""A feature: where its inputs stand, what it makes of them, and how that is encoded.

Every type of feature is a function from its options to a Recipe; everything else (modes, sequences, defaults, tables)
is the same for all types and stands here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from penstock.config.errors import ConfigError, hint
from penstock.features.encoding import Encoding, IdEncoding, NumberEncoding, vocabulary_encoding
from penstock.features.masking import without_rows
from penstock.features.normalizer import parse_normalizer
from penstock.features.sections import FgMode, NamedFeature, ParsingSection, SequenceSpec
from penstock.features.sections.tables import ID_SIZES, VocabularyOptions
from penstock.features.sections.types import AutoDisOrMlp, has_table, table_rows
from penstock.features.strings import Rule, as_numbers, split
from penstock.features.value_counts import ValueCounts
from penstock.features.values import BadItem, BadValue, BoolArray, Column, Int32Array, Strings, Values
from penstock.features.vocabulary_file import read_vocabulary

Transform = Callable[[Sequence[Values]], Values]
"""Values of the inputs -> values of the feature, row by row. In a sequence every step is a row."""

COLUMN_SIDES = ("user", "item", "context")
SIDES = (*COLUMN_SIDES, "feature", "const")
MEAN = "mean"
"""As a default_value: the mean of the training data, once it is known."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """The embedding table that a sparse feature looks its ids up in; features share one by its name."""

    name: str
    num_rows: int
    dim: int
    pooling: str = "sum"
    init_fn: str | None = None
    trainable: bool = True
    data_type: str = "FP32"
    weighted: bool = False
    growing: Any = None
    """The options of a table whose rows are given to keys as they appear (zch, dynamicemb)."""


class Recipe(NamedTuple):
    """What a type of feature makes of its inputs."""

    expressions: tuple[str, ...]
    """Its inputs, as `side:name`, or the name of a column alone."""

    transform: Transform | None = None
    """None: the one input as it is."""

    num_rows: int | None = None
    """Rows of the table, where the values are ids already (tokens); None: the options say."""

    default: str | None = None
    """Of such values: the ids of a missing row, with spaces between them."""

    reads_text: bool = False
    """Whether inputs count as they are written, so that 02134 and 2134 are two; without a transform the ids say."""

    maps: Mapping[str, str] = {}
    """Those expressions that are maps, with what stands between the entries of a string. Entries are "key:value"."""

    gives_strings: bool = False
    """Whether values are no numbers, so that only the size of a table can tell what to do with them."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a feature: a column, the values of another feature, or a constant."""

    side: str
    name: str
    separator: bytes = b""
    step_separator: bytes | None = None
    """In a sequence, unless the input belongs to whole rows."""

    is_map: bool = False
    """The items of a map column are values, not weights."""


@dataclass(frozen=True, eq=False)
class Feature:
    """Turns its inputs into one column of ids or numbers."""

    name: str
    """Its name in the run file; keys of tensors carry it."""

    sources: tuple[Input, ...]
    transform: Transform | None
    encoding: Encoding | None
    """None: a stub of strings, which only others turn into ids."""

    table: TableSpec | None = None
    """The embedding table of ids; None where the feature gives numbers."""

    width: int = 0
    """Numbers per row, or step, of a feature of numbers; 0 for one of ids."""

    sequence: SequenceSpec | None = None
    dense_embedding: AutoDisOrMlp | None = None
    """How numbers become vectors, where they do."""

    embedding_dim: int = 0
    """Width of the vector of each number, where numbers become vectors."""

    reads_text: bool = False
    """Whether values count as they are written, so that 02134 and 2134 are two."""

    is_stub: bool = False
    """It only feeds other features."""

    use_mask: bool = False
    """Training may hide some of its values (features.masking)."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The data columns that it reads."""
        return tuple(source.name for source in self.sources if source.side in COLUMN_SIDES)

    @property
    def separators(self) -> tuple[str, ...]:
        """Between the values of its first input, where that holds strings: of steps, of values."""
        first = self.sources[0]
        return tuple(each.decode() for each in (first.step_separator, first.separator) if each)

    def made_of(self, inputs: Sequence[Values]) -> tuple[Values, int]:
        """The values before they are encoded, and how many steps encoding may keep (0: all)."""
        max_steps = 0 if self.sequence is None else self.sequence.max_steps
        if self.transform is None:
            return inputs[0], max_steps
        for source, values in zip(self.sources, inputs, strict=True):
            if values.weights is not None and not source.is_map:
                raise BadValue(
                    source.name, None, None, "is a map or has weights, which this feature cannot use"
                )
        if self.sequence is None:
            return self.transform([split(values) for values in inputs]), 0
        parts = [cut_steps(split(values, max_steps), max_steps) for values in inputs]
        steps = next((part.steps for part in parts if part.steps is not None), None)
        if steps is None:  # the feature makes the steps
            return self.transform(parts), max_steps
        for source, part in zip(self.sources, parts, strict=True):
            if part.steps is not None and not np.array_equal(part.steps, steps):
                row = int(np.argmax(part.steps != steps))
                problem = f"has {steps[row]} steps, but {part.steps[row]} in column '{source.name}'"
                raise BadItem(row, None, problem)
        rows = [part.repeated(steps) if part.steps is None else replace(part, steps=None) for part in parts]
        try:
            return replace(self.transform(rows), steps=steps), 0
        except BadItem as error:
            raise error.of(steps) from error

    def column(
        self,
        inputs: Sequence[Values],
        counts: dict[str, ValueCounts] | None = None,
        hidden: BoolArray | None = None,
    ) -> Column | Values:
        """The feature in every row; of one without an encoding, its values.

        A value that cannot be used raises BadValue with the column and the row. With `counts`, values that the feature
        does not know are counted there, and are no error. Rows that are `hidden` have no value.
        """
        steps, encoding = None, self.encoding
        try:
            values, max_steps = self.made_of(inputs)
            if hidden is not None:
                values = without_rows(values, hidden)
            steps = values.steps
            if max_steps and steps is not None:  # strings are cut as they are split
                values = cut_steps(values, max_steps)
            if encoding is None:
                return values
            if counts is None or not isinstance(encoding, IdEncoding) or not encoding.is_counted:
                return encoding.encode(values, max_steps)
            column, counts[self.name] = encoding.encode_known(values, max_steps)
            return column
        except BadItem as error:
            raise self._bad_value(error, steps) from error

    def separate_values(self, inputs: Sequence[Values]) -> Values:
        """The values before they are encoded: numbers of a feature of numbers, else strings or integers, each apart."""
        steps = None
        try:
            values, max_steps = self.made_of(inputs)
            steps = values.steps
            if isinstance(self.encoding, NumberEncoding):
                return cut_steps(as_numbers(values, max_steps), max_steps)
            return cut_steps(split(values, max_steps), max_steps)
        except BadItem as error:
            raise self._bad_value(error, steps) from error

    def _bad_value(self, error: BadItem, steps: Int32Array | None) -> BadValue:
        error = error if steps is None else error.of(steps)
        wrong = self.sources[error.source]
        source = next(iter(self.inputs), self.name) if wrong.side == "const" else wrong.name
        return BadValue(source, error.row, error.value, error.problem)


def cut_steps(values: Values, max_steps: int) -> Values:
    """The first steps of each row; rows with no more are as they were."""
    steps = values.steps
    if not max_steps or steps is None or not (steps > max_steps).any():
        return values
    step_row = np.repeat(np.arange(len(steps)), steps)
    first = (np.cumsum(steps, dtype=np.int64) - steps)[step_row]
    kept = np.arange(len(step_row)) - first < max_steps
    items_kept = np.repeat(kept, values.lengths)
    items = values.items.take(items_kept) if isinstance(values.items, Strings) else values.items[items_kept]
    weights = None if values.weights is None else values.weights[items_kept]
    return replace(
        values, items=items, lengths=values.lengths[kept], steps=np.minimum(steps, max_steps), weights=weights
    )


def build_feature(named: NamedFeature, parsing: ParsingSection, recipe: Callable[[Any], Recipe]) -> Feature:
    """The feature that a section of the run file describes, in the mode of the run."""
    config, mode, sequence = named.section, parsing.resolved_fg_mode(), named.sequence
    is_encoded = mode is FgMode.FG_NONE
    made = (
        recipe(config) if mode not in (FgMode.FG_NONE, FgMode.FG_BUCKETIZE) or needs_recipe(config) else None
    )
    if is_encoded or mode is FgMode.FG_BUCKETIZE:
        separator = parsing.fg_encoded_multival_sep.encode()
        delim = None if sequence is None else sequence.delim.encode()
        sources: tuple[Input, ...] = (Input(COLUMN_SIDES[0], named.name, separator, delim),)
        transform = None
    else:
        assert made is not None
        expressions = made.expressions or (config.feature_name,)
        if sequence is not None and len(expressions) > 1 and not sequence.fields:
            # Of several inputs those of items are the steps; where there are none, all are.
            of_items = tuple(each for each in expressions if each.startswith("item:"))
            sequence = replace(sequence, fields=of_items)
            named = replace(named, sequence=sequence)
        sources = tuple(_input_of(each, named, mode, made.maps.get(each)) for each in expressions)
        transform = made.transform
    encoding: Encoding | None = None
    if made is None or not made.gives_strings or has_id_size(config):
        encoding = _encoding_of(config, mode, made)
    elif not config.stub_type:
        sizes = ", ".join(size for size in ID_SIZES if hasattr(config, size))
        raise ConfigError.at("", f"gives strings, which become ids by one of {sizes}")
    table = _table_of(named, encoding)
    is_dense = isinstance(encoding, NumberEncoding) and encoding.boundaries is None
    dense_embedding = (getattr(config, "autodis", None) or getattr(config, "mlp", None)) if is_dense else None
    return Feature(
        name=named.name,
        sources=sources,
        transform=transform,
        encoding=encoding,
        table=table,
        width=encoding.width if is_dense and isinstance(encoding, NumberEncoding) else 0,
        sequence=sequence,
        dense_embedding=dense_embedding,
        embedding_dim=(config.embedding_dim or 0) if dense_embedding is not None else 0,
        reads_text=made.reads_text if made is not None and transform is not None else _reads_text(encoding),
        is_stub=config.stub_type,
        use_mask=bool(config.use_mask),
    )


def _reads_text(encoding: Encoding | None) -> bool:
    return encoding is not None and encoding.reads_text


def needs_recipe(config: Any) -> bool:
    """Whether only the type knows how many rows the table has (tokens)."""
    return has_table(config) and table_rows(config) is None and not isinstance(config, VocabularyOptions)


def has_id_size(config: Any) -> bool:
    return any(getattr(config, size, None) for size in ID_SIZES)


def _input_of(expression: str, named: NamedFeature, mode: FgMode, entry_separator: str | None) -> Input:
    side, colon, name = expression.partition(":")
    options = dict(named.section)
    option = next((each for each in options if options[each] == expression), "expression")
    if not colon:
        side, name = COLUMN_SIDES[0], expression or named.section.feature_name
    elif not name:
        raise ConfigError.at(option, f"'{expression}' names no column; write side:column, such as user:age")
    elif side not in SIDES:
        raise ConfigError.at(option, f"'{expression}': unknown side '{side}'; {hint(side, SIDES)}")
    if side == "feature" and mode is not FgMode.FG_DAG:
        raise ConfigError.at(option, f"'{expression}': features of features need data_config.fg_mode: FG_DAG")
    sequence, separator = named.sequence, getattr(named.section, "separator", "").encode()
    delim = None
    if sequence is not None and side != "const" and sequence.is_sequence(expression, name):
        delim = sequence.delim.encode()
        if sequence.prefix and side != "feature":
            name = f"{sequence.prefix}{name}"
    if entry_separator is not None:
        separator = entry_separator.encode()
    return Input(side, name, separator, delim, is_map=entry_separator is not None)


def _encoding_of(config: Any, mode: FgMode, made: Recipe | None) -> Encoding:
    is_encoded = mode is FgMode.FG_NONE
    option = "fg_encoded_default_value" if is_encoded else "default_value"
    default = getattr(config, option, None) or None
    separator = getattr(config, "separator", "")
    boundaries = getattr(config, "boundaries", None)
    token_rows = None if made is None else made.num_rows
    if made is not None and token_rows is not None and not is_encoded:
        default, separator = made.default, " "
    common: dict[str, Any] = {
        "default": default,
        "separator": separator,
        "weighted": getattr(config, "weighted", False),
        # Numbers that boundaries cut may be any number, encoded or not.
        "max_values": 0 if boundaries else getattr(config, "value_dim", None) or 0,
        "default_option": option,
        "fills_sequences": not is_encoded,
    }
    num_rows = token_rows if token_rows is not None else table_rows(config)
    has_ids = token_rows is not None or has_id_size(config)
    is_growing = bool(getattr(config, "zch", None) or getattr(config, "dynamicemb", None))
    if is_encoded and (has_ids or boundaries):
        if num_rows is None:
            num_rows = vocabulary_of(config).num_rows
        num_rows = 0 if is_growing else num_rows
        return IdEncoding(Rule.PARSE_INTEGER, num_rows, **common)
    if has_ids and not boundaries:
        if token_rows is not None or getattr(config, "num_buckets", None) is not None:
            assert num_rows is not None
            return IdEncoding(Rule.PARSE_INTEGER, num_rows, **common)
        if getattr(config, "hash_bucket_size", None) is not None:
            return IdEncoding(Rule.HASH, config.hash_bucket_size, **common)
        if is_growing:
            return IdEncoding(Rule.HASH, 0, **common)
        return vocabulary_of(config, **common)
    return _number_encoding(config, option, default, separator, boundaries, mode)


def vocabulary_of(config: Any, **options: Any) -> IdEncoding:
    """The vocabulary of a section: written there, or in a file."""
    unknown_row = config.default_bucketize_value
    first_row = 2 if unknown_row is None else 0
    rows = dict(config.vocab_dict) or {value: first_row + i for i, value in enumerate(config.vocab_list)}
    if config.vocab_file:
        rows = read_vocabulary(config.vocab_file, config.asset_dir, first_row)
    return vocabulary_encoding(rows, config.default_value, unknown_row, **options)


def _number_encoding(
    config: Any, option: str, default: str | None, separator: str, boundaries: Any, mode: FgMode
) -> NumberEncoding:
    width, normalizer = getattr(config, "value_dim", None) or 1, None
    text = getattr(config, "normalizer", None)
    if text and mode in (FgMode.FG_NORMAL, FgMode.FG_DAG):
        try:
            normalizer = parse_normalizer(text)
        except ValueError as error:
            raise ConfigError.at("normalizer", f"'{text}': {error}") from error
    numbers = np.empty(0)
    has_missing_row = bool(boundaries and getattr(config, "missing_bucket", False))
    if default == MEAN:
        raise ConfigError.at(
            option, "is 'mean'; penstock vocab RUN --write puts the mean of the training data there"
        )
    if default is not None and not has_missing_row:
        tokens = default.split(separator) if separator else [default]
        try:
            numbers = np.array([float(token) for token in tokens])
        except ValueError as error:
            raise ConfigError.at(option, f"'{default}' is not a number") from error
        if len(numbers) not in (1, width):
            raise ConfigError.at(option, f"has {len(numbers)} numbers; value_dim is {width}")
        numbers = np.resize(numbers, width)  # one number stands for each of a vector
    edges = np.array(boundaries, float) if boundaries else None
    fills_sequences = mode is not FgMode.FG_NONE
    return NumberEncoding(
        width, numbers, normalizer, edges, option, fills_sequences, has_missing_row=has_missing_row
    )


def _table_of(named: NamedFeature, encoding: Encoding | None) -> TableSpec | None:
    config = named.section
    is_ids = isinstance(encoding, IdEncoding) or (
        isinstance(encoding, NumberEncoding) and encoding.boundaries is not None
    )
    if not is_ids or config.embedding_dim is None:
        return None
    growing = getattr(config, "zch", None) or getattr(config, "dynamicemb", None)
    if growing is not None:
        num_rows = getattr(growing, "zch_size", None) or growing.max_capacity
    elif isinstance(encoding, IdEncoding):
        num_rows = encoding.num_rows
    else:
        assert isinstance(encoding, NumberEncoding)
        assert encoding.boundaries is not None
        num_rows = len(encoding.boundaries) + 1 + encoding.has_missing_row
    return TableSpec(
        name=config.embedding_name or f"{named.name}_emb",
        num_rows=num_rows,
        dim=config.embedding_dim,
        pooling=config.pooling,
        init_fn=config.init_fn,
        trainable=config.trainable,
        data_type=config.data_type,
        weighted=getattr(config, "weighted", False),
        growing=growing,
    )
