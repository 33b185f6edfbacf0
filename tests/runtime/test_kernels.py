"""A kernel is compiled again when anything that was compiled into it has changed."""

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
from mill import gear
from mill.gear import turned

TEETH = gear.TEETH

@kernel
def teeth_passed(turns):
    return turned(turns) * TEETH
"""
PROGRAM = """
import os, sys
from pathlib import Path
import penstock.runtime.kernels

gear = Path("mill/gear.py")
for text in sys.argv[1:]:
    gear.write_text(text)
    os.utime(gear, (0, 0))  # not even the time of the file differs
    # A process for each, which has imported nothing but numba: that takes the longest.
    child = os.fork()
    if not child:
        from mill.wheel import teeth_passed
        print(teeth_passed(3), sum(teeth_passed.stats.cache_hits.values()), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_change_of_an_inlined_function_or_constant_is_seen(tmp_path: Path):
    package = tmp_path / "mill"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "wheel.py").write_text(WHEEL)

    gears = [GEAR.format(teeth=teeth, factor=factor) for teeth, factor in ((7, 1), (7, 1), (7, 2), (8, 2))]

    done = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM, *gears],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )

    assert done.stdout.splitlines() == ["21 0", "21 1", "42 0", "48 0"], "only the second is from the cache"
