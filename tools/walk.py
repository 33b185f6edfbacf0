"""How far one walks through the source to follow two steps of `penstock train`.

    python tools/walk.py [CHECKOUT]

trains examples/quickstart.yaml for two steps, with shuffling and an evaluation at the end, under a profiler hook in all
threads of this process, from the import of the program on. It counts

- functions: distinct functions and methods of src/penstock that were entered, nested ones too; a comprehension,
  generator expression or lambda is part of the function it stands in, bodies of modules and classes are none;
- files: distinct files of them;
- changes: from one function to the next, in the order in which functions were entered for the first time, how often the
  file, or the package (the folder directly below src/penstock), is another one;
- modules: those of penstock that were imported, packages (`__init__.py`) apart.

Compiled kernels (numba) are not seen by the hook, and other processes are not either. A jinja2 template is markup, and
what the library compiles it to is not counted.
"""

import argparse
import contextlib
import inspect
import itertools
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROWS = 6000
EDITS = (
    "data_config.shuffle=true",
    "data_config.shuffle_buffer=1MiB",
    "train_config.num_epochs=null",
    "train_config.num_steps=2",
)


@dataclass
class Walk:
    """The functions of a folder that were entered, in the order of their first entry."""

    source: Path
    entered: dict[CodeType, None] = field(default_factory=dict)

    def hook(self, frame: FrameType, event: str, _argument: Any) -> None:
        """For sys.setprofile and threading.setprofile."""
        if event == "call" and frame.f_code not in self.entered:
            self.entered[frame.f_code] = None

    def functions(self) -> list[Path]:
        """The file of each function, relative to the source."""
        return [
            Path(code.co_filename).relative_to(self.source)
            for code in self.entered
            if code.co_filename.startswith(f"{self.source}/")
            and code.co_filename.endswith(".py")
            and code.co_flags & inspect.CO_OPTIMIZED
            and not code.co_name.startswith("<")
        ]


def changes(places: Sequence[Any]) -> int:
    """How often the next is another one."""
    return sum(before != after for before, after in itertools.pairwise(places))


def make_data() -> None:
    """Sample data where the run file expects them, made by a process that is not counted."""
    words = ["sample-data", "--kind", "clicks", "--rows", str(ROWS), "--out", "data/clicks", "--files", "2"]
    subprocess.run([sys.executable, "-m", "penstock", *words], check=True, stdout=subprocess.DEVNULL)


def train(run_file: Path, walk: Walk) -> None:
    """The command, as the program runs it, under the hook."""
    edits = [word for edit in EDITS for word in ("--set", edit)]
    sys.argv = ["penstock", "train", str(run_file), "--plain", *edits]
    threading.setprofile(walk.hook)
    sys.setprofile(walk.hook)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            from penstock.cli.app import main as program

            program()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def report(walk: Walk) -> str:
    """The counts, one in each line."""
    files = walk.functions()
    packages = [file.parts[0] if len(file.parts) > 1 else "" for file in files]
    loaded = [module for name, module in sys.modules.items() if name.partition(".")[0] == "penstock"]
    num_packages = sum(hasattr(module, "__path__") for module in loaded)
    counts = {
        "functions": len(files),
        "files": len({*files}),
        "lines of these files": sum(len((walk.source / file).read_text().splitlines()) for file in {*files}),
        "packages": len({*packages}),
        "changes of file": changes(files),
        "changes of package": changes(packages),
        "modules imported": len(loaded) - num_packages,
        "packages imported": num_packages,
    }
    return "\n".join(f"{name:<22}{count:>7,}" for name, count in counts.items())


def main() -> None:
    """Walk through the checkout that the command line names, or this one."""
    parser = argparse.ArgumentParser(description="Count what two steps of training go through.")
    parser.add_argument("checkout", type=Path, nargs="?", default=Path(__file__).parents[1])
    checkout = parser.parse_args().checkout.resolve()
    import penstock

    source = Path(penstock.__file__).resolve().parent
    if source != checkout / "src" / "penstock":
        raise SystemExit(f"penstock comes from {source}; set PYTHONPATH={checkout / 'src'}")
    walk = Walk(source)
    with tempfile.TemporaryDirectory(prefix="walk-") as folder, contextlib.chdir(folder):
        make_data()
        train(checkout / "examples" / "quickstart.yaml", walk)
    print(report(walk))


if __name__ == "__main__":
    main()
