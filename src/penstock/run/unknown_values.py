"""What a sample of the training data says of its values: how many a feature does not know, and their kinds.

The sample is that of the data profile. What is remarkable of it is a warning at the start of `train`, and a line of
`check`.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.config.errors import DataError, PenstockError
from penstock.features.encoding import IdEncoding
from penstock.features.feature import Feature
from penstock.features.parser import Parser, kind_in
from penstock.features.strings import Rule
from penstock.features.value_counts import NOT_IN_VOCABULARY, ValueCounts, add_counts, joined_kind
from penstock.features.values import BadValue
from penstock.observe.summary import LARGE_SHARE, shown_share, unknown_line
from penstock.training.evaluate import counts_record

_logger = logging.getLogger(__name__)


class SampledValues:
    """Counts and kinds of the feature columns, over the batches of a sample."""

    def __init__(self, parser: Parser) -> None:
        self._parser = Parser(
            parser.features, parser.label_fields, label_map=parser.label_map, counts_values=True
        )
        self._examples: dict[str, Any] = {}
        self.bad_value: str | None = None
        """The first value that training would end at."""
        self.counts: dict[str, ValueCounts] = {}
        self.kinds: dict[str, str] = {}
        """By column; one without values has no kind."""

    def add(self, batch: pa.RecordBatch) -> None:
        """See some rows; where a value cannot be used, nothing is counted."""
        names = set(batch.schema.names)
        if not names.issuperset(self._parser.columns):  # of very many columns, the sample has the first
            some = [each for each in self._parser.features if names.issuperset(each.inputs)]
            self._parser = replace(self._parser, features=some)
        for feature in self._parser.features:
            for column in feature.inputs:
                if (found := kind_in(batch, column, feature)) is not None:
                    self._examples.setdefault(column, found[1])
                    self.kinds[column] = joined_kind(self.kinds.get(column), found[0])
        try:
            if self.bad_value is None:
                add_counts(self.counts, self._parser.parse(batch).counts)
        except PenstockError as error:
            bad, text = error.__cause__, str(error)
            if isinstance(bad, BadValue):  # the rows of a sample have other numbers than those of the file
                text = str(DataError.at(bad.problem, column=bad.column, value=bad.value))
            self.bad_value = text
            self.counts.clear()

    def records(self) -> dict[str, dict[str, Any]]:
        """For JSON: by feature with something unknown or missing, its column, its counts and the remark on them."""
        found = counts_record(self.counts)
        for feature in self._parser.features:
            if feature.name in found and isinstance(feature.encoding, IdEncoding):
                column, counts = next(iter(feature.inputs), feature.name), self.counts[feature.name]
                remark = unknown_remark(feature, feature.encoding, column, counts, self._examples.get(column))
                found[feature.name] |= {"column": column, "remark": remark}
        return found


def unknown_remark(
    feature: Feature, encoding: IdEncoding, column: str, counts: ValueCounts, example: Any
) -> str | None:
    """What is worth saying of the values that a feature does not know, with what to do; None: nothing."""
    is_range = encoding.rule is Rule.PARSE_INTEGER
    if not counts.unknown or (not is_range and counts.unknown_share < LARGE_SHARE):
        return None
    part = f"{shown_share(counts.unknown_share)} of the values of column '{column}' are"
    if counts.unknown == counts.values:
        part = f"every value of column '{column}', such as {example!r}, is"
    if is_range:
        rows = f"0 to {encoding.num_rows - 1:,}"
        return (
            f"feature '{feature.name}': {part} outside {rows}, the ids of its table; a row with one ends training (or "
            "is left out with data_config.bad_rows: quarantine); raise num_buckets, or use hash_bucket_size"
        )
    word = next(iter(encoding.rows_by_value), "")
    return (
        f"feature '{feature.name}': {part} outside its vocabulary ({word!r}, ...), and all such values "
        "are one; correct or complete the vocabulary, or use hash_bucket_size"
    )


def sample_remarks(profile: Mapping[str, Any], training: bool = False) -> list[str]:
    """The remarks that a data profile holds on bad and unknown values, and those on rows without a value.

    In `training`, only what is silent there: an id outside of its table is an error.
    """
    end = "training ends at such a row, unless data_config.bad_rows is quarantine"
    found = [f"{profile['bad_value']}; {end}"] if profile["bad_value"] else []
    for name, record in profile["value_counts"].items():
        if record["remark"] is not None and (not training or record["outside"] == NOT_IN_VOCABULARY):
            found.append(record["remark"])
        share = record["missing"] / max(1, record["rows"])
        if share >= LARGE_SHARE and not training:
            rows = f"{shown_share(share)} of the rows have no value in column '{record['column']}'"
            found.append(f"feature '{name}': {rows}")
    return found


def warn_of_unknown(counts: Mapping[str, ValueCounts]) -> None:
    """For those who get scores or metrics as values, and read no summary."""
    large = {name: each for name, each in counts.items() if each.unknown_share >= LARGE_SHARE}
    if large:
        _logger.warning("values that the model does not know: %s", unknown_line(large))


def kinds_to_save(sampled: Mapping[str, Any] | None, before: Mapping[str, str]) -> dict[str, str]:
    """The kinds of a profile, after those of the checkpoint that a run goes on from."""
    found: Mapping[str, str] = (sampled or {}).get("column_kinds", {})
    kinds = dict(before)
    for column, kind in found.items():
        kinds[column] = joined_kind(kinds.get(column), kind)
    return kinds
