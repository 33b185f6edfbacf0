"""tf.data as a peer, in a process of its own: started once, it reads the files each time it is told to.

Run with a Python that has TensorFlow, this file is that process.
"""

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Self

MISSING_NUMBER = 0.0


def find_tensorflow(python: str | None) -> str | None:
    """The Python to use: the one that was named, or this one where it has TensorFlow."""
    if python is not None:
        return python
    return sys.executable if importlib.util.find_spec("tensorflow") is not None else None


class TensorFlowReader:
    """The process, and the setting that was fastest in it."""

    def __init__(self, python: str, files: Sequence[str], batch_rows: int) -> None:
        self._process = subprocess.Popen(
            [python, __file__, str(batch_rows), *files],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.setting = str(self._answer())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def read(self) -> int:
        """One epoch; gives the number of rows."""
        assert self._process.stdin is not None
        print("read", file=self._process.stdin, flush=True)
        return int(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the TensorFlow process ended with code {self._process.wait()}")
        return json.loads(line)


def settings(tf: Any, files: Sequence[str], batch_rows: int) -> Iterator[tuple[str, Any]]:
    """Ways to read records that its guides recommend."""
    features = {"label": tf.io.FixedLenFeature([], tf.int64)}
    for place in range(1, 14):
        features[f"int_{place}"] = tf.io.FixedLenFeature([], tf.float32, MISSING_NUMBER)
    for place in range(1, 27):
        features[f"cat_{place}"] = tf.io.FixedLenFeature([], tf.int64)
    auto = tf.data.AUTOTUNE

    def parsed(records: Any, calls: int | None, in_order: bool | None = None) -> Any:
        parse = lambda examples: tf.io.parse_example(examples, features)  # noqa: E731
        batched = records.batch(batch_rows, num_parallel_calls=calls, deterministic=in_order)
        return batched.map(parse, num_parallel_calls=calls, deterministic=in_order).prefetch(auto)

    yield "one thread", parsed(tf.data.TFRecordDataset(files), None)
    yield "parallel calls", parsed(tf.data.TFRecordDataset(files), auto)
    large = tf.data.TFRecordDataset(files, buffer_size=8 << 20)
    yield "parallel calls, 8 MiB buffer", parsed(large, auto)
    yield "parallel calls, 8 MiB buffer, any order", parsed(large, auto, in_order=False)
    two = tf.data.TFRecordDataset(files, buffer_size=8 << 20, num_parallel_reads=2)
    yield "two files at once, parallel calls", parsed(two, auto)


def count_rows(dataset: Any) -> int:
    """Read it once."""
    return sum(int(batch["label"].shape[0]) for batch in dataset)


def serve(batch_rows: int, files: Sequence[str]) -> None:
    """Find the fastest setting, then read whenever a line arrives."""
    import tensorflow as tf

    seconds, best = {}, {}
    for name, dataset in settings(tf, files, batch_rows):
        count_rows(dataset)  # the first time is slower
        started_at = time.perf_counter()
        count_rows(dataset)
        seconds[name], best[name] = time.perf_counter() - started_at, dataset
    fastest = min(seconds, key=lambda name: seconds[name])
    print(json.dumps(fastest), flush=True)
    for _ in sys.stdin:
        print(json.dumps(count_rows(best[fastest])), flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
