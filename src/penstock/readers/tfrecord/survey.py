"""TFRecord files: indexed, and their columns declared or found from records all over them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.config.errors import DataError
from penstock.config.nearest import hint
from penstock.readers.columns import project
from penstock.readers.files import DataFile
from penstock.readers.origin import ROW_COLUMN
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Survey, Wanted
from penstock.readers.text.sample import sample_texts
from penstock.readers.text.survey import TextSurvey
from penstock.readers.tfrecord.features import Feature, parse_fields, parse_schema
from penstock.readers.tfrecord.framing import Records, index_files
from penstock.readers.tfrecord.inference import Sample, look_at
from penstock.readers.tfrecord.parser import ExampleParser
from penstock.readers.tfrecord.problems import DECLARE
from penstock.readers.tfrecord.refusal import Refusal


def survey_tfrecord(reading: ReadingSection, files: Sequence[DataFile], wanted: Wanted) -> Survey:
    """Index the records; columns that `input_fields` does not declare are found from records."""
    survey = _survey(files, wanted, parse_fields(reading.resolved_input_fields()))
    project(survey.columns, wanted.columns, files[0].path)
    return survey


def survey_tfrecord_with(files: Sequence[DataFile], wanted: Wanted, schema: Mapping[str, Any]) -> Survey:
    """The same with a schema in Python, as `parse_schema` takes it: it names all columns there are."""
    features = parse_schema(schema)
    names = list(features) if wanted.columns is None else wanted.columns
    for name in names:
        if name not in features:
            raise DataError(f"the schema has no column '{name}'; {hint(name, features)}")
    return _survey(files, replace(wanted, columns=names), features)


def _survey(files: Sequence[DataFile], wanted: Wanted, declared: Mapping[str, Feature]) -> Survey:
    indexes = index_files(files, wanted.index_dir)
    sample = look_at(files, sample_texts(files, indexes, Records()))
    features = _columns(files, wanted, declared, sample)
    parser = ExampleParser(features, Refusal(tuple(files), indexes, wanted.quarantine))
    row_bytes = sample.row_bytes(features)
    return TextSurvey(tuple(files), indexes, Records(), parser, row_bytes, sample.record_bytes)


def _columns(
    files: Sequence[DataFile], wanted: Wanted, declared: Mapping[str, Feature], sample: Sample
) -> dict[str, Feature]:
    """The wanted columns, in the wanted order: declared, or as they were found; all of them in sorted order."""
    known = set(declared) | set(sample.found)
    if not known and sample.problem:
        raise DataError(f"{sample.problem}; no other record was found")
    names = sorted(known) if wanted.columns is None else wanted.columns
    for name in names:
        if name not in known:
            raise DataError(_unknown(files, name, known, sample))
        if name == ROW_COLUMN:
            raise DataError.at(
                "this name is reserved for the origin of rows", file=files[0].path, column=name
            )
    return {name: declared[name] if name in declared else sample.found[name].feature(name) for name in names}


def _unknown(files: Sequence[DataFile], name: str, known: Collection[str], sample: Sample) -> str:
    if not sample.num_rows:
        return (
            f"{files[0].path}: there is no record in any file, so that the type of '{name}' is unknown; "
            f"{DECLARE}"
        )
    return f"{files[0].path}: there is no column '{name}'; {hint(name, known)}"
