"""The command `init`: a starting run file from data, in which every choice is explained; without torch."""

import json
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.config.errors import ConfigError, hint
from penstock.config.sizes import MIB
from penstock.config.syntax import resolve_plain
from penstock.features.sections.types import WIDTH_STEP
from penstock.prep.column_roles import ColumnRole, Role, find_label, roles_of
from penstock.prep.hold_out import Parts, find_parts, hold_out
from penstock.prep.profile import ColumnFacts, DataProfile, choose_pieces, is_text, profile_pieces
from penstock.prep.statistics import quantile_boundaries
from penstock.readers.files import list_files
from penstock.readers.scan import ReadRequest, ScannedFiles, dataset_type_of, scan_files
from penstock.readers.sections import ReadingSection
from penstock.run.run_config import load_run
from penstock.runtime.budget import Share

TEMPLATES = ("deepfm", "wide_and_deep")
_READER_BYTES = 256 * MIB
_SAMPLE_ROWS, _SAMPLE_BYTES = 200_000, 96 * MIB
_NUM_INTERVALS = 40
_DIM = 16
_MANY_NUMBERS = 100
"""With more columns of numbers WideAndDeep is faster and better than DeepFM: intervals have one weight each."""
_WIDTH = 110
_MANY_DAYS = 180
_ABOUT_TIMES = (
    "Times as their parts, in UTC. Months and years are those of days alone: the moment at which a row was made is in "
    "another year for later rows."
)


@dataclass(frozen=True, slots=True)
class StartingRun:
    """A run file that was written, and what it says of the columns."""

    path: Path
    roles: tuple[ColumnRole, ...]
    parts: Parts
    num_rows: int

    def describe(self) -> str:
        counts = {role: sum(each.role is role for each in self.roles) for role in Role}
        used = {
            "ids": counts[Role.ID],
            "with several values": counts[Role.VALUES],
            "numbers": counts[Role.NUMBER] + counts[Role.VECTOR],
            "times": counts[Role.TIME],
            "left out": counts[Role.LEFT_OUT],
        }
        shown = ", ".join(f"{count} {name}" for name, count in used.items() if count)
        [label] = (each.name for each in self.roles if each.role is Role.LABEL)
        return (
            f"{self.path}: label {label}; {len(self.roles) - 1} columns: {shown}\n"
            f"  train {self.parts.train}\n  eval  {self.parts.evaluation} ({self.parts.why})\n"
            f"  next: penstock train {self.path}"
        )


def init(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str] = "run.yaml",
    *,
    label: str | None = None,
    template: str | None = None,
    overwrite: bool = False,
) -> StartingRun:
    """Look at some rows of `data`, a file, folder or glob, and write a run file that trains on it.

    Where no evaluation data stand beside it, rows or files are held out. `label` is guessed unless given; `template` is
    deepfm, or wide_and_deep where there are more than a hundred columns of numbers.
    """
    path = Path(out)
    if template is not None and template not in TEMPLATES:
        raise ConfigError(f"--template: there is no '{template}'; {hint(template, TEMPLATES)}")
    if path.exists() and not overwrite:
        raise ConfigError(f"{path} is there already; give another --out, or --overwrite")
    parts, reading = find_parts(os.fspath(data)), ReadingSection()
    files = list_files(parts.train, cure="")
    scanned = scan_files(reading, files, ReadRequest())
    if not scanned.num_rows:
        raise ConfigError(f"{parts.train}: has no rows")
    profile, rows = _look(scanned)
    label_column = find_label(profile, label)
    label_map, outcomes = _label_numbers(label_column, rows[label_column.name].combine_chunks())
    codes = _codes(reading, scanned, profile) if dataset_type_of(reading, files) == "CsvDataset" else ()
    roles = roles_of(profile, rows, label_column.name, outcomes, codes)
    if not any(each.role not in (Role.LABEL, Role.LEFT_OUT) for each in roles):
        raise ConfigError(f"{parts.train}: no column besides '{label_column.name}' can be a feature")
    if not parts.evaluation:
        texts = [each.name for each in roles if each.role in (Role.ID, Role.VALUES)]
        texts = [name for name in texts if not pa.types.is_nested(scanned.columns.field(name).type)]
        copied = scan_files(reading, files, ReadRequest(None, tuple(texts)))
        parts = hold_out(copied, Share("reader", max(_READER_BYTES, copied.sizes.min_bytes)), parts, path)
    is_binary = bool(label_map) or set(np.unique(outcomes).tolist()) <= {0.0, 1.0}
    has_many = sum(each.role is Role.NUMBER for each in roles) > _MANY_NUMBERS
    writer = _Writer(roles, profile, template or TEMPLATES[has_many], is_binary, has_many)
    text = "\n".join(
        [*writer.head(path, parts, label_map), *writer.features(), *writer.model(), *writer.training()]
    )
    load_run(text)  # a mistake here would be ours
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="utf-8")
    return StartingRun(path, tuple(roles), parts, profile.num_rows)


def _look(scanned: ScannedFiles) -> tuple[DataProfile, pa.Table]:
    """Facts of all columns, and some of the rows that were looked at."""
    kept: list[pa.RecordBatch] = []
    taken = [0, 0]

    def keep(batch: pa.RecordBatch) -> None:
        if taken[0] < _SAMPLE_ROWS and taken[1] < _SAMPLE_BYTES:
            kept.append(batch.take(list(range(batch.num_rows))))
            taken[0] += batch.num_rows
            taken[1] += batch.nbytes

    share = Share("reader", max(_READER_BYTES, scanned.sizes.min_bytes))
    pieces = choose_pieces(scanned.blocks, scanned.row_bytes)
    profile = profile_pieces(scanned, share, pieces, on_batch=keep)
    return profile, pa.Table.from_batches(kept, scanned.columns)


def _codes(reading: ReadingSection, scanned: ScannedFiles, profile: DataProfile) -> list[str]:
    """Columns of text files that are read as numbers but hold codes, such as 02134."""
    names = [each.name for each in profile.columns if pa.types.is_integer(each.type)]
    if not names:
        return []
    texts = scan_files(reading, scanned.files, ReadRequest(tuple(names), tuple(names)))
    share = Share("reader", max(_READER_BYTES, texts.sizes.min_bytes))
    found = profile_pieces(texts, share, choose_pieces(texts.blocks, texts.row_bytes)).columns
    return [each.name for each in found if is_text(each.type) and not each.is_number_text]


def _label_numbers(column: ColumnFacts, values: Any) -> tuple[dict[str, int], Any]:
    """What the words of a label mean, where it has words, and the label of each row."""
    if column.num_nulls or column.num_nan:
        missing = column.num_nulls + column.num_nan
        raise ConfigError(f"--label: '{column.name}' is missing in {missing:,} rows; every row needs a label")
    values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    if is_text(values.type):
        words = sorted(pc.unique(values).to_pylist())
        if len(words) != 2:
            raise ConfigError(
                f"--label: '{column.name}' has {len(words):,} words; init writes files for two, or for numbers"
            )
        return {words[0]: 0, words[1]: 1}, (values.to_numpy(zero_copy_only=False) == words[1]).astype(float)
    if pa.types.is_nested(values.type):
        raise ConfigError(f"--label: '{column.name}' is a {values.type}; a label is one number")
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    numbers = np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    distinct = np.unique(numbers)
    if len(distinct) == 2 and not set(distinct.tolist()) <= {0.0, 1.0}:
        low, high = (f"{value:g}" for value in distinct)
        return {low: 0, high: 1}, (numbers == distinct[1]).astype(float)
    return {}, numbers


@dataclass(eq=False)
class _Writer:
    """The text of the run file, part by part."""

    roles: Sequence[ColumnRole]
    profile: DataProfile
    template: str
    is_binary: bool
    has_many_numbers: bool

    def __post_init__(self) -> None:
        self.embedded: list[str] = []
        self.dense: list[str] = []
        self.linear: list[str] = []
        """Ids that the wide part alone reads."""
        self.is_linear = self.has_many_numbers and self.template == "wide_and_deep"

    def head(self, path: Path, parts: Parts, label_map: dict[str, int]) -> Iterator[str]:
        [label] = (each.name for each in self.roles if each.role is Role.LABEL)
        num_rows, batch_size = self.profile.num_rows, self.batch_size
        yield f"# Written by penstock init from {parts.given}: a baseline to start from. Every line may be changed."
        yield "#"
        yield f"#   penstock train {path}"
        if parts.test:
            yield f"#   penstock eval {path} --checkpoint_path best --eval_input_path {parts.test}"
        yield ""
        yield f"train_input_path: {_plain(parts.train)}"
        yield f"eval_input_path: {_plain(parts.evaluation)} # {parts.why}"
        yield f"model_dir: runs/{path.stem}"
        yield ""
        yield "# memory: {limit: 4GiB} # for everything together; unless it is set, 60 % of the machine's"
        yield ""
        yield "data_config:"
        yield f"  batch_size: {batch_size} # {num_rows:,} rows: {-(-num_rows // batch_size):,} steps an epoch"
        yield "  eval_batch_size: 4096"
        yield "  fg_mode: FG_NORMAL # features are made of the columns as they are in the files"
        yield f"  label_fields: [{_plain(label)}]"
        if label_map:
            meanings = ", ".join(f"{json.dumps(word)}: {number}" for word, number in label_map.items())
            yield f"  label_map: {{{_plain(label)}: {{{meanings}}}}} # swap 0 and 1 if it is meant the other way round"
        yield "  shuffle: true # another order in each epoch"
        left_out = [each for each in self.roles if each.role is Role.LEFT_OUT]
        if left_out:
            yield ""
            yield "# Left out:"
            yield from (f"#   {each.name}: {each.why}" for each in left_out)

    @property
    def batch_size(self) -> int:
        num_rows = self.profile.num_rows
        return 256 if num_rows < 50_000 else 1024 if num_rows < 2_000_000 else 4096

    def features(self) -> Iterator[str]:
        yield ""
        yield "feature_configs:"
        sections = [
            (
                Role.ID,
                "Ids and words. A hash has several rows for each value, so that few share one.",
                self._id,
            ),
            (Role.VALUES, "Several values in a row: the mean of their vectors.", self._values),
            (Role.TIME, _ABOUT_TIMES, self._time),
            (Role.NUMBER, self._about_numbers(), self._number),
            (Role.VECTOR, "Vectors, as they are.", self._vector),
        ]
        for role, comment, write in sections:
            found = [each for each in self.roles if each.role is role]
            if found:
                yield from textwrap.wrap(comment, _WIDTH - 4, initial_indent="  # ", subsequent_indent="  # ")
                for each in found:
                    yield from write(each)

    def _about_numbers(self) -> str:
        about = "Numbers in intervals of about equally many rows; a number that fills one has one of its own."
        missing = " A missing number has an interval of its own (missing_bucket)."
        copies = (
            f" Where it has more than {_NUM_INTERVALS} values, the number itself as well, brought to a mean of 0 and a "
            "deviation of 1, for the deep part."
        )
        has_missing = any(each.has_missing for each in self.roles if each.role is Role.NUMBER)
        if self.is_linear:
            copies = (
                " They are in the wide part alone, a weight for each interval; the deep part has the number itself, "
                "brought to a mean of 0 and a deviation of 1."
            )
        return about + (missing if has_missing else "") + copies

    def _id(self, each: ColumnRole) -> Iterator[str]:
        size: dict[str, Any] = {"hash_bucket_size": _num_buckets(each.distinct)}
        comment = f"about {each.distinct:,} values"
        if each.words and self.profile.is_whole:
            size, comment = {"vocab_list": list(each.words)}, f"all {len(each.words)} values"
        yield from self._feature("id_feature", each.name, size, comment)

    def _values(self, each: ColumnRole) -> Iterator[str]:
        options: dict[str, Any] = {"hash_bucket_size": _num_buckets(each.distinct), "pooling": "mean"}
        if each.separator not in ("", "\x1d"):
            options["separator"] = each.separator
        if each.weighted:
            options["weighted"] = True
        yield from self._feature(
            "id_feature", each.name, options, f"{each.why}; about {each.distinct:,} of them"
        )

    def _time(self, each: ColumnRole) -> Iterator[str]:
        parts: dict[str, list[int]] = {"weekday": list(range(1, 7))}
        if not each.is_day:
            parts = {"hour": list(range(1, 24)), **parts}
        elif len(each.sample):
            ends = each.sample[[0, -1]].astype("datetime64[s]")
            first, last = (ends.astype("datetime64[Y]").astype(int) + 1970).tolist()
            if ends[1] - ends[0] >= np.timedelta64(_MANY_DAYS, "D"):
                parts["month"] = list(range(2, 13))
            if last > first:
                parts["year"] = list(range(first + 1, last + 1))
        for part, boundaries in parts.items():
            options: dict[str, Any] = {
                "expression": f"{part}({each.formula})",
                "variables": [f"context:{each.name}"],
                "boundaries": boundaries,
            }
            if each.has_missing:
                options["missing_bucket"] = True
            yield from self._feature("expr_feature", each.name, options, suffix=f"_{part}")

    def _number(self, each: ColumnRole) -> Iterator[str]:
        found = quantile_boundaries(each.sample, _NUM_INTERVALS)
        boundaries = [int(start) if start.is_integer() and abs(start) < 1e15 else start for start in found]
        if boundaries:
            options: dict[str, Any] = {"boundaries": boundaries}
            if each.has_missing:
                options["missing_bucket"] = True
            low, high = each.sample[0], each.sample[-1]
            comment = f"from {low:.6g} to {high:.6g}"
            names = self.linear if self.is_linear else self.embedded
            yield from self._feature("raw_feature", each.name, options, comment, "_interval", names)
        if self.is_linear or each.distinct > _NUM_INTERVALS:
            yield from self._feature("raw_feature", each.name, _scaled(each), names=self.dense)

    def _vector(self, each: ColumnRole) -> Iterator[str]:
        options = {"value_dim": each.width}
        yield from self._feature("raw_feature", each.name, options, each.why, names=self.dense)

    def _feature(
        self,
        kind: str,
        column: str,
        options: dict[str, Any],
        comment: str = "",
        suffix: str = "",
        names: list[str] | None = None,
    ) -> Iterator[str]:
        name = re.sub(r"\W+", "_", column) + suffix
        while name in {*self.embedded, *self.dense, *self.linear}:
            name += "_"
        names = self.embedded if names is None else names
        names.append(name)
        fields: dict[str, Any] = {"feature_name": name}
        if name != column and "expression" not in options:
            fields["expression"] = f"user:{column}"
        fields.update(options)
        if names is not self.dense:
            fields["embedding_dim"] = WIDTH_STEP if names is self.linear else _DIM
        short = ", ".join(f"{key}: {_plain(value)}" for key, value in fields.items())
        if len(short) + len(kind) < _WIDTH - 10:
            yield f"  - {kind}: {{{short}}}" + (f" # {comment}" if comment else "")
            return
        yield f"  - {kind}:" + (f" # {comment}" if comment else "")
        for key, value in fields.items():
            yield from _wrapped(f"      {key}: ", value)

    def model(self) -> Iterator[str]:
        everything = [*self.embedded, *self.dense]
        yield ""
        yield "model_config:"
        yield "  feature_groups:"
        groups = [
            ("wide", "WIDE", [*self.embedded, *self.linear]),
            ("fm", "DEEP", self.embedded),
            ("deep", "DEEP", everything),
        ]
        for name, kind, names in groups:
            if (name == "fm" and (self.template != "deepfm" or not self.dense)) or not names:
                continue
            yield f"    - group_name: {name}"
            yield f"      group_type: {kind}"
            yield from _wrapped("      feature_names: ", names)
        yield f"  {self.template}:"
        yield "    deep: {hidden_units: [128, 64]}"
        if self.is_binary:
            yield "  losses: [{binary_cross_entropy: {}}] # the label is 0 or 1"
            yield "  metrics: [{auc: {}}, {log_loss: {}}]"
        else:
            yield "  losses: [{l2_loss: {}}] # the label is a number"
            yield "  metrics: [{mean_squared_error: {}}, {mean_absolute_error: {}}]"

    def training(self) -> Iterator[str]:
        num_rows = self.profile.num_rows
        num_epochs = 6 if num_rows < 50_000 else 4 if num_rows < 500_000 else 2 if num_rows < 5_000_000 else 1
        yield ""
        yield "train_config:"
        if self.embedded or self.linear:
            rate = 0.02 if self.batch_size < 1024 else 0.03
            yield f"  sparse_optimizer: {{adagrad_optimizer: {{lr: {rate}}}, constant_learning_rate: {{}}}}"
        yield "  dense_optimizer: {adam_optimizer: {lr: 0.001}, constant_learning_rate: {}}"
        yield f"  num_epochs: {num_epochs} # more than enough, mostly: --checkpoint_path best takes the best of them"
        yield "  save_checkpoints_epochs: 1 # each is evaluated on eval_input_path"
        yield "  save_checkpoints_steps: 0"
        yield "  keep_checkpoint_max: 1 # of the newest; the best is kept as well"


def _num_buckets(distinct: int) -> int:
    """Eight for each value, two where there are many: few values share one."""
    factor = 8 if distinct <= 100_000 else 2
    return max(64, 1 << (factor * max(1, distinct) - 1).bit_length())


def _scaled(each: ColumnRole) -> dict[str, Any]:
    """The normalizer that brings numbers to a mean of 0 and a deviation of 1; of long tails, their logarithms."""
    sample, low = each.sample, float(each.sample[0])
    mean, deviation = float(sample.mean()), float(sample.std())
    options: dict[str, Any] = {}
    if each.has_missing:
        options["default_value"] = f"{mean:.6g}"
    if low >= 0 and sample[-1] > 20 * max(mean, 1e-9):
        logs = np.log1p(sample)
        formula = f"(log(x + 1) - {logs.mean():.4g}) / {max(float(logs.std()), 1e-6):.4g}"
        return {**options, "normalizer": f"method=expression,expr={formula}"}
    return {
        **options,
        "normalizer": f"method=zscore,mean={mean:.6g},standard_deviation={max(deviation, 1e-6):.6g}",
    }


def _plain(value: Any) -> str:
    """A value as YAML shows it in one line."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    if isinstance(value, str):
        is_safe = re.fullmatch(r"[\w./*-]+", value) and isinstance(resolve_plain(value), str)
        return value if is_safe else json.dumps(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value!r}"


def _wrapped(start: str, value: Any) -> Iterable[str]:
    if not isinstance(value, list) or len(start) + len(_plain(value)) <= _WIDTH:
        return [f"{start}{_plain(value)}"]
    indent = " " * (len(start) - len(start.lstrip()) + 2)
    lines, line = [start.rstrip()], ""
    for index, item in enumerate(value):
        piece = ("[" if index == 0 else "") + _plain(item) + ("]" if index == len(value) - 1 else ",")
        if line and len(indent) + len(line) + 1 + len(piece) > _WIDTH:
            lines.append(f"{indent}{line}")
            line = piece
        else:
            line = f"{line} {piece}".strip()
    return [*lines, f"{indent}{line}"]
