"""What worker processes give and cost: the rate of batches and the memory of the process tree with 0, 1 and 2 workers.

    python benchmarks/workers.py [--batches 40] [--repeats 7]

Rows like Criteo's (13 float32, 26 int64, a label) in batches of 8,192, made into `Batch`. Cheap: the features as they
are. Python-heavy: one feature more that splits and counts a text in Python, row by row, as a user's own might. Rates
are ratios to no workers in the same run, alternating, the best of the repeats: whatever disturbs only slows.
Bar: where Python is what takes time, 2 workers give 0.75 of what 2 processes that share nothing give on this machine
in the same run. Where those give less than 1.5 times the rate of one, others use the cores and nothing can be shown:
the script says so and fails.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.config.sizes import format_size
from penstock.data.memory_plan import FLIGHT_PER_WORKER
from penstock.features import build_features
from penstock.features.encoding import NumberEncoding
from penstock.features.feature import Feature, Input
from penstock.features.parser import Parser
from penstock.features.sections import FeatureConfig, ParsingSection
from penstock.features.values import Strings, Values, one_per_row
from penstock.readers.stream import RecordStream, StreamPosition, with_row_ids
from penstock.runtime.budget import Share
from penstock.runtime.memory import tree_bytes
from penstock.runtime.world import available_cores

if TYPE_CHECKING:
    from penstock.tensors.loader import BatchLoader

BATCH_ROWS = 8192
NUM_WORKERS = (0, 1, 2)
TEXT = "text"
BURN = "total = 0\nfor number in range(10_000_000): total += number"
BAR = 0.75
LEAST_POSSIBLE = 1.5


def count_words(inputs: Sequence[Values]) -> Values:
    """The number of different words of a text, one row after the other."""
    texts = inputs[0].items
    assert isinstance(texts, Strings)
    counts = [len(set(texts[row].split())) for row in range(len(texts))]
    return Values(np.array(counts, np.float64), one_per_row(len(counts)))


WORD_COUNT = Feature(
    "word_count",
    (Input("user", TEXT),),
    count_words,
    NumberEncoding(1, np.empty(0)),
    width=1,
    reads_text=True,
)


class Repeated(RecordStream):
    """One batch of rows in memory, given out again and again: reading costs nothing here."""

    def __init__(self, batch: pa.RecordBatch, num_batches: int) -> None:
        self._batch, self._num_batches, self.position = batch, num_batches, StreamPosition(0)
        self.schema, self.order = batch.schema, {"files": [], "blocks": 0, "seed": None, "shard": [0, 1]}

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batch, as often as asked for."""
        while self.position.row < self._num_batches * self._batch.num_rows:
            self.position = self.position.at(self.position.row + self._batch.num_rows)
            yield self._batch


def criteo_rows(words_per_text: int) -> pa.RecordBatch:
    """One batch; with a text of so many words, if any."""
    generator = np.random.default_rng(0)
    columns: dict[str, object] = {f"d{i}": generator.random(BATCH_ROWS, np.float32) for i in range(13)}
    columns |= {f"s{i}": generator.integers(0, 100_000, BATCH_ROWS) for i in range(26)}
    columns["label"] = generator.integers(0, 2, BATCH_ROWS)
    if words_per_text:
        words = generator.integers(0, 50, (BATCH_ROWS, words_per_text))
        columns[TEXT] = [" ".join(f"w{word}" for word in row) for row in words.tolist()]
    return with_row_ids(pa.record_batch(columns), 0, 0)


def parser_of(heavy: bool) -> Parser:
    """The features of the run."""
    dense = [{"raw_feature": {"feature_name": f"d{i}", "expression": f"user:d{i}"}} for i in range(13)]
    ids = {"num_buckets": 100_000, "embedding_dim": 8}
    sparse = [{"id_feature": {"feature_name": f"s{i}", "expression": f"user:s{i}", **ids}} for i in range(26)]
    configs = [FeatureConfig.model_validate(config) for config in [*dense, *sparse]]
    features: list[Feature] = build_features(configs, ParsingSection())
    return Parser([*features, WORD_COUNT] if heavy else features, ["label"])


def main() -> int:
    """Measure, print a table, and fail below the bar."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--batches", type=int, default=40)
    options.add_argument("--repeats", type=int, default=7)
    asked = options.parse_args()
    print(f"{available_cores()} cores, batches of {BATCH_ROWS} rows; rates are ratios to no workers")
    measure("cheap", criteo_rows(words_per_text=0), asked.batches, asked.repeats)
    helped, possible = measure("Python-heavy", criteo_rows(words_per_text=20), asked.batches, asked.repeats)
    print(f"two processes that share nothing: {possible:.2f} times the rate of one")
    print(f"Python-heavy, 2 workers: {helped / possible:.2f} of that (bar {BAR:.2f})")
    if possible < LEAST_POSSIBLE:
        print(
            f"not shown: below {LEAST_POSSIBLE:.2f} there is no second core to use; run it again on an idle machine"
        )
        return 1
    return 0 if helped >= BAR * possible else 1


def measure(name: str, rows: pa.RecordBatch, num_batches: int, repeats: int) -> tuple[float, float]:
    """What two workers give, and what any two processes give, as ratios to one process."""
    memory = {count: memory_of(rows, count, num_batches) for count in NUM_WORKERS}
    loaders = {count: loader_of(rows, count, num_batches) for count in NUM_WORKERS}
    seconds: dict[int, list[float]] = {count: [] for count in NUM_WORKERS}
    burning: dict[int, list[float]] = {1: [], 2: []}
    for loader in loaders.values():
        run_epoch(loader)
    for _ in range(repeats):
        for count, loader in loaders.items():
            seconds[count].append(run_epoch(loader))
            if count:
                burning[count].append(burn_seconds(count))
    rates = {count: 1 / min(times) for count, times in seconds.items()}
    for count, loader in loaders.items():
        print(
            f"  {name:>12}, {count} workers: {rates[count] / rates[0]:5.2f} of the rate of none "
            f"({rates[count] * num_batches * BATCH_ROWS:,.0f} rows/s); "
            f"{format_size(max(0, memory[count] - memory[0]))} more memory",
            flush=True,
        )
        loader.close()
    return rates[2] / rates[0], 2 * min(burning[1]) / min(burning[2])


def burn_seconds(num_processes: int) -> float:
    """Seconds until processes that only compute are done, all of them at once."""
    started_at = time.perf_counter()
    processes = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(num_processes)]
    for process in processes:
        process.wait()
    return time.perf_counter() - started_at


def memory_of(rows: pa.RecordBatch, num_workers: int, num_batches: int) -> int:
    """Bytes of the process tree after an epoch, before its workers end."""
    with closing(loader_of(rows, num_workers, num_batches)) as loader:
        run_epoch(loader)
        return tree_bytes()


def loader_of(rows: pa.RecordBatch, num_workers: int, num_batches: int) -> "BatchLoader":
    """Batches of the rows."""
    # Not at the top: workers import this file for WordCount, and should not load torch for it.
    from penstock.tensors.loader import BatchLoader

    share = Share("workers", max(1, num_workers) * FLIGHT_PER_WORKER * rows.nbytes)
    return BatchLoader(
        Repeated(rows, num_batches),
        parser_of(TEXT in rows.schema.names),
        num_workers=num_workers,
        worker_share=share,
    )


def run_epoch(loader: "BatchLoader") -> float:
    """Seconds for all batches."""
    loader.set_epoch(0)
    started_at = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - started_at


if __name__ == "__main__":
    # Workers look for WordCount in a module, not in the program that runs: this file is both.
    sys.exit(import_module(Path(__file__).stem).main())
