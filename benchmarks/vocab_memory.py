"""Peak memory of `penstock vocab` on many distinct ids.

    python benchmarks/vocab_memory.py [--ids 10000000] [--memory 512MiB] [--work DIR]

Half of the ids occur once, the others three times. Bar: the whole process, interpreter and libraries included, stays
within its limit, and the vocabulary has exactly the ids that occur twice or more.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.config.sizes import format_size, parse_size
from penstock.runtime.memory import tree_bytes

SAMPLE_SECONDS = 0.05
CHUNK_ROWS = 1 << 20
RUN = """
train_input_path: {folder}/train.parquet
memory: {{limit: {memory}}}
data_config: {{label_fields: [label], fg_mode: FG_NORMAL}}
feature_configs:
  - id_feature: {{feature_name: user, hash_bucket_size: 1000}}
"""


def main() -> int:
    """Make the data, count, print peak and time, and fail above the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", type=int, default=10_000_000)
    parser.add_argument("--memory", default="512MiB")
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        folder = Path(name)
        num_rows = write_ids(folder / "train.parquet", options.ids)
        (folder / "run.yaml").write_text(RUN.format(folder=folder, memory=options.memory))
        started_at = time.perf_counter()
        peak_bytes = run(
            "vocab", str(folder / "run.yaml"), "--min-frequency", "2", "--out", str(folder / "out")
        )
        seconds = time.perf_counter() - started_at
        with (folder / "out" / "user.txt").open() as file:
            num_kept = sum(1 for _ in file)
    part, expected = peak_bytes / parse_size(options.memory), options.ids - options.ids // 2
    print(
        f"{num_rows:,} rows, {options.ids:,} distinct ids: {num_kept:,} in the vocabulary (expected {expected:,})"
    )
    print(f"peak {format_size(peak_bytes)} of {options.memory} ({part:.2f}, bar 1.00) in {seconds:.0f} s")
    return 0 if part <= 1 and num_kept == expected else 1


def write_ids(path: Path, num_ids: int) -> int:
    """Ids as strings of 12 characters, in random order, a piece at a time."""
    order = np.random.default_rng(0).permutation(2 * num_ids).astype(np.int32)
    num_once = num_ids // 2
    schema = pa.schema([("user", pa.string()), ("label", pa.int8())])
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as writer:
        for start in range(0, len(order), CHUNK_ROWS):
            rows = order[start : start + CHUNK_ROWS]
            ids = np.where(rows < num_once, rows, num_once + (rows - num_once) // 3)
            ids = np.minimum(ids, num_ids - 1)
            users = pc.utf8_lpad(pa.array(ids).cast(pa.string()), 12, "0")
            writer.write_table(pa.table([users, pa.array(ids % 2, pa.int8())], schema=schema))
    return len(order)


def run(*words: str) -> int:
    """Run a command to its end, and give the most bytes that its processes took."""
    process = subprocess.Popen([sys.executable, "-m", "penstock", *words])
    peak_bytes = 0
    while process.poll() is None:
        try:
            peak_bytes = max(peak_bytes, tree_bytes(psutil.Process(process.pid)))
        except psutil.NoSuchProcess:
            break
        time.sleep(SAMPLE_SECONDS)
    if process.wait():
        raise SystemExit(f"failed: penstock {' '.join(words)}")
    return peak_bytes


if __name__ == "__main__":
    sys.exit(main())
