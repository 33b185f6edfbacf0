"""`penstock doctor`: what does not fit together here, and the exact command that mends it.

Facts about this installation and machine are gathered without judging; `diagnose` judges them. Facts can be passed
in, so that every answer is tested without the machine that gives it. torch and its companions are asked in fresh
processes: one that crashes while loading is a fact, not the end of the doctor.
"""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.config.sizes import GIB, MIB, format_size
from penstock.runtime.memory import memory_of_machine
from penstock.runtime.world import installed_versions

PYTHONS: Final = ((3, 11), (3, 12), (3, 13))
"""The versions that all of the torch stack has wheels for."""
TORCH: Final = "2.13"
"""What Penstock is tested with."""
FITTING: Final = {"2.13": "1.8", "2.14": "1.9"}
"""Releases of torch, and the release of both fbgemm and torchrec that is built for each."""
TORCHMETRICS: Final = "1.0.3"
"""Newer ones break torchrec's own metrics."""
PACKAGES: Final = ("torch", "torchrec", "fbgemm-gpu", "fbgemm-gpu-cpu", "torchmetrics")
MODULES: Final = (
    *("numpy", "pyarrow", "numba", "pydantic", "yaml", "psutil"),
    *("torch", "fbgemm_gpu", "torchrec"),
)
MIN_MEMORY: Final = 1 * GIB
MIN_SHARED_MEMORY: Final = 64 * MIB
MIN_OPEN_FILES: Final = 1024
MIN_DISK: Final = 2 * GIB

BF16_CURE: Final = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
"""Keeps oneDNN from instructions that some processors announce and do not have."""
BF16_STEP: Final = """
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
    """Module to the last line it printed, for each that does not import."""
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


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what is there, and the command that mends it when it is not right."""

    subject: str
    message: str
    fix: str | None = None

    @property
    def ok(self) -> bool:
        return self.fix is None

    def __str__(self) -> str:
        if self.ok:
            return f"ok    {self.subject}: {self.message}"
        return f"FAIL  {self.subject}: {self.message}\n      fix: {self.fix}"


def diagnose(facts: Facts | None = None) -> list[Finding]:
    """Every finding about `facts`, by default about this Python and this machine."""
    known = gather_facts() if facts is None else facts
    return [*_installation(known), *_loading(known), *_machine(known)]


def _installation(facts: Facts) -> Iterator[Finding]:
    """Are Python, torch, fbgemm, torchrec and torchmetrics releases that go together?"""
    python = ".".join(map(str, facts.python_version))
    if facts.python_version[:2] in PYTHONS:
        yield Finding("python", python)
    else:
        fix = "rm -rf .venv && make setup PYTHON=python3.11"
        yield Finding("python", f"is {python}; 3.11, 3.12 or 3.13 is needed", fix)

    torch = facts.versions.get("torch")
    right, wrong = "fbgemm-gpu-cpu", "fbgemm-gpu"
    if facts.torch_is_cuda:
        right, wrong = wrong, right
    family = FITTING.get(_release(torch or ""))
    if torch is None or family is None:
        # On Linux the plain name is a CUDA build; the suffix keeps pip from taking it.
        is_cuda = facts.torch_is_cuda or "fbgemm-gpu" in facts.versions
        suffix = "+cpu" if facts.platform == "linux" and not is_cuda else ""
        not_fitting = f"is {torch}; fbgemm and torchrec {FITTING[TORCH]} are built for {TORCH}"
        message = "is not installed" if torch is None else not_fitting
        yield Finding("torch", message, _install(facts, f"torch=={TORCH}.0{suffix}"))
    else:
        yield Finding("torch", torch if _release(torch) == TORCH else f"{torch} (tested with {TORCH})")
        for package in ("torchrec", right):
            version = facts.versions.get(package)
            fix = _install(facts, f"{package}=={family}.0")
            if version is None:
                yield Finding(package, "is not installed", fix)
            elif _release(version) != family:
                yield Finding(package, f"is {version}; torch {torch} goes with {package} {family}", fix)
            else:
                yield Finding(package, version)

    torchmetrics = facts.versions.get("torchmetrics")
    if torchmetrics == TORCHMETRICS:
        yield Finding("torchmetrics", torchmetrics)
    else:
        message = f"is {torchmetrics}" if torchmetrics else "is not installed"
        fix = _install(facts, f"torchmetrics=={TORCHMETRICS}")
        yield Finding("torchmetrics", f"{message}; torchrec works with {TORCHMETRICS} only", fix)

    if wrong in facts.versions:
        beside = f"is installed beside {right}; they overwrite each other"
        problem = beside if right in facts.versions else "is of the other kind"
        kind = "CUDA" if facts.torch_is_cuda else "CPU"
        reinstall = _install(facts, f"{right}=={family or FITTING[TORCH]}.0", "--force-reinstall")
        fix = f"{facts.python} -m pip uninstall --yes fbgemm-gpu fbgemm-gpu-cpu && {reinstall}"
        yield Finding(wrong, f"{problem}, and torch is a {kind} build, which needs {right}", fix)


def _loading(facts: Facts) -> Iterator[Finding]:
    """Does everything load, and does the processor compute in BF16? Where it does not, float32 needs nothing."""
    for module, problem in facts.import_problems.items():
        yield Finding(f"import {module}", problem, "make setup")
    if not facts.import_problems:
        yield Finding("imports", f"all {len(MODULES)} load")
    if "torch" not in facts.versions or "torch" in facts.import_problems:
        return
    failed = f"fails on this processor ({facts.bf16_problem})"
    if not facts.bf16_problem:
        yield Finding("BF16", "this processor computes it")
    elif facts.bf16_is_cured:
        cure = f"and does not with the environment variable {BF16_CURE}: set it for mixed_precision: BF16"
        yield Finding("BF16", f"{failed}, {cure}")
    else:
        yield Finding("BF16", f"{failed}: leave mixed_precision: BF16 out")


def _machine(facts: Facts) -> Iterator[Finding]:
    """Is there enough memory (torch and torchrec alone take about 370 MB), shared memory, open files and disk?"""

    def enough(subject: str, found: str, is_enough: bool, needed: str, fix: str) -> Finding:
        return Finding(subject, found) if is_enough else Finding(subject, f"{found}; {needed} needed", fix)

    yield enough(
        "memory",
        format_size(facts.memory_bytes),
        facts.memory_bytes >= MIN_MEMORY,
        f"at least {format_size(MIN_MEMORY)} is",
        "docker run --memory=4g ..., or a machine with more",
    )
    if facts.shared_memory_bytes is None:
        yield Finding("shared memory", "this system has no /dev/shm and needs none")
    else:
        yield enough(
            "shared memory",
            f"/dev/shm has {format_size(facts.shared_memory_bytes)}",
            facts.shared_memory_bytes >= MIN_SHARED_MEMORY,
            f"at least {format_size(MIN_SHARED_MEMORY)} is",
            "sudo mount -o remount,size=2G /dev/shm, or in a container: docker run --shm-size=2g ...",
        )
    are_enough = facts.open_files >= MIN_OPEN_FILES
    found = f"{'up to' if are_enough else 'at most'} {facts.open_files}"
    yield enough("open files", found, are_enough, f"{MIN_OPEN_FILES} are", "ulimit -n 65536")
    yield enough(
        "disk",
        f"{format_size(facts.disk_free_bytes)} free in {facts.folder}",
        facts.disk_free_bytes >= MIN_DISK,
        f"at least {format_size(MIN_DISK)} is",
        f"du -xh --max-depth=2 {facts.folder} | sort -h | tail, and remove what is not needed",
    )


def _release(version: str) -> str:
    """`2.13` of `2.13.0+cpu`: what has to agree."""
    return ".".join(version.split(".")[:2])


def _install(facts: Facts, requirement: str, *options: str) -> str:
    """Without dependencies: resolving those of torchrec would bring the CUDA build of fbgemm."""
    return " ".join([facts.python, "-m pip install --no-deps", *options, requirement])


# --- Facts ---------------------------------------------------------------------------------------------------


def gather_facts() -> Facts:
    """The facts of this process's Python and machine, for work in the current folder."""
    folder, shared_memory = Path.cwd(), Path("/dev/shm")
    statements = {module: f"import {module}" for module in MODULES}
    statements["torch"] = "import torch; print(torch.version.cuda)"
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        answers = dict(zip(statements, pool.map(run_python, statements.values()), strict=True))
    import_problems = {module: problem for module, (_, problem) in answers.items() if problem}
    versions = installed_versions(PACKAGES)
    bf16_problem, bf16_is_cured = ("", False) if "torch" in import_problems else try_bf16()
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return Facts(
        python_version=sys.version_info[:3],
        python=sys.executable,
        platform=sys.platform,
        versions=versions,
        # It prints "None" for a CPU build, and nothing when torch does not load.
        torch_is_cuda=answers["torch"][0] not in ("", "None") or "+cu" in versions.get("torch", ""),
        import_problems=import_problems,
        bf16_problem=bf16_problem,
        bf16_is_cured=bf16_is_cured,
        shared_memory_bytes=shutil.disk_usage(shared_memory).total if shared_memory.is_dir() else None,
        open_files=sys.maxsize if open_files == resource.RLIM_INFINITY else open_files,
        memory_bytes=memory_of_machine(),
        disk_free_bytes=shutil.disk_usage(folder).free,
        folder=str(folder),
    )


def try_bf16() -> tuple[str, bool]:
    """What goes wrong when this processor computes in BF16 ("" when nothing does), and whether the cure helps.

    Tried, not looked up: what a processor announces is not always what it can do.
    """
    _, problem = run_python(BF16_STEP)
    return problem, bool(problem) and not run_python(with_bf16_cure(BF16_STEP))[1]


def with_bf16_cure(statement: str) -> str:
    """The same statement, with the cure in its environment before anything is imported."""
    return f"import os; os.environ.update([{BF16_CURE!r}.split('=')])\n{statement}"


def run_python(statement: str, timeout_seconds: float = 120.0) -> tuple[str, str]:
    """What a statement prints in a fresh Python, and what went wrong ("" when nothing did)."""
    command = [sys.executable, "-c", statement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_seconds, check=False)
    except subprocess.TimeoutExpired:
        return "", f"did not finish within {timeout_seconds:g} seconds"
    if done.returncode == 0:
        return done.stdout.strip(), ""
    if done.returncode < 0:
        return "", f"crashed with signal {-done.returncode}"
    lines = done.stderr.strip().splitlines() or [f"ended with exit code {done.returncode}"]
    return "", lines[-1]
