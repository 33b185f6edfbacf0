import subprocess
import sys


def test_importing_the_package_does_not_import_torch():
    code = "import sys, penstock.checkpoint; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
