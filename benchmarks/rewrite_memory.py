"""Peak memory of `penstock rewrite` and `penstock inspect --full` on files that are one row group each.

    python benchmarks/rewrite_memory.py [--rows 2000000] [--memory 384MiB 512MiB 1GiB] [--work DIR]

Bar: every command ends within its limit, which is that of the whole process, interpreter and libraries included.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from penstock.config.sizes import format_size, parse_size
from penstock.runtime.memory import tree_bytes

SAMPLE_SECONDS = 0.02


def main() -> int:
    """Measure, print a line for each command, and fail above the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--memory", nargs="+", default=["384MiB", "512MiB", "1GiB"])
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    parts = []
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        for kind in ("criteo", "clicks"):
            data = Path(folder) / kind
            one_group = ["--files", "1", "--row_group_rows", str(options.rows)]
            run("sample-data", "--kind", kind, "--rows", str(options.rows), "--out", str(data), *one_group)
            parts += [
                measure(words, kind, memory, data / "train", data / f"out-{memory}")
                for memory in options.memory
                for words in (["rewrite"], ["rewrite", "--shuffle"], ["inspect", "--full"])
            ]
    print(f"within the limit: {max(parts):.2f} of it at most (bar 1.00)")
    return 0 if max(parts) <= 1 else 1


def measure(words: list[str], kind: str, memory: str, data: Path, out: Path) -> float:
    """Run a command, and give its peak as a part of its limit."""
    outputs = [str(out), "--overwrite"] if words[0] == "rewrite" else []
    started_at = time.perf_counter()
    peak_bytes = run(*words, str(data), *outputs, "--memory", memory)
    seconds = time.perf_counter() - started_at
    print(
        f"{kind}, {' '.join(words)}: peak {format_size(peak_bytes)} of {memory} in {seconds:.0f} s",
        flush=True,
    )
    return peak_bytes / parse_size(memory)


def run(*words: str) -> int:
    """Run a command to its end, and give the most bytes that its processes took."""
    command = [sys.executable, "-m", "penstock", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
