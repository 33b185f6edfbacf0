"""Files -> resumable streams of Arrow record batches.

`list_files` turns the paths of a run file into files, `scan_files` looks at them before anybody decides how much
memory reading may take, and `BlockStream` turns a scan into a stream. A format says which blocks its files have
and decodes them; order, shards, positions and row ids are the same for all (`order.py`, `reading.py`). A stream is
its own cursor: iterating goes on from its position, `state_dict` gives it, and `set_epoch` goes back to a start.
Every record batch carries the ids of its rows (`stream.py`), so that each later error names file and row. To add a
format, write one module with a function like `scan_parquet` and name it here.
"""

from typing import TYPE_CHECKING

from penstock.config.registry import Registry

if TYPE_CHECKING:
    from penstock.readers.scan import ScanFormat

READERS: "Registry[ScanFormat]" = Registry(
    "dataset type",
    {
        "ParquetDataset": "penstock.readers.parquet:scan_parquet",
        "ArrowDataset": "penstock.readers.arrow_ipc:scan_ipc",
        "NumpyDataset": "penstock.readers.numpy_files:scan_numpy",
        "CsvDataset": "penstock.readers.csv:scan_csv",
        "JsonDataset": "penstock.readers.jsonl:scan_json",
        "TFRecordDataset": "penstock.readers.tfrecord:scan_tfrecord",
        "OdpsDataset": "penstock.readers.odps:scan_odps",
    },
)
"""How files of each `data_config.dataset_type` are scanned; a scan opens them."""
