"""Files -> resumable streams of Arrow record batches.

`list_files` turns the paths of a run file into files, `survey` looks at them before anybody decides how much
memory reading may take, and `read_blocks` turns a survey into a stream. A format says which blocks its files have
and decodes them; order, shards, places and the origin of rows are the same for all (`sequence.py`, `reading.py`).
A stream is its own cursor: iterating goes on from its place, `state_dict` says where that is, and `set_epoch` goes
back to a start. Every record batch carries the origin of its rows (`origin.py`), so that each later error names
file and row. To add a format, write one module with a function like `survey_parquet` and name it here.
"""

from typing import TYPE_CHECKING

from penstock.config.registry import Registry

if TYPE_CHECKING:
    from penstock.readers.survey import TakeSurvey

READERS: "Registry[TakeSurvey]" = Registry(
    "dataset type",
    {
        "ParquetDataset": "penstock.readers.parquet:survey_parquet",
        "ArrowDataset": "penstock.readers.arrow_ipc:survey_ipc",
        "NumpyDataset": "penstock.readers.numpy_files:survey_numpy",
        "CsvDataset": "penstock.readers.text.csv:survey_csv",
        "JsonDataset": "penstock.readers.text.json:survey_json",
        "TFRecordDataset": "penstock.readers.tfrecord.survey:survey_tfrecord",
        "OdpsDataset": "penstock.readers.odps.survey:survey_odps",
    },
)
"""How files of each `data_config.dataset_type` are surveyed; a survey opens them."""
