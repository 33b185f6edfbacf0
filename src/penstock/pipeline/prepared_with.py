"""Whether batch files were made as a run file says, before they are merged as it says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError
from penstock.config.plain import section_data
from penstock.prep.sections import Preprocessing, SplitBy
from penstock.readers.store_manifest import MANIFEST_NAME, Manifest

_CHECKED_BY_VALUES = ("labels", "mask_dtype")
"""Types that a merge compares with those of the arrays themselves, as it does `dtype`."""


def check_prepared_with(
    section: Preprocessing, intermediate_dir: Path, *, compares_group_key: bool = True
) -> None:
    """Refuse batch files that penstock prep made of other samples, groups or names than the run file asks for.

    Only what it says itself is compared: what is absent is as the batch files have it. How they are stored does not
    matter, nor are files refused that others made.
    """
    if not (intermediate_dir / MANIFEST_NAME).exists():
        return
    settings = Manifest.read(intermediate_dir).settings
    known = {**settings, **{f"schema.{key}": value for key, value in settings.get("schema", {}).items()}}
    for key, said in _said(section, compares_group_key):
        if key in known and known[key] != said:
            raise ConfigError(
                f"{intermediate_dir}: its batch files were prepared with {key} {json.dumps(known[key])}, not "
                f"{json.dumps(said)}; put it back as it was, or prepare them anew with penstock prep --restart"
            )


def _said(section: Preprocessing, compares_group_key: bool) -> Iterator[tuple[str, Any]]:
    """What a run file says of samples, by its keys."""
    if section.extract is not None:
        yield "extract", section.extract
    if section.feature_dtypes:
        yield "feature_dtypes", {group: dtype.value for group, dtype in section.feature_dtypes.items()}
    for key, value in section_data(section.sample_schema).items():
        if key not in _CHECKED_BY_VALUES:
            yield f"schema.{key}", value
    if compares_group_key and section.splits is not None and section.splits.by is SplitBy.group:
        yield "splits.group_key", section.splits.group_key
