"""Files -> resumable streams of Arrow record batches.

`list_files` turns the paths of a run file into files, `scan_files` looks at them before anybody decides how much
memory reading may take, and `BlockStream` turns a scan into a stream. A format says which blocks its files have
and decodes them; order, shards, positions and row ids are the same for all (`order.py`, `scan.py`). A stream is
its own cursor: iterating goes on from its position, `state_dict` gives it, and `set_epoch` goes back to a start.
Every record batch carries the ids of its rows (`stream.py`), so that each later error names file and row. To add a
format, write one module with a function like `scan_parquet` and name it here.
"""

from typing import TYPE_CHECKING, NamedTuple

from penstock.config.registry import Registry

if TYPE_CHECKING:
    from penstock.readers.scan import ScanFormat

TABLE_SCHEME = "odps://"  # tables have no suffix; what their paths begin with tells as much


class Format(NamedTuple):
    """One format: the function that scans its files, as "package.module:attribute", and their suffixes."""

    path: str
    suffixes: tuple[str, ...]


FORMATS = {
    "ParquetDataset": Format("penstock.readers.parquet:scan_parquet", (".parquet", ".pq")),
    "CsvDataset": Format("penstock.readers.csv:scan_csv", (".csv", ".tsv", ".txt")),
    "ArrowDataset": Format("penstock.readers.arrow_ipc:scan_ipc", (".arrow", ".feather", ".ipc")),
    "JsonDataset": Format("penstock.readers.jsonl:scan_json", (".json", ".jsonl")),
    "NumpyDataset": Format("penstock.readers.numpy_files:scan_numpy", (".npy", ".npz")),
    "TFRecordDataset": Format("penstock.readers.tfrecord:scan_tfrecord", (".tfrecord", ".tfrecords")),
    "OdpsDataset": Format("penstock.readers.odps:scan_odps", (TABLE_SCHEME,)),
}

READERS: "Registry[ScanFormat]" = Registry("dataset type", {name: row.path for name, row in FORMATS.items()})
"""How files of each format are scanned; a scan opens them."""
