"""A process and all it started."""

from pathlib import Path

import psutil


def process_tree(root: psutil.Process) -> list[psutil.Process]:
    """The process, what it started, what those started, and so on.

    Linux tells the children of a thread by a file; psutil looks at every process of the machine, which takes long
    where there are thousands and the question comes five times a second.
    """
    try:
        return [root, *(psutil.Process(pid) for pid in _descendants(root.pid))]
    except (OSError, psutil.NoSuchProcess):  # a kernel without such files, or one that ended meanwhile
        return [root, *root.children(recursive=True)]


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (thread / "children").read_text().split()):
            found += [child, *_descendants(child)]
    return found
