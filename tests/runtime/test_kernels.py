"""A kernel is compiled again when anything that was compiled into it has changed."""

import os
import subprocess
import sys
from pathlib import Path

GEAR = """
from penstock.runtime.kernels import kernel

TEETH = {teeth}

@kernel
def turned(turns):
    return turns * {factor}
"""
WHEEL = """
from penstock.runtime.kernels import kernel
from mill.gear import TEETH, turned

@kernel
def teeth_passed(turns):
    return turned(turns) * TEETH
"""
PROGRAM = """
from mill.wheel import teeth_passed
print(teeth_passed(3), sum(teeth_passed.stats.cache_hits.values()))
"""


def test_a_change_of_an_inlined_function_or_constant_is_seen(tmp_path: Path):
    package = tmp_path / "mill"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "wheel.py").write_text(WHEEL)

    def run(teeth: int, factor: int) -> str:
        (package / "gear.py").write_text(GEAR.format(teeth=teeth, factor=factor))
        os.utime(package / "gear.py", (0, 0))  # not even the time of the file differs
        command = [sys.executable, "-B", "-c", PROGRAM]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    assert run(teeth=7, factor=1) == "21 0"
    assert run(teeth=7, factor=1) == "21 1"  # from the cache
    assert run(teeth=7, factor=2) == "42 0"
    assert run(teeth=8, factor=2) == "48 0"


def test_where_nothing_can_be_kept_a_kernel_is_compiled_all_the_same():
    program = "from penstock.runtime.kernels import kernel; print(kernel(lambda turns: turns + 1)(3))"

    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert ran.stdout == "4\n"
