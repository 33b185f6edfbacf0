"""What is printed comes line by line."""

import subprocess
import sys

from penstock.prep.preparing.crew.printing import lines_of_processes, lines_of_this_process


def test_lines_of_processes():
    lines: list[str] = []

    with lines_of_processes(lines.append) as descriptor:
        for text in ("one", "two\\nthree", ""):
            subprocess.run([sys.executable, "-c", f"print('{text}')"], stdout=descriptor, check=True)

    assert lines == ["one", "two", "three", ""]


def test_lines_of_this_process():
    lines: list[str] = []

    with lines_of_this_process(lines.append):
        print("a", end="")
        print("b")
        print("c\nd", end="")
        assert lines == ["ab", "c"]

    assert lines == ["ab", "c", "d"]
