"""Importing defines names and does nothing else; torch is loaded by those who compute with it."""

import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
HEAVY = ("torch", "torchrec", "fbgemm_gpu", "tensorflow", "ray")
TORCH_FREE_PACKAGES = ("config", "runtime", "readers", "data", "features", "prep", "sampling", "metrics")

IMPORT_ONE_BY_ONE = """
import importlib, json, sys
heavy, modules = json.loads(sys.argv[1])
guilty = {}
for module in modules:
    importlib.import_module(module)
    loaded = [name for name in heavy if name in sys.modules]
    if loaded:
        guilty[module] = loaded
        break
json.dump(guilty, sys.stderr)
"""


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules_matching(*patterns: str) -> list[str]:
    found = {path for pattern in patterns for path in (SOURCE / "penstock").glob(pattern)}
    return sorted(module_name(path) for path in found if path.suffix == ".py")


def test_importing_prints_nothing_and_loads_nothing_heavy():
    """The package, then all packages, then sections, then everything before tensors: the first that does is named."""
    modules = [
        "penstock",
        *modules_matching("**/__init__.py"),
        *modules_matching("**/sections.py", "**/sections/**/*.py"),
        *modules_matching(*(f"{name}/**/*.py" for name in TORCH_FREE_PACKAGES)),
    ]
    command = [sys.executable, "-c", IMPORT_ONE_BY_ONE, json.dumps([HEAVY, modules])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "{}")
