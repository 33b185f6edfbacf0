"""What trains without an error and still is hardly meant: one line each, with figures and the key that changes it.

`check` shows these remarks, and `train` warns of them when it starts. They come from the look at the data that is taken
for the report; what a column probably is, `prep.data_advice` knows. Nothing is said of fewer rows than would make a
figure more than chance.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.features.feature import Feature
from penstock.features.sections import FgMode, named_features
from penstock.features.sections.types import IdFeature, RawFeature
from penstock.observe.data_profile import DataLook, shown_value
from penstock.observe.summary import counted
from penstock.prep.data_advice import MIN_ROWS, is_id_name, is_sorted, is_time, stands_together
from penstock.prep.profile import ColumnFacts, DataProfile, is_moment, is_number, is_text
from penstock.readers.columns import is_list
from penstock.run.requirements import model_section
from penstock.run.run_config import RunConfig
from penstock.run.training import TrainingPlan

logger = logging.getLogger(__name__)

MAX_OF_A_KIND = 3
"""Lines about one trap; more columns in it are named together."""
MIN_MISSING_PART = 0.01
LARGE_NUMBER = 1000
NEAR_MEAN = 0.1
"""Standard deviations: a 0 that is nearer to the mean stands for it."""
MANY_VALUES, DISTINCT_PART = 1000, 0.9
"""From so many rows on, ids of which this part is distinct stand in one row each."""
MIN_RUN_ROWS, MIN_IN_BATCH, MIN_BATCHES = 8, 32, 4
"""Rows of one user that stand together, users in a batch, and batches of users: what is less, or more, is harmless."""


@dataclass(frozen=True, slots=True)
class _Remark:
    kind: str
    subject: str
    """The column, feature or key."""
    text: str


def remarks(run: RunConfig, plan: TrainingPlan, look: DataLook) -> list[str]:
    """One line each; those of the run file first, then by column in the order of the features."""
    found = [*_of_files(plan), *_of_features(plan)]
    try:
        found += [] if look.profile is None else _of_values(run, plan, look.profile)
    except Exception:  # a run that could be trained never fails for a remark
        logger.debug("there are no remarks on the values", exc_info=True)
    lines = []
    for kind in dict.fromkeys(remark.kind for remark in found):
        same = [remark for remark in found if remark.kind == kind]
        lines += [f"{remark.subject}: {remark.text}" for remark in same[:MAX_OF_A_KIND]]
        if others := [remark.subject for remark in same[MAX_OF_A_KIND:]]:
            lines.append(f"{', '.join(others)}: the same ({kind})")
    return lines


def _of_files(plan: TrainingPlan) -> Iterator[_Remark]:
    source, held_out = plan.source, plan.evaluation_source
    if held_out is not None:
        trained = {os.path.realpath(file.path) for file in source.scanned.files}
        both = [file.path for file in held_out.scanned.files if os.path.realpath(file.path) in trained]
        if both:
            text = (
                f"{both[0]} is in train_input_path too ({len(both):,} of "
                f"{counted(len(held_out.scanned.files), 'file')}), so that metrics say nothing of new rows; name files "
                "that are not trained on (Dataset.split makes them)"
            )
            yield _Remark("files", "eval_input_path", text)
    num_rows, batch_rows = source.scanned.num_rows, source.max_batch_rows
    if not source.by_cost and 0 < num_rows < batch_rows:
        smaller = 1 << max(0, (num_rows // 8).bit_length() - 1)
        text = f"is {batch_rows:,} but there are only {num_rows:,} rows: an epoch is one step; set it to {smaller}"
        yield _Remark("rows", "data_config.batch_size", text)


def _of_features(plan: TrainingPlan) -> Iterator[_Remark]:
    parser = plan.source.parser
    for feature in parser.features:
        if labels := [column for column in feature.inputs if column in parser.label_fields]:
            text = f"reads '{labels[0]}', which is the label: it knows the answer; leave it out"
            yield _Remark("label", f"feature '{feature.name}'", text)


def _of_values(run: RunConfig, plan: TrainingPlan, profile: DataProfile) -> Iterator[_Remark]:
    data, parser = run.data_config, plan.source.parser
    columns = {column.name: column for column in profile.columns}
    looked_at = "" if profile.is_whole else " looked at"
    binary, _, _ = model_section(run).label_columns(data.label_fields)
    for name in parser.label_fields:
        if name in columns and name not in data.label_map:
            yield from _of_label(columns[name], looked_at, is_binary=name in binary)
    if not data.shuffle:
        yield from _of_order(plan, columns)
    sections = {named.name: (named.key[2], named.section) for named in named_features(run.feature_configs)}
    for feature in parser.features:
        if len(feature.sources) != 1:  # a map that is the same in all rows still has something for other keys
            continue
        column = columns.get(feature.sources[0].name)
        if column is None or column.num_rows < MIN_ROWS or feature.name not in sections:
            continue
        kind, section = sections[feature.name]
        what = f"is {shown_value(column.min_value)} in all" if column.distinct else "has no value in any of"
        if column.distinct + min(1, _num_missing(column)) <= 1 and not _is_nested(column):
            text = f"{what} {column.num_rows:,} rows{looked_at} and teaches nothing; leave feature '{feature.name}' out"
            yield _Remark("constant", f"column '{column.name}'", text)
        elif isinstance(section, RawFeature):
            yield from _of_number(column, section, f"{kind} '{feature.name}'", data.resolved_fg_mode())
        elif isinstance(section, IdFeature) and not _is_joined(profile, feature):
            yield from _of_id(column, section, f"{kind} '{feature.name}'", profile.is_whole)


def _of_label(column: ColumnFacts, looked_at: str, *, is_binary: bool) -> Iterator[_Remark]:
    subject, low, high = f"label '{column.name}'", column.min_value, column.max_value
    if column.num_rows < MIN_ROWS or column.mean is None:
        return
    if column.distinct == 1:
        text = f"is {shown_value(low)} in all {column.num_rows:,} rows{looked_at}; there is nothing to learn"
        yield _Remark("constant label", subject, text)
    elif is_binary and (low < 0 or high > 1):
        text = (
            f"is {shown_value(low)} to {shown_value(high)}, and a binary loss takes 0 to 1: training ends at the first "
            f"other one; say what they mean in data_config.label_map: {{{column.name}: {{{low:g}: 0, {high:g}: 1}}}}"
        )
        yield _Remark("label", subject, text)
    elif is_binary and column.distinct > 2:
        text = (
            f"has {column.distinct:,} values between 0 and 1, which a binary loss takes for probabilities; if they are "
            "none, use l2_loss, or write 0 and 1"
        )
        yield _Remark("label", subject, text)


def _of_order(plan: TrainingPlan, columns: Mapping[str, ColumnFacts]) -> Iterator[_Remark]:
    """Rows sorted by a label, or by the id of which a batch holds fewest; they are not shuffled."""
    parser, batch_rows = plan.source.parser, plan.source.max_batch_rows
    cure = "set data_config.shuffle: true"
    for label in (columns[name] for name in parser.label_fields if name in columns):
        num_neighbours = label.rises + label.falls + label.ties
        if stands_together(label):
            text = (
                f"rows are sorted by it: {1 - label.tie_rate:.1%} of neighbours differ, {1 - label.tie_chance:.0%} in "
                f"random order, so that batches are of one kind; {cure}"
            )
            yield _Remark("order", f"label '{label.name}'", text)
        elif label.distinct > 2 and is_sorted(label):
            part = max(label.rises, label.falls) / max(1, num_neighbours)
            text = f"rows are sorted by it: {part:.0%} of neighbours go one way; {cure}"
            yield _Remark("order", f"label '{label.name}'", text)
    grouped = []
    for feature in parser.features:
        column = columns.get(feature.sources[0].name)
        if column is None or feature.table is None or column.num_rows < MIN_ROWS or column.ties == 0:
            continue
        in_batch = batch_rows * (1 - column.tie_rate)
        is_grouped = 1 - column.tie_rate <= 1 / MIN_RUN_ROWS and stands_together(column)
        if is_grouped and in_batch < MIN_IN_BATCH and column.distinct > MIN_BATCHES * max(1.0, in_batch):
            grouped.append((column.distinct, column.name, 1 / max(1e-9, 1 - column.tie_rate), in_batch))
    if grouped:
        # What depends on the id, such as the age of a user, stands together as well.
        _, name, run_rows, in_batch = max(grouped)
        text = (
            f"rows are sorted by it, about {run_rows:,.0f} of each value, so that a batch of {batch_rows:,} has about "
            f"{max(1, round(in_batch)):,} values; {cure}"
        )
        yield _Remark("order of ids", f"column '{name}'", text)


def _of_number(column: ColumnFacts, section: RawFeature, name: str, mode: FgMode) -> Iterator[_Remark]:
    """What may be wrong with a number as such comes before its missing values."""
    if _is_nested(column) or column.min_value is None:
        return
    subject, is_raw = f"column '{column.name}'", mode is not FgMode.FG_NONE
    are_numbers = is_number(column.type)
    low, high = (_as_number(value) if are_numbers else 0.0 for value in (column.min_value, column.max_value))
    if are_numbers and not section.boundaries:
        if is_time(column) and not section.normalizer:
            unit = "days" if pa.types.is_date(column.type) else "seconds"
            since = f", {unit} since 1970" if is_moment(column.type) else ""
            text = f"is a time and enters as a plain number ({low:,.0f} to {high:,.0f}{since}); "
            cure = (
                f"give {name} boundaries or a normalizer, or make columns such as hour, weekday or age of it"
            )
            yield _Remark("time", subject, text + cure)
        elif is_id_name(column.name) and not is_time(column) and not pa.types.is_boolean(column.type):
            text = f"looks like an id ({column.distinct:,} values, {low:,.0f} to {high:,.0f}) but enters as a number; "
            yield _Remark("id", subject, f"{text}make {name} an id_feature with {_buckets(column)}")
        elif not section.normalizer and LARGE_NUMBER < max(abs(low), abs(high)) < np.inf:
            text = f"{_figure(low)} to {_figure(high)} enter as they are and drown smaller numbers; "
            mean, deviation = (_figure(each or 0.0, "") for each in (column.mean, column.deviation))
            scale = f"method=zscore,mean={mean},standard_deviation={deviation}"
            where = f"give {name}" if is_raw else f"set data_config.fg_mode: FG_NORMAL and give {name}"
            yield _Remark("large", subject, f'{text}{where} normalizer: "{scale}", or boundaries')
    missing = _num_missing(column) / column.num_rows
    if (
        not is_raw
        or section.missing_bucket
        or "default_value" in section.model_fields_set
        or missing < MIN_MISSING_PART
    ):
        return
    if section.boundaries and are_numbers:
        zero, first, last = np.searchsorted(section.boundaries, [0.0, low, high], side="right")
        if not first <= zero <= last:  # missing values have an interval of their own
            return
    if column.mean is not None and abs(column.mean) <= NEAR_MEAN * (column.deviation or 0.0):
        return  # 0 is what the cure would be
    before = " before they are normalised" if section.normalizer else ""
    among, cure = "", "default_value"
    if column.mean is not None:
        among = f", among numbers from {_figure(low)} to {_figure(high)}"
        cure = f'default_value: "{_figure(column.mean, "")}", their mean'
    text = f'{missing:.1%} of the values are missing and become 0{before}{among}; give {name} {cure}, or "0" if meant'
    yield _Remark("missing", subject, text)


def _of_id(column: ColumnFacts, section: IdFeature, name: str, is_whole: bool) -> Iterator[_Remark]:
    subject, num_values = f"column '{column.name}'", column.num_rows - column.num_nulls
    if (
        is_whole
        and not _is_nested(column)
        and num_values >= MANY_VALUES
        and column.distinct >= DISTINCT_PART * num_values
        and column.length_range != (0, 0)
    ):
        text = f"{_about(column)} of {num_values:,} values are distinct, so that ids are learned from one row each; "
        split = ", or split it into words by its separator" if is_text(column.type) else ""
        yield _Remark("distinct", subject, f"{text}leave {name} out{split}")
    elif section.hash_bucket_size is not None and column.distinct > section.hash_bucket_size:
        size = section.hash_bucket_size
        text = (
            f"{_about(column)} distinct values share {size:,} buckets, {column.distinct / size:.1f} in each; "
        )
        yield _Remark("buckets", subject, f"{text}give {name} {_buckets(column)}")


def _is_joined(profile: DataProfile, feature: Feature) -> bool:
    """Whether a string holds several values, so that strings were counted and not values."""
    if profile.first_rows is None or feature.table is None:
        return False
    values = profile.first_rows.column(feature.inputs[0])
    if not is_text(values.type):
        return False
    return any(pc.any(pc.match_substring(values, each)).as_py() for each in feature.separators)


def _as_number(value: Any) -> float:
    """As features take it: moments in whole seconds or days since 1970."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).timestamp() // 1
    if isinstance(value, date):
        return float((value - date(1970, 1, 1)).days)
    return float(value)


def _figure(value: float, separator: str = ",") -> str:
    return f"{value:{separator}.0f}" if abs(value) >= LARGE_NUMBER else f"{value:.4g}"


def _num_missing(column: ColumnFacts) -> int:
    return column.num_nulls + column.num_nan + column.num_empty


def _is_nested(column: ColumnFacts) -> bool:
    return is_list(column.type) or pa.types.is_map(column.type)


def _about(column: ColumnFacts) -> str:
    return f"{'' if column.distinct_is_exact else 'about '}{column.distinct:,}"


def _buckets(column: ColumnFacts) -> str:
    """Twice as many as there are values, rounded up, so that most have one of their own."""
    return f"hash_bucket_size: {1 << (2 * column.distinct - 1).bit_length()}"
