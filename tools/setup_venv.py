"""Make .venv hold exactly what the lock files say, whatever state it is in now.

    python3 tools/setup_venv.py          what Penstock runs on
    python3 tools/setup_venv.py --dev    and what tests and checks run on

Each call compares the files on disk with what pip recorded when it installed them. Nothing missing: nothing
is done. Something missing, cut short or of another version (a killed pip, a deleted folder): those packages
alone are installed again. The stamp is written only when everything is in place and imports.

Runs before anything is installed: standard library only, and an old Python must get as far as the message.
"""

import sys

SUPPORTED = ((3, 11), (3, 12), (3, 13))
"""The versions that every pinned package has wheels for."""

if sys.version_info[:2] not in SUPPORTED:
    sys.exit(
        "setup: Penstock needs Python 3.11, 3.12 or 3.13 and {} is {}.{}; name another one: "
        "make setup PYTHON=python3.11".format(sys.executable, *sys.version_info[:2])
    )

import argparse
import fcntl
import hashlib
import importlib.util
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from installed_files import Damage, SitePackages
from lock_file import Pin, read_lock

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"

CONFLICTING, REPLACEMENT = "fbgemm-gpu", "fbgemm-gpu-cpu"
"""The CUDA build, which torchrec asks for, and the CPU build; both fill the same folder."""

PYTORCH_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's public index of CPU builds; the default package index has only the CUDA build for Linux."""

NO_CPU_TORCH = (
    "neither the indexes that pip is configured with nor {index} gave {torch} for Python {python} (pip's messages "
    "are above). Set PIP_FIND_LINKS to a folder with the wheel, or PIP_EXTRA_INDEX_URL to a mirror that has it, "
    "and run make setup again (docs/install.md)"
)


class SetupError(Exception):
    """Setup cannot go on; the text is one line for the user."""


@dataclass(frozen=True)
class Part:
    """A lock file, and what must import once it is installed."""

    lock: Path
    modules: tuple[str, ...]

    @property
    def stamp(self) -> Path:
        return VENV / f"{self.lock.name}.stamp"

    def fingerprint(self, python_version: str) -> str:
        """Changes with everything that an installed .venv depends on."""
        parts = (self.lock.read_text(), (ROOT / "pyproject.toml").read_text(), python_version, str(ROOT))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def is_stamped(self, python_version: str) -> bool:
        return self.stamp.is_file() and self.stamp.read_text() == self.fingerprint(python_version)


RUNTIME = Part(
    ROOT / "requirements" / "cpu.lock",
    ("torch", "fbgemm_gpu", "torchrec", "torchmetrics", "pyarrow", "numba", "pydantic", "typer", "penstock"),
)
DEV = Part(ROOT / "requirements" / "dev.lock", ("pytest", "hypothesis", "mypy", "importlinter"))


def main() -> None:
    """Bring .venv up to the lock files, or say in one line why not."""
    arguments = argparse.ArgumentParser(description="Set up .venv from the lock files.")
    arguments.add_argument("--dev", action="store_true", help="also what tests and checks run on")
    parts = (RUNTIME, DEV) if arguments.parse_args().dev else (RUNTIME,)
    try:
        with one_at_a_time():
            python_version, site_folder = ensure_venv()
            for part in parts:
                bring_in(part, python_version, site_folder)
    except SetupError as error:
        sys.exit(f"setup: {error}")
    except KeyboardInterrupt:
        sys.exit("setup: interrupted; run make setup again to continue")


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two calls at once would install over each other: the second one waits."""
    with Path(__file__).open() as own_file:
        fcntl.flock(own_file, fcntl.LOCK_EX)
        yield


def ensure_venv() -> tuple[str, Path]:
    """Create .venv, or build it anew when its Python does not run or is of another release than this one.

    Gives the version of its Python, and its site-packages.
    """
    state = ask_venv()
    if state is None or not state[0].startswith("{}.{}.".format(*sys.version_info)):
        missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
        if missing:
            raise SetupError(
                f"{sys.executable} has no module {missing[0]}; install your system's python3-venv package, "
                "or name another Python: make setup PYTHON=python3.11"
            )
        print(f"setup: creating {VENV.name} with Python {sys.version.split()[0]}", flush=True)
        run([sys.executable, "-m", "venv", "--clear", str(VENV)], f"could not create {VENV}")
        state = ask_venv()
    if state is None:
        raise SetupError(f"{PYTHON} does not run; remove {VENV} and run make setup again")
    return state


def ask_venv() -> tuple[str, Path] | None:
    """Version and site-packages of the Python in .venv; None without one that runs and is supported."""
    question = "import sys, sysconfig; print(sys.version.split()[0], sysconfig.get_path('purelib'))"
    try:
        answer = subprocess.run([PYTHON, "-I", "-c", question], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    version, _, site_folder = answer.stdout.strip().partition(" ")
    major, minor = version.split(".")[:2]
    return (version, Path(site_folder)) if (int(major), int(minor)) in SUPPORTED else None


def bring_in(part: Part, python_version: str, site_folder: Path) -> None:
    """Install what `part` lacks, prove that it works, and stamp it."""
    pins = read_lock(part.lock)
    is_stamped = part.is_stamped(python_version)
    site = SitePackages(site_folder)
    damages = [*site.damages(pins, compare_contents=not is_stamped), *conflicts(pins, site)]
    has_project = part is not RUNTIME or project_is_installed(site)
    if is_stamped and has_project and not damages:
        return
    part.stamp.unlink(missing_ok=True)
    if damages:
        repair(damages, site)
    if part is RUNTIME:
        install_project()
    remaining = SitePackages(site_folder).damages(pins)
    if remaining:
        raise SetupError(f"still not right after installing: {remaining[0]}; remove {VENV} and run again")
    try_imports(part.modules)
    part.stamp.write_text(part.fingerprint(python_version))
    print(f"setup: {part.lock.name} is installed in {VENV.name}", flush=True)


def conflicts(pins: Sequence[Pin], site: SitePackages) -> list[Damage]:
    """fbgemm-gpu-cpu, when the CUDA build is there too: removing that one takes files of both."""
    if not site.records_of(CONFLICTING):
        return []
    return [Damage(pin, f"shares its folder with {CONFLICTING}") for pin in pins if pin.name == REPLACEMENT]


def repair(damages: Sequence[Damage], site: SitePackages) -> None:
    """Install the damaged packages again, pip itself first and torch before what is built on it."""
    if any(damage.pin.name == "torch" and not damage.is_torn for damage in damages):
        print(f"setup: installing {len(damages)} packages, about 1.5 GB on disk", flush=True)
    else:
        more = f" and {len(damages) - 3} more" if len(damages) > 3 else ""
        print(f"setup: {', '.join(str(damage) for damage in damages[:3])}{more}; installing", flush=True)
    for damage in damages:
        if damage.is_torn:
            forget(damage.pin, site)
    for leftover in site.leftovers():
        shutil.rmtree(leftover, ignore_errors=True)
    ensure_pip(site, damages)
    if site.records_of(CONFLICTING):
        run_pip(["uninstall", "--yes", CONFLICTING], f"could not remove {CONFLICTING}")
    rest = []
    for pin in dict.fromkeys(damage.pin for damage in damages):
        if pin.name == "pip":
            install([pin], "could not bring pip up to date (its messages are above)")
        elif pin.name == "torch":
            install_torch(pin)
        else:
            rest.append(pin)
    if rest:
        install(rest, "pip failed (its messages are above); run make setup again to continue")


def forget(pin: Pin, site: SitePackages) -> None:
    """Drop what pip noted on a torn package where it would stumble: it replaces nothing without RECORD."""
    records = site.records_of(pin.name)
    for record in records:
        if len(records) > 1 or not (record / "RECORD").is_file():
            shutil.rmtree(record)


def ensure_pip(site: SitePackages, damages: Sequence[Damage]) -> None:
    """A torn pip cannot repair itself: it is replaced by the one that came with Python."""
    is_torn = any(damage.pin.name == "pip" and damage.is_torn for damage in damages)
    works = subprocess.run([PYTHON, "-I", "-m", "pip", "--version"], capture_output=True, check=False)
    if works.returncode == 0 and not is_torn:
        return
    for folder in (site.folder / "pip", *site.records_of("pip")):
        shutil.rmtree(folder, ignore_errors=True)
    run(
        [str(PYTHON), "-I", "-m", "ensurepip", "--upgrade"],
        "could not give .venv a pip; remove it and run again",
    )


def install(pins: Sequence[Pin], failure: str, options: Sequence[str] = ()) -> None:
    """Put exactly these versions in place, whatever is there now."""
    run_pip(["install", "--no-deps", "--force-reinstall", *options, *map(str, pins)], failure)


def install_torch(pin: Pin, public_index: str = PYTORCH_INDEX) -> None:
    """Take the CPU build from the user's own indexes, and where they do not have it, from PyTorch's."""
    try:
        install([pin], "")
    except SetupError:
        print(f"setup: pip did not get {pin} from its own indexes; trying {public_index}", flush=True)
        options = ["--index-url", public_index, "--retries", "2", "--timeout", "30"]
        python = "{}.{}".format(*sys.version_info)
        install([pin], NO_CPU_TORCH.format(index=public_index, torch=pin, python=python), options)


def project_is_installed(site: SitePackages) -> bool:
    """Whether the `penstock` command in .venv runs this checkout."""
    records = site.records_of("penstock")
    if len(records) != 1 or site.first_bad_file(records[0]) is not None:
        return False
    origin = records[0] / "direct_url.json"
    return origin.is_file() and json.loads(origin.read_text()).get("url") == ROOT.as_uri()


def install_project() -> None:
    """Make the `penstock` command run this checkout."""
    command = ["install", "--no-deps", "--no-build-isolation", "--quiet", "--editable", str(ROOT)]
    run_pip(command, "could not install penstock itself (pip's messages are above)")


def try_imports(modules: Sequence[str]) -> None:
    """A package can be whole and still not load; better found now than in the middle of a run."""
    code = "\n".join(f"import {module}" for module in modules)
    result = subprocess.run([PYTHON, "-I", "-c", code], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or [f"exit code {result.returncode}"])[-1]
        raise SetupError(
            f"everything is installed but does not import: {reason}; try {VENV}/bin/penstock doctor"
        )


def run_pip(arguments: Sequence[str], failure: str) -> None:
    """Run the pip of .venv, with the user's own pip settings (indexes, mirrors, proxies)."""
    options = ["--disable-pip-version-check", "--no-input"]
    run([str(PYTHON), "-I", "-m", "pip", *options, *arguments], failure)


def run(command: Sequence[str], failure: str) -> None:
    """Run a command with its output shown; `failure` is what the user reads when it fails."""
    if subprocess.run(command, check=False).returncode != 0:
        raise SetupError(failure)


if __name__ == "__main__":
    main()
