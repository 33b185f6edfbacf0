"""How fast files become batches, against the fastest way to decode the same files.

    python benchmarks/data_rate.py [--rows 4000000] [--rounds 5] [--work DIR] [--tensorflow PYTHON]

Criteo-like rows (13 float32, 26 int64, one label) in batches of 8,192 as Batch: what a model takes.

| way | against | bar |
|---|---|---|
| Parquet, 8 snappy files | pyarrow's read_row_group(use_threads=False), nothing made of it | 0.9 |
| the same, shuffled in 64 MiB | the same | 0.5 |
| CSV | pyarrow's streaming CSV reader with one thread, nothing made of it | 0.8 |
| TFRecord | tf.data in its best of several settings | 2 |

All ways take turns, round after round. TensorFlow runs in a process of its own: that of --tensorflow, or this
one's Python where it has TensorFlow; without it the last line is not measured, and the script fails.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from measuring import criteo
from measuring.rounds import alternate, report
from measuring.tf_data import TensorFlowReader, find_tensorflow

import penstock
from penstock.data.prefetch import Prefetch
from penstock.readers.files import list_files
from penstock.tensors.batch import Batch

BATCH_ROWS = 8192
CSV_SHARE, RECORD_SHARE = 4, 10
"""Text and records are many times slower than Parquet: they are measured on this part of the rows."""


def main() -> int:
    """Measure, print a line for each claim, and fail below a bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--only", choices=["parquet", "csv", "tfrecord"])
    parser.add_argument("--tensorflow", help="a Python that has TensorFlow")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        claims = {"parquet": parquet, "csv": csv, "tfrecord": tfrecord}
        chosen = [options.only] if options.only else list(claims)
        passed = [claims[name](Path(folder), options) for name in chosen]
    return 0 if all(passed) else 1


def parquet(folder: Path, options: argparse.Namespace) -> bool:
    """Decoding whole row groups is the limit: everything else should hide behind it."""
    path = criteo.write_parquet(folder / "parquet", options.rows, num_files=8)
    columns = needed_columns(path)
    rates = alternate(
        {
            "read_row_group": lambda: decode_parquet(path, columns),
            "Parquet to Batch": batches(path),
            "shuffled in 64 MiB": batches(
                path, {"data_config.shuffle": True, "data_config.shuffle_buffer": "64MiB"}
            ),
        },
        options.rounds,
    )
    return all(
        [
            report(rates, "Parquet to Batch", "read_row_group", 0.9),
            report(rates, "shuffled in 64 MiB", "read_row_group", 0.5),
        ]
    )


def csv(folder: Path, options: argparse.Namespace) -> bool:
    """The index of records is made once, before the first round, and counted apart."""
    path = criteo.write_csv(folder / "csv", options.rows // CSV_SHARE, num_files=4)
    settings = {"data_config.with_header": True, "data_config.dataset_type": "CsvDataset"}
    ways = {"open_csv": lambda: decode_csv(path), "CSV to Batch": batches(path, settings)}
    rates = alternate(ways, options.rounds)
    started_at = time.perf_counter()
    loader(path, settings)
    rate = options.rows // CSV_SHARE / (time.perf_counter() - started_at)
    print(f"{'indexing and sampling CSV':<28} {rate / 1e6:6.2f} million rows/s, once for each file")
    return report(rates, "CSV to Batch", "open_csv", 0.8)


def tfrecord(folder: Path, options: argparse.Namespace) -> bool:
    """tf.data gets the setting that is fastest here, found before the rounds."""
    python = find_tensorflow(options.tensorflow)
    if python is None:
        print("TFRecord to Batch: not measured, no TensorFlow was found; see --tensorflow")
        return False
    path = criteo.write_records(folder / "tfrecord", options.rows // RECORD_SHARE, num_files=4)
    settings = {"data_config.dataset_type": "TFRecordDataset"}
    with TensorFlowReader(python, [file.path for file in list_files(path)], BATCH_ROWS) as reader:
        print(f"tf.data at its best here: {reader.setting}")
        rates = alternate(
            {"tf.data": reader.read, "TFRecord to Batch": batches(path, settings)}, options.rounds
        )
    return report(rates, "TFRecord to Batch", "tf.data", 2.0)


def loader(path: str, settings: dict[str, object]) -> "Prefetch[Batch]":
    """The data loader of a run on these files."""
    edits = {"train_input_path": path, "data_config.batch_size": BATCH_ROWS, "data_config.num_workers": 0}
    return penstock.create_dataloader(penstock.load_run(criteo.RUN_FILE, edits | settings))


def batches(path: str, settings: dict[str, object] | None = None) -> Callable[[], int]:
    """Iterates over one epoch; files are looked at before, once."""
    opened = loader(path, settings or {})
    epoch = iter(range(1_000))

    def read() -> int:
        opened.set_epoch(next(epoch))
        return sum(batch.num_rows for batch in opened)

    return read


def needed_columns(path: str) -> Sequence[str]:
    """What both ways read: all columns."""
    return pq.ParquetFile(list_files(path)[0].path).schema_arrow.names


def decode_parquet(path: str, columns: Sequence[str]) -> int:
    """The limit: row group after row group, on one thread."""
    num_rows = 0
    for file in list_files(path):
        opened = pq.ParquetFile(file.path)
        for index in range(opened.num_row_groups):
            num_rows += opened.read_row_group(index, columns=list(columns), use_threads=False).num_rows
    return num_rows


def decode_csv(path: str) -> int:
    """pyarrow's streaming reader, on one thread, with the types that the columns have."""
    num_rows = 0
    for file in list_files(path):
        with pyarrow.csv.open_csv(
            file.path,
            read_options=pyarrow.csv.ReadOptions(use_threads=False),
            convert_options=pyarrow.csv.ConvertOptions(column_types=csv_types(file.path)),
        ) as reader:
            num_rows += sum(batch.num_rows for batch in reader)
    return num_rows


def csv_types(path: str) -> dict[str, pa.DataType]:
    """Ids and labels are integers, the others numbers."""
    with open(path, encoding="utf-8") as file:
        names = file.readline().strip().replace('"', "").split(",")
    return {name: pa.float64() if name.startswith("int_") else pa.int64() for name in names}


if __name__ == "__main__":
    sys.exit(main())
