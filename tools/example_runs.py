"""Short runs of the examples, and what they computed: every loss, and every tensor of the last checkpoint.

    python tools/example_runs.py CHECKOUT FOLDER

makes sample data below FOLDER, trains the runs there, and writes FOLDER/results.json. Code and run files are those of
CHECKOUT, whose `src` must be on PYTHONPATH. Only public names of Penstock are used, so that checkouts with different
modules can be compared (tools/compare_checkouts.py).
"""

import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

STEP_BY_STEP = {
    "memory.limit": "2GiB",
    "train_config.num_epochs": 1,
    "train_config.log_step_count_steps": 1,
    "train_config.save_checkpoints_epochs": 1,
}
"""Every loss is logged, and the end is a checkpoint."""


@dataclass(frozen=True)
class ExampleRun:
    """A run file of examples/, the sample data it reads, and keys that make it small."""

    file: str
    data: str
    edits: Mapping[str, Any] = field(default_factory=dict)


RUNS = {
    "quickstart": ExampleRun(
        "quickstart.yaml",
        "clicks",
        {"data_config.batch_size": 256, "data_config.shuffle": True, "data_config.shuffle_buffer": "1MiB"},
    ),
    "mmoe": ExampleRun("mmoe.yaml", "clicks", {"data_config.batch_size": 512}),
    "cost batching": ExampleRun(
        "cost_batching.yaml",
        "clicks",
        {"data_config.batch_cost_size": 4000, "data_config.shuffle_buffer": "1MiB"},
    ),
    "text format": ExampleRun("deepfm_criteo.config", "criteo", {"data_config.batch_size": 512}),
}

ROWS = {"clicks": 2500, "criteo": 1500}


def make_data(folder: Path) -> dict[str, str]:
    """Write the sample data of all runs to FOLDER/data; gives the digest of every file."""
    with contextlib.chdir(folder):
        for kind, rows in ROWS.items():
            run_command(
                "sample-data", "--kind", kind, "--rows", str(rows), "--out", f"data/{kind}", "--files", "2"
            )
        return {str(path): digest(path.read_bytes()) for path in sorted(Path("data").rglob("*.parquet"))}


def run_example(name: str, checkout: Path, folder: Path) -> dict[str, Any]:
    """Train one of the runs in a folder that has the data; gives losses, metrics and tensors."""
    import penstock

    example = RUNS[name]
    model_dir = f"runs/{name.replace(' ', '_')}"
    with contextlib.chdir(folder):
        edits = {**STEP_BY_STEP, **example.edits, "model_dir": model_dir}
        result = penstock.train(penstock.load_run(checkout / "examples" / example.file, edits))
        log = [json.loads(line) for line in Path(model_dir, "log.jsonl").read_text().splitlines()]
        return {
            "rows": result.rows,
            "losses": [record["loss"] for record in log if "loss" in record],
            "evaluation": {**result.losses, **result.metrics},
            "tensors": dict(tensors_of(result.checkpoint)),
        }


def tensors_of(checkpoint: Path) -> Iterator[tuple[str, str]]:
    """Name of every tensor of a checkpoint, with its type, shape and the digest of its bytes."""
    import safetensors

    for file in sorted(checkpoint.glob("*.safetensors")):
        found = safetensors.deserialize(file.read_bytes())  # type: ignore[no-untyped-call]
        for name, tensor in sorted(found, key=itemgetter(0)):
            yield f"{file.name}: {name}", f"{tensor['dtype']} {tensor['shape']} {digest(tensor['data'])}"


def digest(content: bytes) -> str:
    """SHA-256, as text."""
    return hashlib.sha256(content).hexdigest()


def run_command(*words: str) -> None:
    """One command of the program in this process; an error ends it with the program's own line."""
    from penstock.cli.app import app

    code = app(words, prog_name="penstock", standalone_mode=False)
    if code:
        raise SystemExit(code)


def main(checkout: str, folder: str) -> None:
    """Make the data, train every run, write results.json."""
    import penstock

    place, source = Path(folder), Path(checkout, "src").resolve()
    if source not in Path(penstock.__file__).resolve().parents:
        raise SystemExit(f"penstock comes from {penstock.__file__}; set PYTHONPATH={source}")
    results: dict[str, Any] = {"data": make_data(place)}
    results["runs"] = {name: run_example(name, Path(checkout), place) for name in RUNS}
    (place / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
