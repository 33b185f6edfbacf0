"""What `penstock doctor` judges: facts about this installation and this machine, gathered without judging.

torch and its companions are asked in processes of their own: one that crashes while loading is a fact, not
the end of the doctor.
"""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from penstock.config.sizes import GIB
from penstock.runtime.limits import memory_of_machine
from penstock.runtime.versions import installed_versions

PACKAGES = ("torch", "torchrec", "fbgemm-gpu", "fbgemm-gpu-cpu", "torchmetrics")
MODULES = (
    "numpy",
    "pyarrow",
    "numba",
    "pydantic",
    "google.protobuf",
    "yaml",
    "psutil",
    "torch",
    "fbgemm_gpu",
    "torchrec",
)
IMPORT_SECONDS = 120.0
SHARED_MEMORY = Path("/dev/shm")
BF16_CURE = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
"""Keeps oneDNN from instructions that some processors announce and do not have."""
BF16_STEP = """
import torch
layer, rows = torch.nn.Linear(64, 64), torch.randn(64, 64)
with torch.autocast("cpu", torch.bfloat16):
    loss = layer(rows).sum()
loss.backward()
"""
"""What training computes, large enough for the instructions that oneDNN has for large products."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the doctor looks at. The defaults are those of a healthy machine without a GPU."""

    python_version: tuple[int, int, int] = (3, 11, 0)
    python: str = "python"
    """The interpreter, as one types it: fixes are commands for it."""
    platform: str = "linux"
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the packages that are installed; the others are not in it."""
    torch_is_cuda: bool = False
    import_problems: Mapping[str, str] = field(default_factory=dict)
    """Module to the last line it said, for each that does not import."""
    bf16_problem: str = ""
    """What went wrong when the processor computed in BF16; empty when nothing did."""
    bf16_is_cured: bool = False
    """Whether that does not go wrong with `BF16_CURE` in the environment."""
    shared_memory_bytes: int | None = 16 * GIB
    """Size of /dev/shm; None where there is none."""
    open_files: int = 65536
    memory_bytes: int = 16 * GIB
    disk_free_bytes: int = 100 * GIB
    folder: str = "."


def gather_facts(folder: Path | None = None) -> Facts:
    """The facts of this process's Python and machine, for work in `folder` (the current one)."""
    folder = folder or Path.cwd()
    cuda_of_torch, import_problems = _try_imports()
    versions = installed_versions(PACKAGES)
    bf16_problem, bf16_is_cured = ("", False) if "torch" in import_problems else try_bf16()
    return Facts(
        python_version=sys.version_info[:3],
        python=sys.executable,
        platform=sys.platform,
        versions=versions,
        torch_is_cuda=cuda_of_torch not in ("", "None") or "+cu" in versions.get("torch", ""),
        import_problems=import_problems,
        bf16_problem=bf16_problem,
        bf16_is_cured=bf16_is_cured,
        shared_memory_bytes=shutil.disk_usage(SHARED_MEMORY).total if SHARED_MEMORY.is_dir() else None,
        open_files=_open_file_limit(),
        memory_bytes=memory_of_machine(),
        disk_free_bytes=shutil.disk_usage(folder).free,
        folder=str(folder),
    )


def _open_file_limit() -> int:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def _try_imports() -> tuple[str, dict[str, str]]:
    """The CUDA version that torch is built for, and the problem of every module that does not import.

    The first is "None" for a CPU build and empty when torch does not load.
    """
    statements = {module: f"import {module}" for module in MODULES}
    statements["torch"] = "import torch; print(torch.version.cuda)"
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        answers = dict(zip(statements, pool.map(run_python, statements.values()), strict=True))
    problems = {module: problem for module, (_, problem) in answers.items() if problem}
    return answers["torch"][0], problems


def try_bf16() -> tuple[str, bool]:
    """What goes wrong when this processor computes in BF16 ("" when nothing does), and whether the cure helps.

    Tried, not looked up: what a processor announces is not always what it can do.
    """
    _, problem = run_python(BF16_STEP)
    return problem, bool(problem) and not run_python(with_bf16_cure(BF16_STEP))[1]


def with_bf16_cure(statement: str) -> str:
    """The same statement, with the cure in its environment before anything is imported."""
    return f"import os; os.environ.update([{BF16_CURE!r}.split('=')])\n{statement}"


def run_python(statement: str, timeout_seconds: float = IMPORT_SECONDS) -> tuple[str, str]:
    """What a statement prints in a Python of its own, and what went wrong ("" when nothing did)."""
    command = [sys.executable, "-c", statement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_seconds, check=False)
    except subprocess.TimeoutExpired:
        return "", f"did not finish within {timeout_seconds:g} seconds"
    if done.returncode == 0:
        return done.stdout.strip(), ""
    if done.returncode < 0:
        return "", f"crashed with signal {-done.returncode}"
    said = done.stderr.strip().splitlines() or [f"ended with exit code {done.returncode}"]
    return "", said[-1]
