"""Whether a store may be written where it should go."""

from pathlib import Path

from penstock.prep.preparing.places import check_place
from penstock.readers.files import DataFile
from penstock.readers.store_manifest import MANIFEST_NAME, Manifest


def check_store_place(key: str, output_dir: str, intermediate_dir: Path, input_path: str = "") -> None:
    """Refuse a folder of raw files, under the key that names it, as a preparation does.

    Raw files are those that the batch files were made of, by their manifest, and what `input_path` means.
    """
    has_manifest = (intermediate_dir / MANIFEST_NAME).exists()
    inputs = Manifest.read(intermediate_dir).inputs if has_manifest else ()
    check_place(key, output_dir, input_path, [DataFile(record.path, record.num_bytes) for record in inputs])
