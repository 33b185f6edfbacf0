"""`penstock doctor`: what does not fit together here, and the exact command that mends it.

`gather_facts` looks at this installation and machine; `diagnose` judges facts, which can be passed in. torch and its
companions are loaded in fresh processes: one that crashes is a fact, not the end of the doctor.
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

from penstock.config.sizes import GIB, MIB, format_size
from penstock.runtime.memory import memory_of_machine
from penstock.runtime.world import installed_versions

# The versions that all of the torch stack has wheels for.
PYTHONS = ((3, 11), (3, 12), (3, 13))
TORCH = "2.13"
"""What Penstock is tested with."""
FITTING = {"2.13": "1.8", "2.14": "1.9"}
"""Releases of torch, and the release of both fbgemm and torchrec that is built for each."""
TORCHMETRICS = "1.0.3"
"""Newer ones break torchrec's own metrics."""
PACKAGES = ("torch", "torchrec", "fbgemm-gpu", "fbgemm-gpu-cpu", "torchmetrics")
MODULES = (
    *("numpy", "pyarrow", "numba", "pydantic", "yaml", "psutil"),
    *("torch", "fbgemm_gpu", "torchrec"),
)
MIN_MEMORY, MIN_SHARED_MEMORY, MIN_DISK = 1 * GIB, 64 * MIB, 2 * GIB
MIN_OPEN_FILES = 1024
BF16_CURE = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
"""Keeps oneDNN from instructions that some processors announce and do not have."""
# What training computes, large enough for the instructions that oneDNN has for large products.
_BF16_STEP = """
import torch
layer, rows = torch.nn.Linear(64, 64), torch.randn(64, 64)
with torch.autocast("cpu", torch.bfloat16):
    loss = layer(rows).sum()
loss.backward()
"""


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
    facts = gather_facts() if facts is None else facts
    return [*_installation(facts), *_loading(facts), *_machine(facts)]


def _installation(facts: Facts) -> Iterator[Finding]:
    """Are Python, torch, fbgemm, torchrec and torchmetrics releases that go together?"""

    def install(requirement: str, options: str = "") -> str:
        # Without dependencies: resolving those of torchrec would bring the CUDA build of fbgemm.
        return f"{facts.python} -m pip install --no-deps {options}{requirement}"

    def release(version: str) -> str:
        """`2.13` of `2.13.0+cpu`: what has to agree."""
        return ".".join(version.split(".")[:2])

    python = ".".join(map(str, facts.python_version))
    if facts.python_version[:2] in PYTHONS:
        yield Finding("python", python)
    else:
        fix = "rm -rf .venv && make setup PYTHON=python3.11"
        yield Finding("python", f"is {python}; 3.11, 3.12 or 3.13 is needed", fix)

    versions, torch = facts.versions, facts.versions.get("torch", "")
    right, wrong = "fbgemm-gpu-cpu", "fbgemm-gpu"
    if facts.torch_is_cuda:
        right, wrong = wrong, right
    family = FITTING.get(release(torch))
    if family is None:
        # On Linux the plain name is a CUDA build; the suffix keeps pip from taking it.
        is_cuda = facts.torch_is_cuda or "fbgemm-gpu" in versions
        suffix = "+cpu" if facts.platform == "linux" and not is_cuda else ""
        not_fitting = f"is {torch}; fbgemm and torchrec {FITTING[TORCH]} are built for {TORCH}"
        yield Finding(
            "torch", not_fitting if torch else "is not installed", install(f"torch=={TORCH}.0{suffix}")
        )
    else:
        yield Finding("torch", torch if release(torch) == TORCH else f"{torch} (tested with {TORCH})")
        for package in ("torchrec", right):
            version, fix = versions.get(package), install(f"{package}=={family}.0")
            if version is None:
                yield Finding(package, "is not installed", fix)
            elif release(version) != family:
                yield Finding(package, f"is {version}; torch {torch} goes with {package} {family}", fix)
            else:
                yield Finding(package, version)

    torchmetrics = versions.get("torchmetrics")
    if torchmetrics == TORCHMETRICS:
        yield Finding("torchmetrics", torchmetrics)
    else:
        message = f"is {torchmetrics}" if torchmetrics else "is not installed"
        fix = install(f"torchmetrics=={TORCHMETRICS}")
        yield Finding("torchmetrics", f"{message}; torchrec works with {TORCHMETRICS} only", fix)

    if wrong in versions:
        beside = f"is installed beside {right}; they overwrite each other"
        problem = beside if right in versions else "is of the other kind"
        kind = "CUDA" if facts.torch_is_cuda else "CPU"
        reinstall = install(f"{right}=={family or FITTING[TORCH]}.0", "--force-reinstall ")
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
    message = "this processor computes it"
    if facts.bf16_problem:
        cure = ": leave mixed_precision: BF16 out"
        if facts.bf16_is_cured:
            cure = (
                f", and does not with the environment variable {BF16_CURE}: set it for mixed_precision: BF16"
            )
        message = f"fails on this processor ({facts.bf16_problem}){cure}"
    yield Finding("BF16", message)


def _machine(facts: Facts) -> Iterator[Finding]:
    """Is there enough memory (torch and torchrec alone take about 370 MB), shared memory, open files and disk?"""

    def enough(subject: str, found: str, num_bytes: int, min_bytes: int, fix: str) -> Finding:
        if num_bytes >= min_bytes:
            return Finding(subject, found)
        return Finding(subject, f"{found}; at least {format_size(min_bytes)} is needed", fix)

    memory_fix = "docker run --memory=4g ..., or a machine with more"
    yield enough("memory", format_size(facts.memory_bytes), facts.memory_bytes, MIN_MEMORY, memory_fix)
    shared = facts.shared_memory_bytes
    if shared is None:
        yield Finding("shared memory", "this system has no /dev/shm and needs none")
    else:
        fix = "sudo mount -o remount,size=2G /dev/shm, or in a container: docker run --shm-size=2g ..."
        found = f"/dev/shm has {format_size(shared)}"
        yield enough("shared memory", found, shared, MIN_SHARED_MEMORY, fix)
    if facts.open_files >= MIN_OPEN_FILES:
        yield Finding("open files", f"up to {facts.open_files}")
    else:
        yield Finding(
            "open files", f"at most {facts.open_files}; {MIN_OPEN_FILES} are needed", "ulimit -n 65536"
        )
    found = f"{format_size(facts.disk_free_bytes)} free in {facts.folder}"
    fix = f"du -xh --max-depth=2 {facts.folder} | sort -h | tail, and remove what is not needed"
    yield enough("disk", found, facts.disk_free_bytes, MIN_DISK, fix)


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
    _, problem = run_python(_BF16_STEP)
    cured = f"import os; os.environ.update([{BF16_CURE!r}.split('=')])\n{_BF16_STEP}"
    return problem, bool(problem) and not run_python(cured)[1]


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
