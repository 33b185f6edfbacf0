"""Memory of `penstock train`, `eval` and `predict`: within the limit, and as planned.

    python benchmarks/train_memory.py [growth] [commands] [steps] [--rows 1000000 5000000] [--work DIR]

Three parts, all by default:

growth    training on 1 and on 5 million rows under 1 GiB. Bars: within the limit, and the largest takes no more than
          10 % more than the smallest.
commands  train, eval and predict of the quickstart under 700 MiB, watched from outside. Bars: none is refused, and none
          takes more than the limit.
steps     what a step takes beside the model, for three models and three sizes of batches, in training and in scoring,
          each in a process of its own: from the batch that is parsed to the update. Bar: 25 % from the plan, or 6 MiB
          where that is more.

Bytes are those of the whole process tree; what importing torch and torchrec takes is part of them, and shown apart.
Row groups are of one size and evaluations come at one pace: the number of rows is the only thing that differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from penstock.config.sizes import MIB, format_size, parse_size

EXAMPLES = Path(__file__).parent.parent / "examples"
RUN_FILE = EXAMPLES / "quickstart.yaml"
GROWTH_BAR, STEP_BAR, STEP_SLACK_BYTES = 1.10, 0.25, 6 * MIB
GROWTH_LIMIT, COMMANDS_LIMIT = "1GiB", "700MiB"
STEP_MODELS = ("quickstart", "wide_and_deep", "mmoe")
STEP_ROWS = (2048, 8192, 32768)
NUM_STEPS = 24
WATCH_SECONDS = 0.02


def main() -> int:
    """Measure, print tables, and fail below the bars."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=["growth", "commands", "steps", []], default=[])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--work", type=Path)
    parser.add_argument("--step", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, data, rows, mode = options.step
        print(json.dumps(measure_step(name, Path(data), int(rows), training=mode == "train")))
        return 0
    parts = options.parts or ["growth", "commands", "steps"]
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        kept = [
            {"growth": growth, "commands": commands, "steps": steps}[part](Path(folder), options.rows)
            for part in parts
        ]
    return 0 if all(kept) else 1


def growth(folder: Path, row_counts: list[int]) -> bool:
    peaks = {rows: peak_of_training(folder, rows) for rows in row_counts}
    limit, ratio = parse_size(GROWTH_LIMIT), peaks[max(peaks)] / peaks[min(peaks)]
    print(f"within the limit: {max(peaks.values()) / limit:.2f} of it at most (bar 1.00)")
    print(
        f"growth from {min(peaks):,} to {max(peaks):,} rows: {ratio:.3f} (bar {GROWTH_BAR:.2f})", flush=True
    )
    return max(peaks.values()) <= limit and ratio <= GROWTH_BAR


def peak_of_training(folder: Path, num_rows: int) -> int:
    """Generate, train, and read the peak that the run measured of itself."""
    data, model_dir = sample_data(folder, num_rows), folder / f"run-{num_rows}"
    started_at = time.perf_counter()
    cadence = ["--set", "train_config.eval_steps=200", "--set", "train_config.save_checkpoints_steps=200"]
    penstock("train", RUN_FILE, *inputs(data), *cadence, "--model_dir", model_dir, "--memory", GROWTH_LIMIT)
    seconds = time.perf_counter() - started_at
    records = [json.loads(line) for line in (model_dir / "log.jsonl").read_text().splitlines()]
    end = records[-1]["memory"]
    start = records[0]["planned_bytes"]["process"]
    stages = ", ".join(f"{name} {format_size(size)}" for name, size in end["by_stage"].items())
    print(
        f"{num_rows:>10,} rows: peak {format_size(end['peak_bytes'])} of {GROWTH_LIMIT} in {seconds:.0f} s; "
        f"imports alone {format_size(start)}; by stage: {stages}",
        flush=True,
    )
    return int(end["peak_bytes"])


def commands(folder: Path, row_counts: list[int]) -> bool:
    """The three commands, as a user would call them, watched from outside."""
    data, model_dir = sample_data(folder, min(row_counts)), folder / "commands"
    common = [RUN_FILE, "--model_dir", model_dir, "--memory", COMMANDS_LIMIT, "-v"]
    scored = ["--predict_input_path", f"{data}/train/*.parquet", "--predict_output_path", folder / "scores"]
    limit, all_within = parse_size(COMMANDS_LIMIT), True
    for words in (
        ["train", *common, *inputs(data)],
        ["eval", *common, *inputs(data)[2:]],
        ["predict", *common, *scored],
    ):
        exit_code, peak_bytes, text = watched(*words)
        is_within = exit_code == 0 and peak_bytes <= limit
        all_within = all_within and is_within
        verdict = "within" if is_within else f"NOT within (exit code {exit_code})"
        print(f"{words[0]}: {format_size(peak_bytes)} seen from outside, {verdict} {COMMANDS_LIMIT}")
        print("\n".join(line for line in text.splitlines() if "MiB" in line or exit_code), flush=True)
    return all_within


def watched(*words: str | Path) -> tuple[int, int, str]:
    """Run a command; its exit code, the most that its process tree took, and what it printed."""
    command = [sys.executable, "-m", "penstock", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        peak_bytes = 0
        root = psutil.Process(process.pid)
        while process.poll() is None:
            peak_bytes = max(peak_bytes, resident_bytes(root))
            time.sleep(WATCH_SECONDS)
        assert process.stdout is not None
        return process.returncode, peak_bytes, process.stdout.read()


def resident_bytes(root: psutil.Process) -> int:
    """Of the process and what it started; of the process itself the mark that the kernel keeps."""
    total = 0
    try:
        status = Path(f"/proc/{root.pid}/status").read_text()
        total = int(status.partition("VmHWM:")[2].split()[0]) * 1024
        total += sum(child.memory_info().rss for child in root.children(recursive=True))
    except (OSError, IndexError, psutil.Error):  # it has ended
        pass
    return total


def steps(folder: Path, row_counts: list[int]) -> bool:
    data, all_within = sample_data(folder, min(row_counts)), True
    print(f"{'model':14} {'rows':>6} {'mode':6} {'planned':>9} {'measured':>9}  ratio")
    for name in STEP_MODELS:
        for rows in STEP_ROWS:
            for mode in ("train", "score"):
                command = [sys.executable, __file__, "--step", name, str(data), str(rows), mode]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                planned, measured = json.loads(done.stdout.splitlines()[-1])
                is_within = abs(measured - planned) <= max(STEP_SLACK_BYTES, STEP_BAR * planned)
                all_within = all_within and is_within
                print(
                    f"{name:14} {rows:>6} {mode:6} {format_size(planned):>9} {format_size(measured):>9}  "
                    f"{measured / planned:.2f}{'' if is_within else '  beyond the bar'}",
                    flush=True,
                )
    print(f"steps as planned: {'all' if all_within else 'not all'} within {STEP_BAR:.0%}")
    return all_within


def measure_step(name: str, data: Path, num_rows: int, *, training: bool) -> tuple[int, int]:
    """Planned and measured bytes of steps, in this process, which has done nothing else."""
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # as the command does, before Arrow is loaded
    import pyarrow.parquet as pq

    import penstock
    from penstock.run.data import LargestBatch
    from penstock.run.session import computing
    from penstock.run.training import build_training, plan_training, step_use
    from penstock.runtime.memory import high_water_bytes
    from penstock.training.evaluate import evaluation_mode

    run = penstock.load_run(
        EXAMPLES / f"{name}.yaml",
        [
            ("train_input_path", f"{data}/train/*.parquet"),
            ("eval_input_path", f"{data}/test/*.parquet"),
            ("data_config.dataset_type", "ParquetDataset"),
            ("data_config.batch_size", num_rows),
            ("memory.limit", "8GiB"),
        ],
    )
    with computing(run) as session:
        plan = plan_training(run, session)
        scanned = plan.source.scanned
        batch_size = LargestBatch(num_rows, scanned.row_bytes, "")
        planned = step_use(plan.model, batch_size, training=training).planned_bytes
        with build_training(run, session, plan) as built:
            # By one thread: what others leave in heaps of their own would be used again, and not be seen.
            table = pq.read_table(scanned.files[0].path, columns=scanned.columns.names, use_threads=False)
            model, module = built.sharded.model, built.sharded.module
            before = session.settled_bytes()
            Path("/proc/self/clear_refs").write_text("5")  # begins the mark of the kernel anew
            for step in range(NUM_STEPS):
                start = step % 4 * num_rows + step * 7  # batches differ a little, as they do in a run
                batch = penstock.build_batch(run, table.slice(start, num_rows))
                if training:
                    built.step(batch, built.progress)
                    continue
                with evaluation_mode(module):
                    model.loss(model.predict(batch), batch)
            return planned, high_water_bytes() - before


def inputs(data: Path) -> list[str]:
    return ["--train_input_path", f"{data}/train/*.parquet", "--eval_input_path", f"{data}/test/*.parquet"]


def sample_data(folder: Path, num_rows: int) -> Path:
    data = folder / f"data-{num_rows}"
    if not data.exists():
        penstock("sample-data", "--rows", str(num_rows), "--out", data, "--row_group_rows", "16384")
    return data


def penstock(*words: str | Path) -> None:
    """Run a command; its errors are ours."""
    subprocess.run([sys.executable, "-m", "penstock", *map(str, words)], check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
