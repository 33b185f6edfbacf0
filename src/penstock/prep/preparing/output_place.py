"""Where the store of a preparation will go: apart from its batch files, and where a merge may write.

A merge finds out too, but only after the whole preparation.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from penstock.config.errors import ConfigError
from penstock.prep.merge.staging import check_free, staging_folder, store_there
from penstock.prep.preparing.places import INTERMEDIATE_DIR, OUTPUT_DIR, lies_in
from penstock.prep.sections import HeadFiles, Preprocessing, StoreTarget
from penstock.readers.store_manifest import MANIFEST_NAME


def check_output_place(section: Preprocessing) -> None:
    """Refuse an output_dir that a merge would refuse, or in which batch files are in its way, under its key."""
    _check_apart(section.intermediate_dir, section.output_dir)
    folder = Path(section.output_dir)
    try:
        store_there(folder)
        merge_goes_on = any(folder.glob(str(staging_folder(Path(), "*") / MANIFEST_NAME)))
        if not merge_goes_on:
            found = [str(path.relative_to(folder)) for name in _names(section) for path in folder.glob(name)]
            check_free(folder, found)
    except ConfigError as error:
        raise ConfigError.at(OUTPUT_DIR, str(error)) from error


def _check_apart(intermediate_dir: str, output_dir: str) -> None:
    """Refuse folders that are the same, or of which one lies in the other."""
    batches, store = os.path.realpath(intermediate_dir), os.path.realpath(output_dir)
    if batches == store:
        raise ConfigError.at(OUTPUT_DIR, f"{output_dir} is also intermediate_dir; choose another folder")
    if lies_in(store, batches):
        raise ConfigError.at(
            OUTPUT_DIR,
            f"{output_dir} lies in {intermediate_dir}, the intermediate_dir; choose one outside of it",
        )
    if lies_in(batches, store):
        raise ConfigError.at(
            INTERMEDIATE_DIR,
            f"{intermediate_dir} lies in {output_dir}, the output_dir; choose one outside of it",
        )


def _names(section: Preprocessing) -> Iterator[str]:
    """Patterns of the names that a store will have, as far as the run file tells: samples may have more arrays."""
    splits = section.splits
    shares = {"train": 1.0} if splits is None else splits.model_dump(include={"train", "val", "test"})
    for split in (name for name, share in shares.items() if share):
        if section.target is StoreTarget.hdf5:
            yield f"{split}.h5"
        elif section.target is not StoreTarget.npy:
            yield split
        else:
            yield f"X_{split}.npy"
            yield from (f"X_{group}_{split}.npy" for group in section.sample_schema.feature_groups)
            head_files = ".npz" if section.heads is HeadFiles.npz else "/*.npy"
            yield from (f"{heads}_{split}{head_files}" for heads in ("labels", "masks"))
