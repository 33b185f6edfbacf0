"""How fast strings become ids and numbers, against the best that Arrow and polars do for the same result.

    python benchmarks/feature_rate.py [--rows 400000] [--rounds 7] [--only kinds|files]

| kind, 8,192 rows at a time on one thread | against | bar |
|---|---|---|
| 10 columns of strings, hashed | polars | 0.95 |
| 5 columns of several strings in a row, split and hashed | polars | 0.95 |
| 3 sequences of 50 integers, split and parsed | the faster of polars and Arrow | 2.5 |
| 2 columns of 8 key:weight in a row | the faster of polars and Arrow | 2.5 |
| 5 columns of floats with nulls, side by side in one matrix | Arrow and NumPy | 0.95 |

| files | against | bar |
|---|---|---|
| all of these columns in Parquet, as Batch, on 2 threads | decoding them on one thread, nothing made of it | 0.7 |
| 40 plain columns and one hashed string, as Batch | the same | 0.85 |

polars hashes otherwise than xxh64; what is compared is the time. It runs with as many threads as it likes.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from measuring import criteo
from measuring.rounds import alternate, report

import penstock
from penstock.features import build_features
from penstock.features.arrow_values import read_values
from penstock.features.fast_path import fast_path_of
from penstock.features.sections import FeatureConfig, FgMode, ParsingSection
from penstock.features.strings import Rule, encode_strings

BATCH_ROWS, NUM_BUCKETS = 8192, 1_000_003
REPEATS = 20
"""Batches that are measured together: one alone takes less than the clock is good for."""

Way = Callable[[pa.Array], Any]


def main() -> int:
    """Measure, print a line for each claim, and fail below a bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["kinds", "files"])
    options = parser.parse_args()
    passed = []
    if options.only != "files":
        passed += [kind(name, *row, options.rounds) for name, row in KINDS.items()]
        passed.append(floats(options.rounds))
    if options.only != "kinds":
        with tempfile.TemporaryDirectory() as folder:
            passed += [strings(Path(folder), options), mixed(Path(folder), options)]
    return 0 if all(passed) else 1


# --- Kinds ------------------------------------------------------------------------------------------------


def columns(kind: str, num_rows: int, seed: int = 0) -> Iterator[pa.Array]:
    """The columns of one kind."""
    draw = np.random.default_rng(seed)
    for _ in range(COUNTS[kind]):
        if kind == "hashed":
            yield pa.array([f"city_{each}" for each in draw.integers(0, 100_000, num_rows)])
        elif kind == "several":
            sizes = draw.integers(1, 6, num_rows)
            yield pa.array(
                ["|".join(f"tag{each}" for each in draw.integers(0, 5000, size)) for size in sizes]
            )
        elif kind == "sequence":
            ids = draw.integers(0, 1_000_000, (num_rows, 50)).astype(str)
            yield pa.array([";".join(row) for row in ids])
        elif kind == "key_weight":
            ids, weights = draw.integers(0, 50_000, (num_rows, 8)), draw.random((num_rows, 8))
            pairs = zip(ids.tolist(), weights.tolist(), strict=True)
            yield pa.array(["|".join(f"{i}:{w:.3f}" for i, w in zip(*row, strict=True)) for row in pairs])
        else:
            numbers = draw.random(num_rows).astype(np.float32)
            yield pa.array(numbers, mask=numbers < 0.1)


COUNTS = {"hashed": 10, "several": 5, "sequence": 3, "key_weight": 2, "floats": 5}


def polars_hashes(column: pa.Array) -> Any:
    """One hash of each string."""
    return (pl.from_arrow(column).hash() % NUM_BUCKETS).to_numpy()


def polars_split_hashes(column: pa.Array) -> Any:
    """Of each token, and how many there are in each row."""
    tokens = pl.from_arrow(column).str.split("|")
    return (tokens.explode().hash() % NUM_BUCKETS).to_numpy(), tokens.list.len().to_numpy()


def polars_integers(column: pa.Array) -> Any:
    """Integers, and how many there are in each row."""
    tokens = pl.from_arrow(column).str.split(";")
    return tokens.explode().cast(pl.Int64).to_numpy(), tokens.list.len().to_numpy()


def arrow_integers(column: pa.Array) -> Any:
    """The same."""
    tokens = pc.split_pattern(column, ";")
    return pc.cast(tokens.flatten(), pa.int64()).to_numpy(), pc.list_value_length(tokens).to_numpy()


def polars_weights(column: pa.Array) -> Any:
    """Keys, weights, and how many there are in each row."""
    tokens = pl.from_arrow(column).str.split("|")
    pairs = tokens.explode().str.split(":")
    keys, weights = pairs.list.get(0).cast(pl.Int64), pairs.list.get(1).cast(pl.Float32)
    return keys.to_numpy(), weights.to_numpy(), tokens.list.len().to_numpy()


def arrow_weights(column: pa.Array) -> Any:
    """The same."""
    tokens = pc.split_pattern(column, "|")
    pairs = pc.split_pattern(tokens.flatten(), ":")
    keys = pc.cast(pc.list_element(pairs, 0), pa.int64())
    weights = pc.cast(pc.list_element(pairs, 1), pa.float32())
    return keys.to_numpy(), weights.to_numpy(), pc.list_value_length(tokens).to_numpy()


KINDS: dict[str, tuple[Way, dict[str, Way], float]] = {
    "hashed": (
        lambda column: encode_strings(read_values(column, "c"), Rule.HASH, NUM_BUCKETS),
        {"polars": polars_hashes},
        0.95,
    ),
    "several": (
        lambda column: encode_strings(read_values(column, "c", b"|"), Rule.HASH, NUM_BUCKETS),
        {"polars": polars_split_hashes},
        0.95,
    ),
    "sequence": (
        lambda column: encode_strings(read_values(column, "c", b"", b";"), Rule.PARSE_INTEGER),
        {"polars": polars_integers, "arrow": arrow_integers},
        2.5,
    ),
    "key_weight": (
        lambda column: encode_strings(read_values(column, "c", b"|"), Rule.PARSE_INTEGER, weighted=True),
        {"polars": polars_weights, "arrow": arrow_weights},
        2.5,
    ),
}


def floats(rounds: int) -> bool:
    """Columns with nulls side by side in one matrix, as a batch has them."""
    names = [f"floats_{index}" for index in range(COUNTS["floats"])]
    batch = pa.record_batch(list(columns("floats", BATCH_ROWS)), names)
    sections = [FeatureConfig.model_validate({"raw_feature": {"feature_name": name}}) for name in names]
    path = fast_path_of(build_features(sections, ParsingSection(fg_mode=FgMode.FG_NORMAL)))
    assert path is not None

    def ours() -> int:
        for _ in range(REPEATS):
            path.pack(batch)
        return REPEATS * BATCH_ROWS

    def arrow() -> int:
        for _ in range(REPEATS):
            np.stack([pc.fill_null(column, 0.0).to_numpy() for column in batch.columns], axis=1)
        return REPEATS * BATCH_ROWS

    return report(alternate({"arrow": arrow, "floats": ours}, rounds), "floats", "arrow", 0.95)


def kind(name: str, own: Way, others: dict[str, Way], bar: float, rounds: int) -> bool:
    """Our way against the fastest of the others."""
    found = list(columns(name, BATCH_ROWS))

    def over_all(way: Way) -> Callable[[], int]:
        def run() -> int:
            for _ in range(REPEATS):
                for column in found:
                    way(column)
            return REPEATS * BATCH_ROWS

        return run

    rates = alternate(
        {name: over_all(own), **{other: over_all(way) for other, way in others.items()}}, rounds
    )
    passed = [report(rates, name, other, bar) for other in others]
    return all(passed)


# --- Files ------------------------------------------------------------------------------------------------


def strings(folder: Path, options: argparse.Namespace) -> bool:
    """Parquet to Batch, all kinds together."""
    data = {f"{name}_{i}": each for name in COUNTS for i, each in enumerate(columns(name, options.rows // 8))}
    data["click"] = pa.array(np.random.default_rng(1).integers(0, 2, options.rows // 8))
    pq.write_table(pa.table(data), folder / "strings.parquet", row_group_size=16_384)
    sections = {
        "hashed": ("id_feature", {"hash_bucket_size": NUM_BUCKETS}),
        "several": ("id_feature", {"hash_bucket_size": NUM_BUCKETS, "separator": "|"}),
        "sequence": ("sequence_id_feature", {"num_buckets": 1_000_000, "value_dim": 1}),
        "key_weight": ("id_feature", {"num_buckets": 50_000, "separator": "|", "weighted": True}),
        "floats": ("raw_feature", {"default_value": "0"}),
    }
    features = []
    for name in data:
        if name != "click":
            section, chosen = sections[name.rpartition("_")[0]]
            features.append({section: {"feature_name": name, "expression": f"user:{name}", **chosen}})
    run = run_of(
        folder / "strings.parquet", features, [each for each in data if not each.startswith("sequence")]
    )
    return files("strings to Batch", folder / "strings.parquet", run, 0.7, options.rounds)


def mixed(folder: Path, options: argparse.Namespace) -> bool:
    """Criteo-like rows with one string beside them."""
    path = Path(criteo.write_parquet(folder / "criteo", options.rows, num_files=1).replace("*", "part-0"))
    table = pq.read_table(path)
    words = pa.array(
        [f"city_{each}" for each in np.random.default_rng(2).integers(0, 100_000, table.num_rows)]
    )
    pq.write_table(table.append_column("city", words), folder / "mixed.parquet", row_group_size=65_536)
    run = penstock.load_run(criteo.RUN_FILE, {"train_input_path": str(folder / "mixed.parquet")})
    section = {
        "feature_name": "city",
        "expression": "user:city",
        "hash_bucket_size": NUM_BUCKETS,
        "embedding_dim": 16,
    }
    data = run.model_dump(mode="json", by_alias=True, exclude_unset=True)
    data["feature_configs"].append({"id_feature": section})
    data["model_config"]["feature_groups"][-1]["feature_names"].append("city")
    data["data_config"] |= {"batch_size": BATCH_ROWS, "fg_mode": "FG_NORMAL"}
    return files(
        "40 plain columns, 1 string", folder / "mixed.parquet", penstock.load_run(data), 0.85, options.rounds
    )


def run_of(path: Path, features: list[dict[str, Any]], names: list[str]) -> Any:
    """A run with these features, of which those that are named are in its group."""
    return penstock.load_run(
        {
            "train_input_path": str(path),
            "data_config": {
                "batch_size": BATCH_ROWS,
                "label_fields": ["click"],
                "fg_mode": "FG_DAG",
                "fg_threads": 2,
            },
            "feature_configs": features,
            "model_config": {
                "feature_groups": [
                    {
                        "group_name": "deep",
                        "feature_names": [name for name in names if name != "click"],
                        "sequence_groups": [
                            {"group_name": "history", "feature_names": [f"sequence_{i}" for i in range(3)]}
                        ],
                        "sequence_encoders": [{"pooling_encoder": {"input": "history"}}],
                    }
                ],
                "multi_tower": {"towers": [{"input": "deep"}], "final": {"hidden_units": [8]}},
                "losses": [{"binary_cross_entropy": {}}],
                "metrics": [{"auc": {}}],
            },
        }
    )


def files(name: str, path: Path, run: Any, bar: float, rounds: int) -> bool:
    """A file as batches of a run, against decoding it on one thread."""
    opened, epoch = penstock.create_dataloader(run), iter(range(1_000))

    def read() -> int:
        opened.set_epoch(next(epoch))
        return sum(batch.num_rows for batch in opened)

    def decode() -> int:
        file = pq.ParquetFile(path)
        groups = range(file.num_row_groups)
        return sum(file.read_row_group(index, use_threads=False).num_rows for index in groups)

    return report(alternate({"decoding": decode, name: read}, rounds), name, "decoding", bar)


if __name__ == "__main__":
    sys.exit(main())
